// Executes an algorithm on oneCCL: one process a rank, one communicator a channel.
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
    // `channels` are communicators of as many ranks as the algorithm has, at least one for each of its channels; nothing
    // else may send on them during a call. They and the algorithm stay the caller's and must live as long. A call that gets no further for `patience` fails. Throws runtime_error.
    Executor(const Algorithm &algorithm, int rank, const std::vector<ccl::communicator> &channels,
             std::chrono::milliseconds patience = std::chrono::seconds(60));

    // Perform the collective with `count` elements as oneCCL's own call counts them. In place `send` is where the
    // rank's block of `recv` is, or `recv` where that of `send` is. Throws runtime_error for a call that the algorithm
    // is not for, before anything is sent. A rank without input or output passes nullptr.
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
    const std::vector<ccl::communicator> &channels_; // the caller's
    std::unique_ptr<std::mutex[]> locks_; // oneCCL's calls on one communicator, one at a time
    std::chrono::milliseconds patience_;
    std::vector<char> scratch_;
};

} // namespace collc::oneccl
