// The rules of the schema for places, connections, messages and dependencies.
#include "algorithm.hpp"

#include <deque>
#include <tuple>

namespace collc::oneccl {

namespace {

using Link = std::tuple<int, int, int>;  // from, to, channel
using StepAt = std::tuple<int, int, int>; // rank, thread, step

std::string text(const Place &place)
{
    static const char *names[] = {"input", "output", "scratch"};
    return std::string(names[static_cast<int>(place.buffer)]) + " chunk " + std::to_string(place.offset);
}

[[noreturn]] void refuse(int line, const std::string &what, const char *rule)
{
    throw Refused(line, what + " (" + rule + ")");
}

void require_place(const Algorithm &a, const Rank &rank, const Place &place, std::int64_t chunk, std::int64_t count, int line)
{
    std::int64_t held;
    if (place.buffer == Buffer::scratch) {
        const Segment *segment = segment_at(rank, place.offset);
        if (!segment || place.offset + count > segment->start + segment->count)
            refuse(line, text(place) + " and what follows are not in one segment", "R6");
        if (segment->chunk < 0) {
            if (place.offset != segment->start)
                refuse(line, text(place) + " is inside a segment that holds any chunks from its beginning on", "R6");
            return;
        }
        held = (segment->chunk + place.offset - segment->start) % a.chunks;
    } else {
        const std::int64_t size = place.buffer == Buffer::input ? rank.input : rank.output;
        if (place.offset + count > size)
            refuse(line, text(place) + " and what follows are beyond the " + std::to_string(size) + " that the rank has", "R6");
        held = place.offset % a.chunks;
    }
    if (held != chunk)
        refuse(line, text(place) + " is for chunk " + std::to_string(held) + ", not for chunk " + std::to_string(chunk), "R6");
}

void require_chunk(const Algorithm &a, std::int64_t chunk, int line, const char *rule)
{
    if (chunk >= a.chunks)
        refuse(line, "chunk " + std::to_string(chunk) + " is beyond the " + std::to_string(a.chunks) + " of the count", rule);
}

void require_apart(const Place &p, const Place &q, std::int64_t count, int line)
{
    if (p.buffer == q.buffer && p.offset != q.offset && std::abs(p.offset - q.offset) < count)
        refuse(line, text(p) + " and " + text(q) + " overlap", "R8");
}

void require_step(const Algorithm &a, const Rank &rank, const Thread &thread, const Step &step)
{
    if (step.syncs.empty() && step.messages.empty() && step.locals.empty())
        refuse(step.line, "the step is empty", "R10");
    for (const auto &[t, s] : step.syncs)
        if (t >= static_cast<int>(rank.threads.size()) || s >= static_cast<int>(rank.threads[t].steps.size()))
            throw Refused(step.line, "a sync names a step that does not exist");
    std::set<std::tuple<bool, int, int>> posted;
    for (const Message &m : step.messages) {
        bool owned = false;
        for (const End &end : m.sends ? thread.outs : thread.ins)
            owned = owned || (end.peer == m.peer && end.channel == m.channel);
        if (!owned)
            throw Refused(m.line, "the thread does not own that end of the connection");
        if (!posted.insert({m.sends, m.peer, m.channel}).second)
            throw Refused(m.line, "a step has one message to or from a peer on a channel");
        require_chunk(a, m.chunk, m.line, "R5");
        require_place(a, rank, m.place, m.chunk, m.count, m.line);
    }
    for (const Local &l : step.locals) {
        require_chunk(a, l.chunk, l.line, "R5");
        for (const Place &place : {l.src, l.with, l.dst})
            require_place(a, rank, place, l.chunk, l.count, l.line);
        require_apart(l.src, l.dst, l.count, l.line);
        require_apart(l.src, l.with, l.count, l.line);
        require_apart(l.with, l.dst, l.count, l.line);
        if (l.reduces && !a.reduces())
            refuse(l.line, a.collective + " does not reduce", "R9");
    }
}

void require_rank(const Algorithm &a, int r)
{
    const Rank &rank = a.ranks[r];
    if (rank.input != a.input_blocks(r) * a.chunks || rank.output != a.output_blocks(r) * a.chunks)
        refuse(rank.line, "the buffers of rank " + std::to_string(r) + " are not those of " + a.collective, "R12");
    for (const Segment &segment : rank.segments)
        if (segment.chunk >= 0)
            require_chunk(a, segment.chunk, segment.line, "R4");
    std::set<std::tuple<bool, int, int>> owned;
    for (const Thread &thread : rank.threads)
        for (const bool sends : {true, false})
            for (const End &end : sends ? thread.outs : thread.ins) {
                if (end.peer == r || end.peer >= a.size())
                    refuse(end.line, "peer " + std::to_string(end.peer) + " is not another rank", "R2");
                if (end.channel >= a.channels)
                    refuse(end.line, "channel " + std::to_string(end.channel) + " is beyond those of the file", "R3");
                if (!owned.insert({sends, end.peer, end.channel}).second)
                    throw Refused(end.line, "an end of a connection belongs to one thread");
            }
    for (const Thread &thread : rank.threads)
        for (const Step &step : thread.steps)
            require_step(a, rank, thread, step);
}

// ---- messages and dependencies

struct Meeting {
    const Message *message;
    StepAt at;
};

using Links = std::map<Link, std::pair<std::vector<Meeting>, std::vector<Meeting>>>;

Links require_matched(const Algorithm &a)
{
    Links links;
    for (int r = 0; r < a.size(); r++)
        for (int t = 0; t < static_cast<int>(a.ranks[r].threads.size()); t++)
            for (int s = 0; s < static_cast<int>(a.ranks[r].threads[t].steps.size()); s++)
                for (const Message &m : a.ranks[r].threads[t].steps[s].messages) {
                    auto &both = links[m.sends ? Link{r, m.peer, m.channel} : Link{m.peer, r, m.channel}];
                    (m.sends ? both.first : both.second).push_back({&m, {r, t, s}});
                }
    for (const auto &[link, both] : links) {
        const auto &[sends, receives] = both;
        const std::size_t common = std::min(sends.size(), receives.size());
        for (std::size_t k = 0; k < common; k++) {
            const Message &out = *sends[k].message, &in = *receives[k].message;
            if (out.chunk != in.chunk || out.count != in.count)
                refuse(in.line, "the received chunks are not those sent in line " + std::to_string(out.line), "R7");
        }
        if (sends.size() > common)
            refuse(sends[common].message->line, "this message is never received", "R7");
        if (receives.size() > common)
            refuse(receives[common].message->line, "this message is never sent", "R7");
    }
    return links;
}

// Execute the dependencies of steps and messages without buffers: all steps must end.
class Rendezvous {
public:
    Rendezvous(const Algorithm &a, const Links &links) : a_(a)
    {
        for (const auto &[link, both] : links)
            for (std::size_t k = 0; k < both.first.size(); k++) {
                partners_[both.first[k].at].push_back(both.second[k].at);
                partners_[both.second[k].at].push_back(both.first[k].at);
            }
    }

