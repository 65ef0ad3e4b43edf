// Element types and operations, by oneCCL's names.
#pragma once

#include <oneapi/ccl.hpp>

#include <cstddef>
#include <string>

namespace collc::oneccl {

enum class Operation { sum, prod, min, max };

// Throws runtime_error for an unknown name.
ccl::datatype datatype_of(const std::string &name);
Operation operation_of(const std::string &name);

std::size_t size_of(ccl::datatype type);

// dst[k] <- src[k] op with[k]; places may be the same. oneCCL adds only in its own collectives.
void reduce(void *dst, const void *src, const void *with, std::size_t count, ccl::datatype type, Operation op);

// Read element `index` of an array as a number, and write a number as an element; exact for the numbers of checks.
double get(const void *array, std::size_t index, ccl::datatype type);
void set(void *array, std::size_t index, ccl::datatype type, double value);

} // namespace collc::oneccl
