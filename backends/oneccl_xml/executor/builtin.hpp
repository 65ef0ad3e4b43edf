// oneCCL's own collective, for comparison.
#pragma once

#include "algorithm.hpp"
#include "elements.hpp"

#include <vector>

namespace collc::oneccl {

// Whether oneCCL has a collective in which every rank has both buffers.
bool has_own(const std::string &collective);

// Perform such a collective by oneCCL itself.
void call_own(const std::string &collective, const void *send, void *recv, std::size_t count, ccl::datatype type, Operation op,
              const ccl::communicator &comm);

// One call of oneCCL's own collective, out of place, on zeros.
class Builtin {
public:
    Builtin(const Algorithm &algorithm, int rank, std::size_t count, const std::string &type, const std::string &op);

    // Return whether oneCCL has this collective: it has neither gather nor scatter.
    static bool has(const Algorithm &algorithm);
    void run(const ccl::communicator &comm);

private:
    const Algorithm &algorithm_;
    const int rank_;
    const std::size_t count_;
    const ccl::datatype type_;
    const Operation op_;
    std::vector<char> send_, recv_;
    std::vector<std::size_t> counts_[2]; // of a custom collective: what each rank sends, or is sent; what each sends here
};

} // namespace collc::oneccl
