#include "xml.hpp"

#include <cctype>
#include <cstring>
#include <regex>

namespace collc::oneccl {

namespace {

constexpr int deepest = 16;

class Parser {
public:
    explicit Parser(const std::string &text) : text_(text) {}

    Element document()
    {
        if (text_.compare(0, 3, "\xEF\xBB\xBF") == 0)
            at_ = 3;
        if (looking_at("<?xml "))
            declaration();
        skip();
        if (!looking_at("<") || looking_at("<!") || looking_at("</"))
            fail(looking_at("<!DOCTYPE") ? "document types are not read" : "not XML: an element is needed here");
        Element root = element(0);
        skip();
        if (at_ < text_.size())
            fail("not XML: something follows the root element");
        return root;
    }

private:
    [[noreturn]] void fail(const std::string &message) const { throw Refused(line_, message); }

    bool looking_at(const char *what) const { return text_.compare(at_, std::strlen(what), what) == 0; }

    char take()
    {
        if (at_ >= text_.size())
            fail("not XML: the text ends too early");
        if (text_[at_] == '\n')
            line_++;
        return text_[at_++];
    }

    void expect(const char *what)
    {
        for (const char *c = what; *c; c++)
            if (at_ >= text_.size() || take() != *c)
                fail(std::string("not XML: `") + what + "` is needed here");
    }

    static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

    void spaces()
    {
        while (at_ < text_.size() && is_space(text_[at_]))
            take();
    }

    void through(const char *end)
    {
        while (!looking_at(end))
            take();
        expect(end);
    }

    void declaration()
    {
        static const std::regex form("<\\?xml\\s+version\\s*=\\s*(['\"])1\\.[0-9]+\\1"
                                     "(\\s+encoding\\s*=\\s*(['\"])[A-Za-z][A-Za-z0-9._-]*\\3)?"
                                     "(\\s+standalone\\s*=\\s*(['\"])(yes|no)\\5)?\\s*\\?>");
        const auto end = text_.find("?>", at_);
        if (end == std::string::npos || end - at_ > 200 || !std::regex_match(text_.substr(at_, end + 2 - at_), form))
            fail("not XML: the declaration is not well-formed");
        through("?>");
    }

    // White space, comments and processing instructions.
    void skip()
    {
        for (;;) {
            spaces();
            if (looking_at("<!--")) {
                expect("<!--");
                through("-->");
            } else if (looking_at("<?")) {
                if (looking_at("<?xml "))
                    fail("not XML: a declaration stands at the beginning");
                expect("<?");
                through("?>");
            } else {
                return;
            }
        }
    }

    std::string name()
    {
        std::string found;
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_-.:", text_[at_])))
            found += take();
        if (found.empty())
            fail("not XML: a name is needed here");
        return found;
    }

    std::string value()
    {
        const char quote = take();
        if (quote != '"' && quote != '\'')
            fail("not XML: a value stands in quotes");
        std::string found;
        for (;;) {
            const char c = take();
            if (c == quote)
                return trimmed(found);
            if (c == '<' || c == '&')
                fail("a value holds no `<` and no entities");
            found += is_space(c) ? ' ' : c;
        }
    }

    static std::string trimmed(const std::string &text)
    {
        const auto first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
        return first == std::string::npos ? "" : text.substr(first, last - first + 1);
    }

    Element element(int depth)
    {
        if (depth > deepest)
            fail("elements are nested too deeply");
        Element found;
        found.line = line_;
        expect("<");
        found.tag = name();
        for (;;) {
            const bool apart = at_ < text_.size() && is_space(text_[at_]);
            spaces();
            if (looking_at("/>")) {
                expect("/>");
                return found;
            }
            if (looking_at(">"))
                break;
            if (!apart)
                fail("not XML: attributes stand apart");
            attribute(found);
        }
        expect(">");
        for (skip(); !looking_at("</"); skip()) {
            if (!looking_at("<") || looking_at("<!"))
                fail("`" + found.tag + "` holds elements only");
            found.children.push_back(element(depth + 1));
        }
        expect("</");
        if (name() != found.tag)
            fail("not XML: `" + found.tag + "` is not closed");
        spaces();
        expect(">");
        return found;
    }

    void attribute(Element &found)
    {
        const std::string key = name();
        if (found.get(key))
            fail("not XML: attribute `" + key + "` twice");
        spaces();
        expect("=");
        spaces();
        found.attributes.emplace_back(key, value());
    }

    const std::string &text_;
    std::size_t at_ = 0;
    int line_ = 1;
};

} // namespace

Element parse_xml(const std::string &text)
{
    return Parser(text).document();
}

} // namespace collc::oneccl
