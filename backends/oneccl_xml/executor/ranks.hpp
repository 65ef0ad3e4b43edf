// Processes: their start, their connection, and their work.
#pragma once

#include "check.hpp"

#include <string>
#include <vector>

namespace collc::oneccl {

struct Options {
    std::vector<std::string> paths, times; // times: one for each path, or none
    std::string folder;
    std::vector<std::size_t> counts;
    std::vector<std::string> types, ops, places;
    int repeats = 1, warmup = 0, timeout = 120, rank = -1;
    bool load_only = false, compare = false;
};

// The calls of one file.
struct Job {
    Algorithm algorithm;
    std::vector<Case> cases;
};

// Return all calls. Throws runtime_error if the file does not support one of them.
std::vector<Case> make_cases(const Algorithm &algorithm, const Options &options);

// Start `size` processes, one per rank, with the arguments of this one and `--rank`; return the exit status of all.
int start_ranks(char **argv, int size, const Options &options);

// Run one rank: meet the others in the folder, perform the calls of all files; return the exit status.
int run_rank(const std::vector<Job> &jobs, const Options &options);

} // namespace collc::oneccl
