#include "check.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace collc::oneccl {

namespace {

constexpr std::size_t guard = 64;
constexpr char untouched = 0x5a;

} // namespace

Trial::Trial(const Algorithm &algorithm, int rank, const Case &wanted)
    : algorithm_(algorithm), rank_(rank), wanted_(wanted), type_(datatype_of(wanted.type)),
      op_(wanted.op.empty() ? Operation::sum : operation_of(wanted.op))
{
    const auto count = static_cast<std::int64_t>(wanted.count);
    in_ = algorithm.input_blocks(rank) * count;
    out_ = algorithm.output_blocks(rank) * count;
    const std::size_t width = size_of(type_), own = static_cast<std::size_t>(rank * count) * width;
    const std::size_t in = static_cast<std::size_t>(in_) * width, out = static_cast<std::size_t>(out_) * width;
    if (wanted.inplace && in_ && out_) {
        input_ = guard + (in < out ? own : 0);
        output_ = guard + (out < in ? own : 0);
        memory_.resize(std::max(in, out) + 2 * guard);
    } else {
        input_ = guard;
        output_ = input_ + in + guard;
        memory_.resize(output_ + out + guard);
    }
}

// Small integers: their sums, products, minima and maxima are exact in every element type.
double Trial::input(int rank, std::int64_t element) const
{
    const auto r = static_cast<std::int64_t>(rank);
    if (wanted_.op == "prod")
        return (r + element) % algorithm_.size() < 6 ? 2 : 1;
    if (wanted_.op == "min" || wanted_.op == "max")
        return static_cast<double>((r * 31 + element * 17) % 101);
    if (wanted_.op == "sum")
        return algorithm_.size() > 64 ? static_cast<double>((r + element) % 64 == 0) : static_cast<double>((r * 3 + element) % 5 % 4);
    return static_cast<double>((r * 37 + element * 7 + element / 101) % 113);
}

double Trial::output(std::int64_t element) const
{
    const auto count = static_cast<std::int64_t>(wanted_.count);
    const std::string &kind = algorithm_.collective;
    if (kind == "custom") {
        const std::int64_t shard = algorithm_.outputs[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(element / count)];
        const int from = algorithm_.shards[static_cast<std::size_t>(shard)].from;
        const std::vector<std::int64_t> &held = algorithm_.inputs[static_cast<std::size_t>(from)];
        const std::int64_t slot = std::lower_bound(held.begin(), held.end(), shard) - held.begin();
        return input(from, slot * count + element % count);
    }
    if (kind == "allgather" || kind == "gather")
        return input(static_cast<int>(element / count), element % count);
    if (kind == "alltoall")
        return input(static_cast<int>(element / count), rank_ * count + element % count);
    if (kind == "broadcast")
        return input(algorithm_.root, element);
    if (kind == "scatter")
        return input(algorithm_.root, rank_ * count + element);
    if (kind == "reduce-scatter")
        element += rank_ * count;
    double found = input(0, element);
    for (int r = 1; r < algorithm_.members; r++) {
        const double next = input(r, element);
        switch (op_) {
        case Operation::sum:
            found += next;
            break;
        case Operation::prod:
            found *= next;
            break;
        case Operation::min:
            found = std::min(found, next);
            break;
        case Operation::max:
            found = std::max(found, next);
            break;
        }
    }
    return found;
}

void Trial::fill()
{
    std::memset(memory_.data(), untouched, memory_.size());
    for (std::int64_t k = 0; k < in_; k++)
        set(memory_.data() + input_, static_cast<std::size_t>(k), type_, input(rank_, k));
}

void Trial::run(Tuner &tuner)
{
    tuner.run(in_ ? input_at() : nullptr, out_ ? memory_.data() + output_ : nullptr, wanted_.count, type_, op_);
}

std::string Trial::wrong() const
{
    const auto differs = [&](const char *what, const char *array, std::int64_t k, double need) -> std::string {
        const double found = get(array, static_cast<std::size_t>(k), type_);
        if (found == need)
            return "";
        std::ostringstream text;
        text << what << " element " << k << " is " << found << ", must be " << need;
        return text.str();
    };
    for (std::int64_t k = 0; k < out_; k++)
        if (std::string found = differs("output", output_at(), k, output(k)); !found.empty())
            return found;
    const bool shared = wanted_.inplace && in_ && out_;
    for (std::int64_t k = 0; k < in_ && !shared; k++)
        if (std::string found = differs("input", input_at(), k, input(rank_, k)); !found.empty())
            return found;
    const std::size_t width = size_of(type_);
    const std::size_t ends[] = {input_ + static_cast<std::size_t>(in_) * width, output_ + static_cast<std::size_t>(out_) * width};
    for (std::size_t k = 0; k < memory_.size(); k++) {
        const bool inside = (k >= input_ && k < ends[0]) || (k >= output_ && k < ends[1]);
        if (!inside && memory_[k] != untouched)
            return "a byte outside the buffers was written";
    }
    return "";
}

} // namespace collc::oneccl
