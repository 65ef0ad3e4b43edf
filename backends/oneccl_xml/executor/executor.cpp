#include "executor.hpp"

#include <cstring>
#include <exception>
#include <thread>

namespace collc::oneccl {

using Clock = std::chrono::steady_clock;

struct Executor::Call {
    char *input, *output;
    std::int64_t count;
    std::size_t width; // bytes of an element
    ccl::datatype type;
    Operation op;
    std::vector<std::int64_t> segments; // first byte of each in scratch
    std::vector<std::size_t> done;      // steps of each thread
    std::mutex mutex;                   // guards `done` and `failure`
    std::condition_variable moved;
    std::exception_ptr failure;
    std::atomic<bool> failed{false};

    void fail(std::exception_ptr reason)
    {
        const std::lock_guard<std::mutex> hold(mutex);
        if (!failure)
            failure = reason;
        failed = true;
        moved.notify_all();
    }
};

Executor::Executor(const Algorithm &algorithm, int rank, const std::vector<ccl::communicator> &channels,
                   std::chrono::milliseconds patience)
    : algorithm_(algorithm), rank_(algorithm.ranks.at(static_cast<std::size_t>(rank))), number_(rank),
      channels_(channels), locks_(new std::mutex[channels_.size()]), patience_(patience)
{
    if (static_cast<int>(channels_.size()) < algorithm.channels)
        throw std::runtime_error("the algorithm needs " + std::to_string(algorithm.channels) + " communicators");
    for (const ccl::communicator &one : channels_)
        if (one.size() != algorithm.size() || one.rank() != rank)
            throw std::runtime_error("the algorithm is for " + std::to_string(algorithm.size()) +
                                     " ranks; a communicator has " + std::to_string(one.size()));
}

void Executor::require(const Call &call) const
{
    const Algorithm &a = algorithm_;
    const std::int64_t in = a.input_blocks(number_) * call.count, out = a.output_blocks(number_) * call.count;
    if ((in && !call.input) || (out && !call.output))
        throw std::runtime_error("a buffer is missing");
    const std::int64_t blocks = a.whole() ? 1 : a.shards.empty() ? a.members : static_cast<std::int64_t>(a.shards.size());
    const std::int64_t total = blocks * call.count * static_cast<std::int64_t>(call.width);
    if (total < a.min_bytes || total > a.max_bytes)
        throw std::runtime_error("the file does not serve calls of " + std::to_string(total) + " bytes");
    if (!in || !out || !a.shards.empty())
        return;
    const std::int64_t own = number_ * call.count * static_cast<std::int64_t>(call.width);
    const char *expected = in < out ? call.output + own : call.output;
    const char *found = in > out ? call.input + own : call.input;
    if (!(found == expected ? a.inplace : a.outofplace))
        throw std::runtime_error(std::string("the file does not serve calls ") + (found == expected ? "in place" : "out of place"));
}

void Executor::run(const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op)
{
    Call call{};
    call.input = static_cast<char *>(const_cast<void *>(send));
    call.output = static_cast<char *>(recv);
    call.count = static_cast<std::int64_t>(count);
    call.type = type;
    call.width = size_of(type);
    call.op = op;
    require(call);
    if (!count)
        return;
    std::int64_t bytes = 0;
    for (const Segment &segment : rank_.segments) {
        call.segments.push_back(bytes);
        // Chunks 0, 1, .. are the larger ones, so no other run of the same number of chunks is longer.
        const std::int64_t first = segment.chunk < 0 ? 0 : segment.chunk;
        bytes += algorithm_.elements(first, segment.count, call.count) * static_cast<std::int64_t>(call.width);
    }
    if (scratch_.size() < static_cast<std::size_t>(bytes))
        scratch_.resize(static_cast<std::size_t>(bytes));
    call.done.assign(rank_.threads.size(), 0);
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < rank_.threads.size(); t++)
        others.emplace_back([this, &call, t] { thread(call, static_cast<int>(t)); });
    if (!rank_.threads.empty())
        thread(call, 0);
    for (std::thread &one : others)
        one.join();
    if (call.failure)
        std::rethrow_exception(call.failure);
}

