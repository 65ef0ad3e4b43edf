#include "elements.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace collc::oneccl {

namespace {

float from_bits(std::uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

std::uint32_t to_bits(float value)
{
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The upper half of a float32, rounded to even.
struct BFloat16 {
    std::uint16_t bits;

    operator float() const { return from_bits(std::uint32_t(bits) << 16); }

    static BFloat16 of(float value)
    {
        const std::uint32_t all = to_bits(value);
        if ((all & 0x7fffffff) > 0x7f800000) // a NaN stays one
            return {static_cast<std::uint16_t>((all >> 16) | 0x40)};
        return {static_cast<std::uint16_t>((all + 0x7fff + ((all >> 16) & 1)) >> 16)};
    }
};

// IEEE binary16: 1 sign, 5 exponent and 10 fraction bits; conversion from float32 rounds to even.
struct Float16 {
    std::uint16_t bits;

    operator float() const
    {
        const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023;
        if (exponent == 31)
            return from_bits(sign | 0x7f800000 | (fraction << 13));
        if (exponent == 0) { // a multiple of 2^-24
            const float tiny = static_cast<float>(fraction) / 16777216.0f;
            return from_bits(to_bits(tiny) | sign);
        }
        return from_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
    }

    static Float16 of(float value)
    {
        const std::uint32_t all = to_bits(value), sign = (all >> 16) & 0x8000, magnitude = all & 0x7fffffff;
        if (magnitude > 0x7f800000)
            return {static_cast<std::uint16_t>(sign | 0x7e00)};
        if (magnitude >= 0x477ff000) // at least halfway between 65504 and 65536: infinite
            return {static_cast<std::uint16_t>(sign | 0x7c00)};
        if (magnitude < 0x38800000) { // below 2^-14: adding 2^-1 leaves the multiple of 2^-24 in the lowest bits
            const float sum = from_bits(magnitude) + 0.5f;
            return {static_cast<std::uint16_t>(sign | (to_bits(sum) - to_bits(0.5f)))};
        }
        const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
        return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
    }
};

template <class T> T made(double value)
{
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
        return T::of(static_cast<float>(value));
    else
        return static_cast<T>(value);
}

// The type for computations with T: float32 for half floats; the unsigned type of integers, which may overflow.
template <class T, class = void> struct Computed {
    using type = float;
};
template <class T> struct Computed<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    using type = T;
};
template <class T> struct Computed<T, std::enable_if_t<std::is_integral_v<T>>> {
    using type = std::conditional_t<sizeof(T) < 4, unsigned, std::make_unsigned_t<T>>;
};

template <class T> T back(typename Computed<T>::type value)
{
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>)
        return T::of(value);
    else
        return static_cast<T>(value);
}

template <class T> void reduce_as(T *dst, const T *a, const T *b, std::size_t count, Operation op)
{
    using C = typename Computed<T>::type;
    switch (op) {
    case Operation::sum:
        for (std::size_t k = 0; k < count; k++)
            dst[k] = back<T>(static_cast<C>(a[k]) + static_cast<C>(b[k]));
        break;
    case Operation::prod:
        for (std::size_t k = 0; k < count; k++)
            dst[k] = back<T>(static_cast<C>(a[k]) * static_cast<C>(b[k]));
        break;
    case Operation::min:
        for (std::size_t k = 0; k < count; k++)
            dst[k] = b[k] < a[k] ? b[k] : a[k];
        break;
    case Operation::max:
        for (std::size_t k = 0; k < count; k++)
            dst[k] = a[k] < b[k] ? b[k] : a[k];
        break;
    }
}

// Call `f` with a null pointer to the element type.
template <class F> auto as(ccl::datatype type, F f)
{
    switch (type) {
    case ccl::datatype::int8:
        return f(static_cast<std::int8_t *>(nullptr));
    case ccl::datatype::uint8:
        return f(static_cast<std::uint8_t *>(nullptr));
    case ccl::datatype::int16:
        return f(static_cast<std::int16_t *>(nullptr));
    case ccl::datatype::uint16:
        return f(static_cast<std::uint16_t *>(nullptr));
    case ccl::datatype::int32:
        return f(static_cast<std::int32_t *>(nullptr));
    case ccl::datatype::uint32:
        return f(static_cast<std::uint32_t *>(nullptr));
    case ccl::datatype::int64:
        return f(static_cast<std::int64_t *>(nullptr));
    case ccl::datatype::uint64:
        return f(static_cast<std::uint64_t *>(nullptr));
    case ccl::datatype::float16:
        return f(static_cast<Float16 *>(nullptr));
    case ccl::datatype::bfloat16:
        return f(static_cast<BFloat16 *>(nullptr));
    case ccl::datatype::float32:
        return f(static_cast<float *>(nullptr));
    case ccl::datatype::float64:
        return f(static_cast<double *>(nullptr));
    default:
        throw std::runtime_error("this element type of oneCCL has no name in files");
    }
}

} // namespace

ccl::datatype datatype_of(const std::string &name)
{
    static const std::pair<const char *, ccl::datatype> names[] = {
        {"int8", ccl::datatype::int8},       {"uint8", ccl::datatype::uint8},       {"int16", ccl::datatype::int16},
        {"uint16", ccl::datatype::uint16},   {"int32", ccl::datatype::int32},       {"uint32", ccl::datatype::uint32},
        {"int64", ccl::datatype::int64},     {"uint64", ccl::datatype::uint64},     {"float16", ccl::datatype::float16},
        {"bfloat16", ccl::datatype::bfloat16}, {"float32", ccl::datatype::float32}, {"float64", ccl::datatype::float64}};
    for (const auto &[known, type] : names)
        if (name == known)
            return type;
    throw std::runtime_error("unknown element type `" + name + "`");
}

Operation operation_of(const std::string &name)
{
    static const std::pair<const char *, Operation> names[] = {
        {"sum", Operation::sum}, {"prod", Operation::prod}, {"min", Operation::min}, {"max", Operation::max}};
    for (const auto &[known, op] : names)
        if (name == known)
            return op;
    throw std::runtime_error("unknown operation `" + name + "`");
}

std::size_t size_of(ccl::datatype type)
{
    return as(type, [](auto *one) { return sizeof *one; });
}

void reduce(void *dst, const void *src, const void *with, std::size_t count, ccl::datatype type, Operation op)
{
    as(type, [&](auto *one) {
        using T = std::remove_pointer_t<decltype(one)>;
        reduce_as(static_cast<T *>(dst), static_cast<const T *>(src), static_cast<const T *>(with), count, op);
    });
}

double get(const void *array, std::size_t index, ccl::datatype type)
{
    return as(type, [&](auto *one) {
        using T = std::remove_pointer_t<decltype(one)>;
        return static_cast<double>(static_cast<const T *>(array)[index]);
    });
}

void set(void *array, std::size_t index, ccl::datatype type, double value)
{
    as(type, [&](auto *one) {
        using T = std::remove_pointer_t<decltype(one)>;
        static_cast<T *>(array)[index] = made<T>(value);
    });
}

} // namespace collc::oneccl
