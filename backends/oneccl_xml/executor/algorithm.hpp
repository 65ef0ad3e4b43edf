// An oneCCL-XML file: the operations of every rank. The schema (oneccl.xsd) defines their meaning.
#pragma once

#include "xml.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace collc::oneccl {

enum class Buffer { input, output, scratch };

struct Place {
    Buffer buffer = Buffer::input;
    std::int64_t offset = 0;
    bool operator==(const Place &other) const { return buffer == other.buffer && offset == other.offset; }
};

struct Message {
    bool sends;
    int peer, channel;
    Place place;
    std::int64_t chunk, count;
    int line;
};

// dst <- src, or dst <- src op with
struct Local {
    bool reduces;
    Place src, with, dst;
    std::int64_t chunk, count;
    int line;
};

struct Step {
    std::vector<std::pair<int, int>> syncs; // thread, step
    std::vector<Message> messages;
    std::vector<Local> locals;
    int line;
};

struct End {
    int peer, channel, line;
};

struct Thread {
    std::vector<End> outs, ins;
    std::vector<Step> steps;
};

struct Segment {
    std::int64_t chunk; // -1: any
    std::int64_t count;
    std::int64_t start; // offset of its first chunk in scratch
    int line;
};

struct Rank {
    std::int64_t input, output;
    std::vector<Segment> segments;
    std::vector<Thread> threads;
    int line;
};

// A shard of a custom collective: one rank has it before the call, `to` must have it after.
struct Shard {
    int from;
    std::set<int> to;
};

struct Algorithm {
    std::string name, collective;
    int root = -1;
    int members = 0; // the first ranks, which have data; the others only relay
    int channels = 0;
    std::int64_t chunks = 0;
    bool inplace = false, outofplace = false;
    std::int64_t min_bytes = 0, max_bytes = INT64_MAX;
    std::set<std::string> operations, datatypes;
    std::vector<Rank> ranks;
    std::vector<Shard> shards;                              // of a custom collective
    std::vector<std::vector<std::int64_t>> inputs, outputs; // its shards in the buffers of each rank
    int line = 0;

    int size() const { return static_cast<int>(ranks.size()); }
    bool reduces() const { return !operations.empty(); }
    // Return whether the count of a call is that of the whole vector, not of one rank's block.
    bool whole() const { return collective == "allreduce" || collective == "broadcast" || collective == "reduce"; }
    // Blocks of `count` elements in a rank's input and output.
    std::int64_t input_blocks(int rank) const;
    std::int64_t output_blocks(int rank) const;
    // Elements before chunk `chunk`, of `count` elements divided into `chunks`; numbers continue after the last chunk.
    std::int64_t edge(std::int64_t chunk, std::int64_t count) const;
    std::int64_t elements(std::int64_t chunk, std::int64_t chunks_moved, std::int64_t count) const
    {
        return edge(chunk + chunks_moved, count) - edge(chunk, count);
    }
};

// The segment of scratch with a chunk; null if there is none.
const Segment *segment_at(const Rank &rank, std::int64_t offset);

// Read a file and check all rules of the schema. Throws Refused, or runtime_error if it cannot be read.
Algorithm load(const std::string &path);

// rules.cpp: the rules of places, messages and dependencies (R2 to R14).
void require_rules(const Algorithm &algorithm);

} // namespace collc::oneccl
