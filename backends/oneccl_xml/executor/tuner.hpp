// Whichever is faster: an algorithm, or oneCCL's own collective.
#pragma once

#include "executor.hpp"

#include <string>
#include <vector>

namespace collc::oneccl {

class Tuner {
public:
    // Calls of a class of sizes (up to a power of two of bytes of the whole vector) use what was faster for it. The
    // first call of a class times both, if `path` has no times of an earlier run; rank 0 reads and adds to that file.
    // `own` is a communicator for oneCCL's own collective. With an empty path all calls use the algorithm.
    Tuner(const Algorithm &algorithm, int rank, Executor &executor, const ccl::communicator &own, std::string path);

    // As Executor::run. Collective, with equal arguments on all ranks but the buffers.
    void run(const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op = Operation::sum);

private:
    enum Choice : char { untimed, compiled, built_in };

    bool can_choose(const void *send, const void *recv, std::int64_t block, ccl::datatype type) const;
    void learn();
    Choice time_both(std::size_t count, ccl::datatype type, Operation op, int size_class) const;
    void keep(const double (&best)[2], int size_class) const;

    const Algorithm &algorithm_;
    const int rank_;
    Executor &executor_;
    const ccl::communicator &own_;
    const std::string path_;
    std::vector<char> choices_; // by class; empty until the first call
};

} // namespace collc::oneccl
