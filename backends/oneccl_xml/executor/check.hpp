// One call with known data, and the expected value of every element after it.
#pragma once

#include "tuner.hpp"

#include <string>

namespace collc::oneccl {

struct Case {
    std::size_t count;
    std::string type, op; // op: empty if nothing is reduced
    bool inplace;
};

// Buffers of one case on one rank.
class Trial {
public:
    Trial(const Algorithm &algorithm, int rank, const Case &wanted);

    void fill();
    void run(Tuner &tuner);
    // Describe the first wrong element (empty: none) of the output, of an input that must be unchanged, and of the
    // memory around both.
    std::string wrong() const;

private:
    double input(int rank, std::int64_t element) const;
    double output(std::int64_t element) const;
    const char *input_at() const { return memory_.data() + input_; }
    const char *output_at() const { return memory_.data() + output_; }

    const Algorithm &algorithm_;
    const int rank_;
    const Case wanted_;
    const ccl::datatype type_;
    const Operation op_;
    std::int64_t in_, out_; // elements
    std::vector<char> memory_;
    std::size_t input_ = 0, output_ = 0; // bytes
};

} // namespace collc::oneccl
