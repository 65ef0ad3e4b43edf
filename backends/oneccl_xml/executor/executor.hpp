// Executes an algorithm on oneCCL: one process per rank, one communicator per channel.
#pragma once

#include "algorithm.hpp"
#include "elements.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace collc::oneccl {

class Executor {
public:
    // `channels` are communicators of the algorithm's number of ranks, at least one for each of its channels. No other
    // call may use them at the same time. The caller owns them and the algorithm, which must outlive the executor. A
    // call without progress for `patience` fails. Throws runtime_error.
    Executor(const Algorithm &algorithm, int rank, const std::vector<ccl::communicator> &channels,
             std::chrono::milliseconds patience = std::chrono::seconds(60));

    // Perform the collective with `count` elements, counted as in oneCCL's own call. In place, `send` is the address of
    // the rank's block of `recv`, or `recv` that of the rank's block of `send`. Throws runtime_error before any message
    // if the algorithm does not support the call. A rank without input or output passes nullptr.
    void run(const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op = Operation::sum);

private:
    struct Call;

    void require(const Call &call) const;
    void thread(Call &call, int number);
    void step(Call &call, int number, const Step &step);
    char *at(const Call &call, const Place &place, std::int64_t chunk) const;

    const Algorithm &algorithm_;
    const Rank &rank_;
    const int number_;
    const std::vector<ccl::communicator> &channels_; // of the caller
    std::unique_ptr<std::mutex[]> locks_; // one call of oneCCL at a time on each communicator
    std::chrono::milliseconds patience_;
    std::vector<char> scratch_;
};

} // namespace collc::oneccl
