#include "builtin.hpp"

#include <algorithm>

namespace collc::oneccl {

namespace {

ccl::reduction reduction_of(const std::string &op)
{
    switch (op.empty() ? Operation::sum : operation_of(op)) {
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

Builtin::Builtin(const Algorithm &algorithm, int rank, std::size_t count, const std::string &type, const std::string &op)
    : algorithm_(algorithm), count_(count), type_(datatype_of(type)), op_(reduction_of(op))
{
    const auto bytes = [&](std::int64_t blocks) { return std::max<std::size_t>(static_cast<std::size_t>(blocks) * count * size_of(type_), 1); };
    send_.resize(bytes(std::max<std::int64_t>(algorithm.input_blocks(rank), 1)));
    recv_.resize(bytes(std::max<std::int64_t>(algorithm.output_blocks(rank), 1)));
}

bool Builtin::has(const Algorithm &algorithm)
{
    return algorithm.collective != "gather" && algorithm.collective != "scatter";
}

void Builtin::run(const ccl::communicator &comm)
{
    const std::string &kind = algorithm_.collective;
    void *send = send_.data(), *recv = recv_.data();
    if (kind == "allreduce")
        ccl::allreduce(send, recv, count_, type_, op_, comm).wait();
    else if (kind == "reduce-scatter")
        ccl::reduce_scatter(send, recv, count_, type_, op_, comm).wait();
    else if (kind == "reduce")
        ccl::reduce(send, recv, count_, type_, op_, algorithm_.root, comm).wait();
    else if (kind == "allgather")
        ccl::allgather(send, recv, count_, type_, comm).wait();
    else if (kind == "alltoall")
        ccl::alltoall(send, recv, count_, type_, comm).wait();
    else if (kind == "broadcast")
        ccl::broadcast(recv, count_, type_, algorithm_.root, comm).wait();
}

} // namespace collc::oneccl
