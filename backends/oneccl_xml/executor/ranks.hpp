// Processes: starting them, meeting, and what each does.
#pragma once

#include "check.hpp"

#include <string>
#include <vector>

namespace collc::oneccl {

struct Options {
    std::vector<std::string> paths;
    std::string folder;
    std::vector<std::size_t> counts;
    std::vector<std::string> types, ops, places;
    int repeats = 1, warmup = 0, timeout = 120, rank = -1;
    bool load_only = false, compare = false;
};

// What one file is to do.
struct Job {
    Algorithm algorithm;
    std::vector<Case> cases;
};

// Every call to be made. Throws runtime_error where the file is not for one of them.
std::vector<Case> make_cases(const Algorithm &algorithm, const Options &options);

// Start `size` processes, one a rank, with the arguments of this one and `--rank`; return the exit status of all.
int start_ranks(char **argv, int size, const Options &options);

// Be one rank: meet the others in the folder, make the calls of all files; return the exit status.
int run_rank(const std::vector<Job> &jobs, const Options &options);

} // namespace collc::oneccl
