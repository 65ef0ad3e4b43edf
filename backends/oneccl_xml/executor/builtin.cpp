#include "builtin.hpp"

#include <algorithm>

namespace collc::oneccl {

namespace {

ccl::reduction reduction_of(Operation op)
{
    switch (op) {
    case Operation::prod:
        return ccl::reduction::prod;
    case Operation::min:
        return ccl::reduction::min;
    case Operation::max:
        return ccl::reduction::max;
    default:
        return ccl::reduction::sum;
    }
}

} // namespace

namespace {

// Return whether all ranks must have all shards, and have them in the order of ranks: an allgatherv.
bool gathers_all(const Algorithm &a)
{
    for (std::size_t s = 0; s < a.shards.size(); s++)
        if (static_cast<int>(a.shards[s].to.size()) != a.size() || (s && a.shards[s].from < a.shards[s - 1].from))
            return false;
    return !a.shards.empty();
}

// Return whether every shard is for one rank, and shards are in the order of senders, then of receivers: an alltoallv.
bool exchanges(const Algorithm &a)
{
    for (std::size_t s = 0; s < a.shards.size(); s++) {
        if (a.shards[s].to.size() != 1)
            return false;
        if (s && std::make_pair(a.shards[s].from, *a.shards[s].to.begin()) <
                     std::make_pair(a.shards[s - 1].from, *a.shards[s - 1].to.begin()))
            return false;
    }
    return !a.shards.empty();
}

} // namespace

bool has_own(const std::string &collective)
{
    return collective == "allreduce" || collective == "reduce-scatter" || collective == "allgather" || collective == "alltoall";
}

void call_own(const std::string &collective, const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op,
              const ccl::communicator &comm)
{
    void *from = const_cast<void *>(send); // of oneCCL's functions, some take no constant data
    if (collective == "allreduce")
        ccl::allreduce(from, recv, count, type, reduction_of(op), comm).wait();
    else if (collective == "reduce-scatter")
        ccl::reduce_scatter(from, recv, count, type, reduction_of(op), comm).wait();
    else if (collective == "allgather")
        ccl::allgather(from, recv, count, type, comm).wait();
    else
        ccl::alltoall(from, recv, count, type, comm).wait();
}

Builtin::Builtin(const Algorithm &algorithm, int rank, std::size_t count, const std::string &type, const std::string &op)
    : algorithm_(algorithm), rank_(rank), count_(count), type_(datatype_of(type)), op_(op.empty() ? Operation::sum : operation_of(op))
{
    const auto bytes = [&](std::int64_t blocks) { return std::max<std::size_t>(static_cast<std::size_t>(blocks) * count * size_of(type_), 1); };
    send_.resize(bytes(std::max<std::int64_t>(algorithm.input_blocks(rank), 1)));
    recv_.resize(bytes(std::max<std::int64_t>(algorithm.output_blocks(rank), 1)));
    for (std::vector<std::size_t> &counts : counts_)
        counts.assign(static_cast<std::size_t>(algorithm.size()), 0);
    const bool gathers = gathers_all(algorithm);
    for (const Shard &shard : algorithm.shards) {
        if (gathers)
            counts_[0][static_cast<std::size_t>(shard.from)] += count;
        else if (shard.to.size() == 1 && shard.from == rank)
            counts_[0][static_cast<std::size_t>(*shard.to.begin())] += count;
        if (!gathers && shard.to.count(rank))
            counts_[1][static_cast<std::size_t>(shard.from)] += count;
    }
}

bool Builtin::has(const Algorithm &algorithm)
{
    if (algorithm.members < algorithm.size())
        return false;
    if (algorithm.collective == "custom")
        return gathers_all(algorithm) || exchanges(algorithm);
    return algorithm.collective != "gather" && algorithm.collective != "scatter";
}

void Builtin::run(const ccl::communicator &comm)
{
    const std::string &kind = algorithm_.collective;
    void *send = send_.data(), *recv = recv_.data();
    if (has_own(kind))
        call_own(kind, send, recv, count_, type_, op_, comm);
    else if (kind == "reduce")
        ccl::reduce(send, recv, count_, type_, reduction_of(op_), algorithm_.root, comm).wait();
    else if (kind == "custom" && gathers_all(algorithm_))
        ccl::allgatherv(send, counts_[0][static_cast<std::size_t>(rank_)], recv, counts_[0], type_, comm).wait();
    else if (kind == "custom")
        ccl::alltoallv(send, counts_[0], recv, counts_[1], type_, comm).wait();
    else if (kind == "broadcast")
        ccl::broadcast(recv, count_, type_, algorithm_.root, comm).wait();
}

} // namespace collc::oneccl