    void require_end()
    {
        std::deque<std::pair<int, int>> queue;
        for (int r = 0; r < a_.size(); r++)
            for (int t = 0; t < static_cast<int>(a_.ranks[r].threads.size()); t++)
                queue.emplace_back(r, t);
        const auto threads = queue;
        while (!queue.empty()) {
            const auto thread = queue.front();
            queue.pop_front();
            advance(thread, queue);
        }
        for (const auto &thread : threads)
            if (done_[thread] < steps(thread).size()) {
                const std::string name = std::to_string(thread.second) + "." + std::to_string(done_[thread]);
                refuse(steps(thread)[done_[thread]].line, "step " + name + " of rank " + std::to_string(thread.first) +
                                                              " never ends", "R11");
            }
    }

private:
    const std::vector<Step> &steps(const std::pair<int, int> &thread) const
    {
        return a_.ranks[thread.first].threads[thread.second].steps;
    }

    void advance(const std::pair<int, int> &thread, std::deque<std::pair<int, int>> &queue)
    {
        while (done_[thread] < steps(thread).size()) {
            const StepAt at{thread.first, thread.second, static_cast<int>(done_[thread])};
            if (!begun_.count(at)) {
                for (const auto &[t, s] : steps(thread)[done_[thread]].syncs)
                    if (done_[{thread.first, t}] <= static_cast<std::size_t>(s)) {
                        on_done_[{thread.first, t, s}].push_back(thread);
                        return;
                    }
                begun_.insert(at);
                wake(on_begun_, at, queue);
            }
            for (const StepAt &partner : partners_[at])
                if (!begun_.count(partner)) {
                    on_begun_[partner].push_back(thread);
                    return;
                }
            done_[thread]++;
            wake(on_done_, at, queue);
        }
    }

    using Waiting = std::map<StepAt, std::vector<std::pair<int, int>>>;

    static void wake(Waiting &waiting, const StepAt &at, std::deque<std::pair<int, int>> &queue)
    {
        const auto found = waiting.find(at);
        if (found == waiting.end())
            return;
        queue.insert(queue.end(), found->second.begin(), found->second.end());
        waiting.erase(found);
    }

    const Algorithm &a_;
    std::map<StepAt, std::vector<StepAt>> partners_;
    std::map<std::pair<int, int>, std::size_t> done_;
    std::set<StepAt> begun_;
    Waiting on_begun_, on_done_;
};

} // namespace

void require_rules(const Algorithm &a)
{
    if (!a.inplace && !a.outofplace)
        refuse(a.line, "the file serves neither calls in place nor calls out of place", "R13");
    if (a.max_bytes < a.min_bytes)
        refuse(a.line, "maxBytes is less than minBytes", "R14");
    for (int r = 0; r < a.size(); r++)
        require_rank(a, r);
    Rendezvous(a, require_matched(a)).require_end();
}

} // namespace collc::oneccl