void Executor::thread(Call &call, int number)
{
    try {
        const Thread &mine = rank_.threads[static_cast<std::size_t>(number)];
        for (const Step &one : mine.steps) {
            step(call, number, one);
            if (call.failed)
                return;
            const std::lock_guard<std::mutex> hold(call.mutex);
            call.done[static_cast<std::size_t>(number)]++;
            call.moved.notify_all();
        }
    } catch (...) {
        call.fail(std::current_exception());
    }
}

char *Executor::at(const Call &call, const Place &place, std::int64_t chunk) const
{
    const auto width = static_cast<std::int64_t>(call.width);
    if (place.buffer == Buffer::scratch) {
        const Segment *segment = segment_at(rank_, place.offset);
        const std::int64_t first = segment->chunk < 0 ? chunk : segment->chunk;
        const std::int64_t before = algorithm_.elements(first, place.offset - segment->start, call.count);
        char *start = const_cast<char *>(scratch_.data()) + call.segments[static_cast<std::size_t>(segment - rank_.segments.data())];
        return start + before * width;
    }
    char *base = place.buffer == Buffer::input ? call.input : call.output;
    return base + algorithm_.edge(place.offset, call.count) * width;
}

void Executor::step(Call &call, int number, const Step &step)
{
    if (!step.syncs.empty()) {
        std::unique_lock<std::mutex> hold(call.mutex);
        const auto ready = [&] {
            for (const auto &[t, s] : step.syncs)
                if (call.done[static_cast<std::size_t>(t)] <= static_cast<std::size_t>(s))
                    return false;
            return true;
        };
        call.moved.wait(hold, [&] { return call.failed || ready(); });
        if (call.failed)
            return;
    }
    // Post all messages, then wait for all: opposite messages of two ranks cannot deadlock.
    std::vector<std::pair<ccl::event, const Message *>> posted;
    for (const Message &m : step.messages) {
        const auto moved = static_cast<std::size_t>(algorithm_.elements(m.chunk, m.count, call.count));
        if (!moved)
            continue;
        const auto channel = static_cast<std::size_t>(m.channel);
        char *data = at(call, m.place, m.chunk);
        const std::lock_guard<std::mutex> hold(locks_[channel]);
        posted.emplace_back(m.sends ? ccl::send(data, moved, call.type, m.peer, channels_[channel])
                                    : ccl::recv(data, moved, call.type, m.peer, channels_[channel]),
                            &m);
    }
    auto last = Clock::now();
    for (int idle = 0; !posted.empty();) {
        const std::size_t before = posted.size();
        for (std::size_t k = 0; k < posted.size();) {
            const std::lock_guard<std::mutex> hold(locks_[static_cast<std::size_t>(posted[k].second->channel)]);
            if (posted[k].first.test())
                posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(k));
            else
                k++;
        }
        if (posted.size() < before) {
            idle = 0;
            last = Clock::now();
            continue;
        }
        if (Clock::now() - last > patience_) {
            const Message &m = *posted[0].second;
            // Incomplete events must not be destroyed; the caller ends the process after this error.
            new std::vector<std::pair<ccl::event, const Message *>>(std::move(posted));
            throw std::runtime_error("thread " + std::to_string(number) + " waits too long for rank " + std::to_string(m.peer) +
                                     " on channel " + std::to_string(m.channel) + " (line " + std::to_string(m.line) + ")");
        }
        if (++idle < 200)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    for (const Local &l : step.locals) {
        const auto moved = static_cast<std::size_t>(algorithm_.elements(l.chunk, l.count, call.count));
        char *dst = at(call, l.dst, l.chunk), *src = at(call, l.src, l.chunk);
        if (l.reduces)
            reduce(dst, src, at(call, l.with, l.chunk), moved, call.type, call.op);
        else if (dst != src)
            std::memmove(dst, src, moved * call.width);
    }
}

} // namespace collc::oneccl
