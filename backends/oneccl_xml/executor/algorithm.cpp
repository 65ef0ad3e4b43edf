#include "algorithm.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

namespace collc::oneccl {

namespace {

constexpr std::int64_t most_natural = 2147483647;
const char *const name_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
constexpr std::size_t most_bytes = std::size_t(256) << 20;

const std::set<std::string> all_operations{"sum", "prod", "min", "max"};
const std::set<std::string> all_datatypes{"int8",  "uint8",  "int16",   "uint16",   "int32",   "uint32",
                                          "int64", "uint64", "float16", "bfloat16", "float32", "float64"};

std::string quoted(const std::string &text)
{
    return "`" + text + "`";
}

const std::string &word(const Element &element, const char *name)
{
    const std::string *value = element.get(name);
    if (!value)
        throw Refused(element.line, quoted(element.tag) + " lacks the attribute " + quoted(name));
    return *value;
}

std::int64_t parsed(const Element &element, const char *name, const std::string &text, std::int64_t low, std::int64_t high)
{
    const bool digits = !text.empty() && text.size() <= 19 && text.find_first_not_of("0123456789") == std::string::npos &&
                        (text[0] != '0' || text.size() == 1);
    const std::uint64_t value = digits ? std::stoull(text) : 0;
    if (!digits || value < std::uint64_t(low) || value > std::uint64_t(high))
        throw Refused(element.line, quoted(name) + " of " + quoted(element.tag) + " needs a whole number from " +
                                        std::to_string(low) + " to " + std::to_string(high) + ", found " + quoted(text));
    return static_cast<std::int64_t>(value);
}

std::int64_t number(const Element &e, const char *name, std::int64_t low = 0, std::int64_t high = most_natural)
{
    return parsed(e, name, word(e, name), low, high);
}

int small(const Element &e, const char *name, std::int64_t low = 0, std::int64_t high = most_natural)
{
    return static_cast<int>(number(e, name, low, high));
}

void require_known(const Element &element, std::initializer_list<const char *> known)
{
    for (const auto &[name, value] : element.attributes)
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw Refused(element.line, quoted(element.tag) + " has no attribute " + quoted(name));
}

void require_empty(const Element &element)
{
    if (!element.children.empty())
        throw Refused(element.children[0].line, quoted(element.tag) + " must be empty");
}

std::set<std::string> words(const Element &element, const char *name, const std::set<std::string> &known)
{
    std::set<std::string> found;
    std::istringstream stream(word(element, name));
    for (std::string one; stream >> one; found.insert(one))
        if (!known.count(one))
            throw Refused(element.line, quoted(one) + " is not a value of " + quoted(name));
    if (found.empty())
        throw Refused(element.line, quoted(name) + " of " + quoted(element.tag) + " is empty");
    return found;
}

Place place(const Element &e, const char *buffer, const char *offset)
{
    const std::string &name = word(e, buffer);
    Place found;
    if (name == "input")
        found.buffer = Buffer::input;
    else if (name == "output")
        found.buffer = Buffer::output;
    else if (name == "scratch")
        found.buffer = Buffer::scratch;
    else
        throw Refused(e.line, quoted(buffer) + " is input, output or scratch, found " + quoted(name));
    found.offset = number(e, offset);
    return found;
}

Message message(const Element &e)
{
    require_known(e, {"peer", "channel", "buffer", "offset", "chunk", "count"});
    require_empty(e);
    return {e.tag == "send", small(e, "peer"), small(e, "channel"), place(e, "buffer", "offset"),
            number(e, "chunk"), number(e, "count", 1), e.line};
}

Local local(const Element &e)
{
    Local found{};
    found.reduces = e.tag == "reduce";
    if (found.reduces)
        require_known(e, {"src", "srcoff", "with", "withoff", "dst", "dstoff", "chunk", "count"});
    else
        require_known(e, {"src", "srcoff", "dst", "dstoff", "chunk", "count"});
    require_empty(e);
    found.src = place(e, "src", "srcoff");
    found.dst = place(e, "dst", "dstoff");
    found.with = found.reduces ? place(e, "with", "withoff") : found.src;
    found.chunk = number(e, "chunk");
    found.count = number(e, "count", 1);
    found.line = e.line;
    return found;
}

std::pair<int, int> step_name(const Element &e, const char *name)
{
    const std::string &text = word(e, name);
    const auto dot = text.find('.');
    if (dot == std::string::npos)
        throw Refused(e.line, quoted(name) + " is THREAD.STEP, found " + quoted(text));
    return {static_cast<int>(parsed(e, name, text.substr(0, dot), 0, 999999999)),
            static_cast<int>(parsed(e, name, text.substr(dot + 1), 0, 999999999))};
}

Step step(const Element &e)
{
    require_known(e, {"id"});
    Step found{};
    found.line = e.line;
    int last = 0; // the kind of child that may follow: syncs, then messages, then the rest
    for (const Element &child : e.children) {
        const int now = child.tag == "sync"                              ? 0
                        : child.tag == "send" || child.tag == "recv"     ? 1
                        : child.tag == "copy" || child.tag == "reduce"   ? 2
                                                                         : -1;
        if (now < last)
            throw Refused(child.line, quoted(child.tag) + " is not allowed here: syncs, then messages, then the rest");
        last = now;
        if (now == 0) {
            require_known(child, {"step"});
            require_empty(child);
            found.syncs.push_back(step_name(child, "step"));
        } else if (now == 1) {
            found.messages.push_back(message(child));
        } else {
            found.locals.push_back(local(child));
        }
    }
    return found;
}

Thread thread(const Element &e, int number_of)
{
    require_known(e, {"id"});
    if (small(e, "id") != number_of)
        throw Refused(e.line, "expected thread " + std::to_string(number_of) + " here (R1)");
    Thread found;
    int last = 0;
    for (const Element &child : e.children) {
        const int now = child.tag == "out" ? 0 : child.tag == "in" ? 1 : child.tag == "step" ? 2 : -1;
        if (now < last)
            throw Refused(child.line, quoted(child.tag) + " is not allowed here: outs, then ins, then steps");
        last = now;
        if (now == 2) {
            const std::pair<int, int> due{number_of, static_cast<int>(found.steps.size())};
            if (step_name(child, "id") != due)
                throw Refused(child.line, "expected step " + std::to_string(due.first) + "." + std::to_string(due.second) +
                                              " here (R1)");
            found.steps.push_back(step(child));
        } else {
            require_known(child, {"peer", "channel"});
            require_empty(child);
            (now ? found.ins : found.outs).push_back({small(child, "peer"), small(child, "channel"), child.line});
        }
    }
    if (found.steps.empty())
        throw Refused(e.line, "a thread has at least one step");
    return found;
}

Rank rank(const Element &e, int number_of)
{
    if (e.tag != "rank")
        throw Refused(e.line, "expected `rank`, found " + quoted(e.tag));
    require_known(e, {"id", "input", "output"});
    if (small(e, "id") != number_of)
        throw Refused(e.line, "expected rank " + std::to_string(number_of) + " here (R1)");
    Rank found{number(e, "input"), number(e, "output"), {}, {}, e.line};
    std::int64_t start = 0;
    for (const Element &child : e.children) {
        if (child.tag == "segment" && found.threads.empty()) {
            require_known(child, {"chunk", "count"});
            require_empty(child);
            const std::int64_t first = child.get("chunk") ? number(child, "chunk") : -1;
            found.segments.push_back({first, number(child, "count", 1), start, child.line});
            start += found.segments.back().count;
        } else if (child.tag == "thread") {
            found.threads.push_back(thread(child, static_cast<int>(found.threads.size())));
        } else {
            throw Refused(child.line, quoted(child.tag) + " is not allowed here: segments, then threads");
        }
    }
    return found;
}

constexpr std::int64_t most_places = 1 << 24;

void read_shards(const Element &e, Algorithm &found)
{
    require_known(e, {});
    found.collective = e.tag;
    for (const Element &child : e.children) {
        if (child.tag != "shard")
            throw Refused(child.line, "expected `shard`, found " + quoted(child.tag));
        require_known(child, {"from", "to", "count"});
        require_empty(child);
        Shard shard{small(child, "from"), {}};
        std::istringstream stream(word(child, "to"));
        std::int64_t last = -1;
        for (std::string one; stream >> one;) {
            const std::int64_t rank = parsed(child, "to", one, 0, most_natural);
            if (rank <= last)
                throw Refused(child.line, "`to` needs ascending ranks (R15)");
            shard.to.insert(static_cast<int>(last = rank));
        }
        const std::int64_t count = number(child, "count", 1);
        if (static_cast<std::int64_t>(found.shards.size()) + count > most_places)
            throw Refused(child.line, "more than " + std::to_string(most_places) + " shards (R15)");
        found.shards.insert(found.shards.end(), static_cast<std::size_t>(count), shard);
    }
    if (found.shards.empty())
        throw Refused(e.line, "`custom` has no shard");
}

// Place the shards of a custom collective in the buffers of the ranks.
void place_shards(Algorithm &found, int line)
{
    const auto ranks = static_cast<std::int64_t>(found.ranks.size());
    if (static_cast<std::int64_t>(found.shards.size()) * ranks > most_places)
        throw Refused(line, "more than " + std::to_string(most_places / ranks) + " shards (R15)");
    found.inputs.resize(found.ranks.size());
    found.outputs.resize(found.ranks.size());
    for (std::size_t s = 0; s < found.shards.size(); s++) {
        const Shard &shard = found.shards[s];
        if (shard.from >= ranks || (!shard.to.empty() && *shard.to.rbegin() >= ranks))
            throw Refused(line, "a shard is from or to a rank that does not exist (R15)");
        found.inputs[static_cast<std::size_t>(shard.from)].push_back(static_cast<std::int64_t>(s));
        for (const int rank : shard.to)
            found.outputs[static_cast<std::size_t>(rank)].push_back(static_cast<std::int64_t>(s));
    }
}

void read_collective(const Element &e, Algorithm &found)
{
    static const std::set<std::string> rooted{"broadcast", "reduce", "gather", "scatter"};
    static const std::set<std::string> reducing{"allreduce", "reduce", "reduce-scatter"};
    const bool has_root = rooted.count(e.tag), has_ops = reducing.count(e.tag);
    if (e.tag == "custom") {
        read_shards(e, found);
        return;
    }
    if (!has_root && !has_ops && e.tag != "allgather" && e.tag != "alltoall")
        throw Refused(e.line, "expected a collective, found " + quoted(e.tag));
    require_empty(e);
    for (const auto &[name, value] : e.attributes)
        if (!(name == "root" && has_root) && !(name == "ops" && has_ops))
            throw Refused(e.line, quoted(e.tag) + " has no attribute " + quoted(name));
    found.collective = e.tag;
    if (has_root)
        found.root = small(e, "root");
    if (has_ops)
        found.operations = words(e, "ops", all_operations);
}

Algorithm build(const Element &root)
{
    if (root.tag != "oneccl")
        throw Refused(root.line, "an oneCCL-XML file holds one `oneccl` element, found " + quoted(root.tag));
    require_known(root, {"version", "name", "ranks", "members", "channels", "chunks", "inplace", "outofplace", "dtypes", "minBytes",
                         "maxBytes"});
    number(root, "version", 1, 1);
    Algorithm found;
    found.line = root.line;
    found.name = word(root, "name");
    if (found.name.empty() || found.name.size() > 63 || found.name.find_first_not_of(name_letters) != std::string::npos)
        throw Refused(root.line, "`name` is 1 to 63 letters, digits and _ . + -, found " + quoted(found.name));
    found.channels = small(root, "channels", 1, 1024);
    found.chunks = number(root, "chunks", 1);
    found.inplace = number(root, "inplace", 0, 1);
    found.outofplace = number(root, "outofplace", 0, 1);
    found.datatypes = root.get("dtypes") ? words(root, "dtypes", all_datatypes) : all_datatypes;
    if (root.get("minBytes"))
        found.min_bytes = number(root, "minBytes", 0, INT64_MAX);
    if (root.get("maxBytes"))
        found.max_bytes = number(root, "maxBytes", 0, INT64_MAX);
    if (root.children.empty())
        throw Refused(root.line, "no collective is named");
    read_collective(root.children[0], found);
    for (std::size_t k = 1; k < root.children.size(); k++)
        found.ranks.push_back(rank(root.children[k], static_cast<int>(k) - 1));
    if (number(root, "ranks", 1, 65536) != found.size())
        throw Refused(root.line, "`ranks` is " + word(root, "ranks") + ", found " + std::to_string(found.size()) + " ranks");
    if (found.root >= found.size())
        throw Refused(root.children[0].line, "the root is not a rank");
    found.members = root.get("members") ? small(root, "members", 1, 65536) : found.size();
    if (root.get("members") && (found.members >= found.size() || found.members <= found.root || !found.shards.empty()))
        throw Refused(root.line, "`members` is " + word(root, "members") +
                                     ", needed fewer than the ranks and more than the root, not with custom (R16)");
    place_shards(found, root.children[0].line);
    return found;
}

} // namespace

std::int64_t Algorithm::input_blocks(int rank) const
{
    if (!shards.empty())
        return static_cast<std::int64_t>(inputs[static_cast<std::size_t>(rank)].size());
    if (rank >= members)
        return 0;
    if (collective == "broadcast" || collective == "scatter") {
        const std::int64_t held = collective == "scatter" ? members : 1;
        return rank == root ? held : 0;
    }
    return collective == "reduce-scatter" || collective == "alltoall" ? members : 1;
}

std::int64_t Algorithm::output_blocks(int rank) const
{
    if (!shards.empty())
        return static_cast<std::int64_t>(outputs[static_cast<std::size_t>(rank)].size());
    if (rank >= members)
        return 0;
    if (collective == "reduce" || collective == "gather") {
        const std::int64_t held = collective == "gather" ? members : 1;
        return rank == root ? held : 0;
    }
    return collective == "allgather" || collective == "alltoall" ? members : 1;
}

std::int64_t Algorithm::edge(std::int64_t chunk, std::int64_t count) const
{
    const std::int64_t block = chunk / chunks, inside = chunk % chunks;
    return block * count + inside * (count / chunks) + std::min(inside, count % chunks);
}

const Segment *segment_at(const Rank &rank, std::int64_t offset)
{
    auto after = std::upper_bound(rank.segments.begin(), rank.segments.end(), offset,
                                  [](std::int64_t at, const Segment &s) { return at < s.start; });
    if (after == rank.segments.begin())
        return nullptr;
    const Segment &found = *--after;
    return offset < found.start + found.count ? &found : nullptr;
}

Algorithm load(const std::string &path)
{
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw std::runtime_error("cannot be read");
    std::string text;
    std::vector<char> part(1 << 16);
    while (stream.read(part.data(), static_cast<std::streamsize>(part.size())) || stream.gcount() > 0) {
        text.append(part.data(), static_cast<std::size_t>(stream.gcount()));
        if (text.size() > most_bytes)
            throw std::runtime_error("is larger than 256 MiB");
    }
    Algorithm found = build(parse_xml(text));
    require_rules(found);
    return found;
}

} // namespace collc::oneccl
