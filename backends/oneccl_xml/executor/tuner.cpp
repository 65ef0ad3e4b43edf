#include "tuner.hpp"

#include "builtin.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <unistd.h>

namespace collc::oneccl {

namespace {

constexpr int classes = 27; // larger vectors than 64 MiB are not timed
constexpr int rounds = 10, most_calls = 50, most_lines = 1 << 14;
constexpr double batch = 5e-3; // seconds

int class_of(std::int64_t bytes)
{
    int found = 0;
    while (found < classes && (std::int64_t{1} << found) < bytes)
        found++;
    return found;
}

// Whether two buffers share memory; addresses of different arrays are compared as integers.
bool overlap(const void *a, std::int64_t a_bytes, const void *b, std::int64_t b_bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
    return first < second + static_cast<std::uintptr_t>(b_bytes) && second < first + static_cast<std::uintptr_t>(a_bytes);
}

} // namespace

Tuner::Tuner(const Algorithm &algorithm, int rank, Executor &executor, const ccl::communicator &own, std::string path)
    : algorithm_(algorithm), rank_(rank), executor_(executor), own_(own), path_(std::move(path))
{
}

// Whether oneCCL's own collective could carry out a call: all ranks have both buffers, apart unless oneCCL takes them in
// place, and it adds these elements on every machine. The file must be for calls out of place, which are timed.
bool Tuner::can_choose(const void *send, const void *recv, std::int64_t block, ccl::datatype type) const
{
    const Algorithm &a = algorithm_;
    const bool adds = type == ccl::datatype::int32 || type == ccl::datatype::int64 || type == ccl::datatype::float32 ||
                      type == ccl::datatype::float64;
    if (path_.empty() || !has_own(a.collective) || a.members < a.size() || (a.reduces() && !adds) || !a.outofplace)
        return false;
    const bool apart = !overlap(send, a.input_blocks(rank_) * block, recv, a.output_blocks(rank_) * block);
    return send && recv && (apart || (a.collective == "allreduce" && send == recv && a.inplace));
}

void Tuner::run(const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op)
{
    const auto block = static_cast<std::int64_t>(count * size_of(type));
    const std::int64_t total = block * (algorithm_.whole() ? 1 : algorithm_.size());
    const int size_class = class_of(total);
    if (!count || size_class == classes || total < algorithm_.min_bytes || total > algorithm_.max_bytes ||
        !can_choose(send, recv, block, type)) {
        executor_.run(send, recv, count, type, op);
        return;
    }
    if (choices_.empty())
        learn();
    char &choice = choices_[static_cast<std::size_t>(size_class)];
    if (choice == untimed)
        choice = time_both(count, type, op, size_class);
    if (choice == built_in)
        call_own(algorithm_.collective, send, recv, count, type, op, own_);
    else
        executor_.run(send, recv, count, type, op);
}

// Rank 0 reads what earlier runs timed and tells the others. A line that says nothing sensible is as good as none.
void Tuner::learn()
{
    choices_.assign(classes, untimed);
    if (rank_ == 0) {
        std::ifstream stream(path_);
        std::string line;
        for (int k = 0; k < most_lines && std::getline(stream, line); k++) {
            char kind[32];
            int ranks = 0, nodes = 0;
            long long bytes = 0;
            double own = 0, ours = 0;
            if (std::sscanf(line.c_str(), "%31[a-z-]\t%d\t%d\t%lld\t%lf\t%lf", kind, &ranks, &nodes, &bytes, &own, &ours) != 6 ||
                kind != algorithm_.collective || ranks != algorithm_.size() || !(own > 0) || !(ours > 0))
                continue;
            if (bytes >= 1 && bytes <= 1LL << (classes - 1))
                choices_[static_cast<std::size_t>(class_of(bytes))] = own < ours ? built_in : compiled;
        }
    }
    ccl::broadcast(choices_.data(), choices_.size(), ccl::datatype::int8, 0, own_).wait();
}

// Time both in turn, on memory of their own. A time is the least of ten, of the slowest rank, the same on all ranks.
Tuner::Choice Tuner::time_both(std::size_t count, ccl::datatype type, Operation op, int size_class) const
{
    const std::size_t block = count * size_of(type);
    std::vector<char> send(block * static_cast<std::size_t>(algorithm_.input_blocks(rank_)));
    std::vector<char> recv(block * static_cast<std::size_t>(algorithm_.output_blocks(rank_)));
    const std::function<void()> calls[2] = {
        [&] { call_own(algorithm_.collective, send.data(), recv.data(), count, type, op, own_); },
        [&] { executor_.run(send.data(), recv.data(), count, type, op); },
    };
    double best[2] = {0, 0};
    int number = 1;
    for (int round = 0; round <= rounds; round++) {
        double mine[2], all[2];
        for (int which = 0; which < 2; which++) {
            ccl::barrier(own_).wait();
            const auto begin = std::chrono::steady_clock::now();
            for (int k = 0; k < number; k++)
                calls[which]();
            mine[which] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / number;
        }
        ccl::allreduce(mine, all, 2, ccl::reduction::max, own_).wait();
        for (int which = 0; which < 2; which++) // the first calls of all make connections
            best[which] = round <= 1 ? all[which] : std::min(best[which], all[which]);
        number = std::clamp(static_cast<int>(batch / std::max(best[0], best[1])), 1, most_calls);
    }
    if (rank_ == 0)
        keep(best, size_class);
    return best[0] < best[1] ? built_in : compiled;
}

// Add a line in one piece: other processes may add to the file at the same time. All ranks count as one node.
void Tuner::keep(const double (&best)[2], int size_class) const
{
    char line[160];
    const int length = std::snprintf(line, sizeof line, "%s\t%d\t1\t%lld\t%.3f\t%.3f\n", algorithm_.collective.c_str(),
                                     algorithm_.size(), 1LL << size_class, best[0] * 1e6, best[1] * 1e6);
    const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    if (write(file, line, static_cast<std::size_t>(length)) != length)
        std::fprintf(stderr, "collc-oneccl: %s does not keep times\n", path_.c_str());
    close(file);
}

} // namespace collc::oneccl
