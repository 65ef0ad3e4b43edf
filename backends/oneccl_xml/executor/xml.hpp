// The part of XML that oneCCL-XML needs: elements and attributes, without external or expanding entities.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace collc::oneccl {

// A mistake in a file, and its line.
struct Refused : std::runtime_error {
    Refused(int line, const std::string &message)
        : std::runtime_error("line " + std::to_string(line) + ": " + message)
    {
    }
};

struct Element {
    std::string tag;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<Element> children;
    int line = 0;

    const std::string *get(const std::string &name) const
    {
        for (const auto &[key, value] : attributes)
            if (key == name)
                return &value;
        return nullptr;
    }
};

// Return the root element of a text. Throws Refused for text that is not well-formed, for text between elements,
// document types and entities.
Element parse_xml(const std::string &text);

} // namespace collc::oneccl
