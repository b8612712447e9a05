// The values in an expression's registers: what is NULL in each kind, and the arithmetic of one value that may fail.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "dictionary.hpp"
#include "wide.hpp"

namespace ivme {

inline constexpr Wide NULL_WIDE = static_cast<Wide>(static_cast<UnsignedWide>(1) << 127);
inline constexpr double NULL_REAL = std::numeric_limits<double>::quiet_NaN();
inline constexpr unsigned MOST_DIGITS = 38;
inline constexpr Wide DECIMAL_LIMIT = power_of_ten(MOST_DIGITS);

// The first code of wide decimals that come from a dictionary; those between it and its negative are their own.
inline constexpr int64_t LARGE_DECIMALS = int64_t{1} << 62;

inline bool is_null(int64_t value) { return value == NULL_CODE; }
inline bool is_null(Wide value) { return value == NULL_WIDE; }
inline bool is_null(double value) { return value != value; }

template <class T>
inline constexpr T null_of = NULL_CODE;
template <>
inline constexpr Wide null_of<Wide> = NULL_WIDE;
template <>
inline constexpr double null_of<double> = NULL_REAL;

// The order of a float's code is that of the float. NULL_CODE becomes a NaN by itself.
inline double real_of_code(int64_t code) { return std::bit_cast<double>(code < 0 ? code ^ INT64_MAX : code); }

inline int64_t code_of_real(double value) {
    if (is_null(value)) return NULL_CODE;
    auto bits = std::bit_cast<int64_t>(value == 0.0 ? 0.0 : value);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

inline Wide magnitude(Wide value) { return value < 0 ? -value : value; }

// Integers of 64 bits whose least is NULL. False if the result does not fit.
struct AddInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const { return !add_overflows(a, b, to) && !is_null(*to); }
};
struct SubtractInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const { return !subtract_overflows(a, b, to) && !is_null(*to); }
};
struct MultiplyInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const { return !multiply_overflows(a, b, to) && !is_null(*to); }
};
struct ModuloInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const {
        if (b == 0) return false;
        *to = b == -1 ? 0 : a % b;
        return true;
    }
};
struct DivideInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const {
        if (b == 0) return false;
        *to = b == -1 ? -a : a / b;
        return true;
    }
};
struct PositiveModuloInt {
    bool operator()(int64_t a, int64_t b, int64_t* to) const {
        if (!ModuloInt()(a, b, to)) return false;
        if (*to < 0) *to = (*to + b) % b;
        return true;
    }
};

// An operation of bits, whose result may be what stands for NULL.
template <class F>
auto bits(F f) {
    return [f](int64_t a, int64_t b, int64_t* to) {
        *to = static_cast<int64_t>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
        return !is_null(*to);
    };
}

// Decimals whose digits fit 18, so that nothing overflows but what stands for NULL.
struct AddNarrow {
    int64_t operator()(int64_t a, int64_t b) const { return wrapped_sum(a, b); }
};
struct SubtractNarrow {
    int64_t operator()(int64_t a, int64_t b) const {
        return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    }
};
struct MultiplyNarrow {
    int64_t operator()(int64_t a, int64_t b) const { return wrapped_product(a, b); }
};

// Decimals of up to 38 digits; false for more.
struct AddWide {
    bool operator()(Wide a, Wide b, Wide* to) const {
        return !add_overflows(a, b, to) && magnitude(*to) < DECIMAL_LIMIT;
    }
};
struct SubtractWide {
    bool operator()(Wide a, Wide b, Wide* to) const { return AddWide()(a, -b, to); }
};
struct MultiplyWide {
    bool operator()(Wide a, Wide b, Wide* to) const {
        return !multiply_overflows(a, b, to) && magnitude(*to) < DECIMAL_LIMIT;
    }
};
struct ModuloWide {
    bool operator()(Wide a, Wide b, Wide* to) const {
        if (b == 0) return false;
        *to = a % b;
        return true;
    }
};

inline unsigned digits_of(Wide value) {
    unsigned digits = 0;
    for (; value > 0; value /= 10) ++digits;
    return digits;
}

// a / b in units of the result, a scaled up already. The meaning is that of a quotient of 38 digits that is then
// rounded: both round half up, and agree with one rounding unless the quotient is closer to a tie than 38 digits can
// tell. It is not if the digits of divisor and quotient are no more than 38 together.
struct DivideWide {
    bool operator()(Wide a, Wide b, Wide* to) const {
        if (b == 0) return false;
        Wide dividend = magnitude(a), divisor = magnitude(b);
        Wide quotient = dividend / divisor, rest = dividend % divisor;
        if (digits_of(quotient) + digits_of(divisor) > MOST_DIGITS) return false;
        if (rest >= divisor - rest) ++quotient;
        *to = (a < 0) == (b < 0) ? quotient : -quotient;
        return true;
    }
};

// Floats: false where the result is not a number.
struct AddReal {
    bool operator()(double a, double b, double* to) const { return !is_null(*to = a + b); }
};
struct SubtractReal {
    bool operator()(double a, double b, double* to) const { return !is_null(*to = a - b); }
};
struct MultiplyReal {
    bool operator()(double a, double b, double* to) const { return !is_null(*to = a * b); }
};
struct DivideReal {
    bool operator()(double a, double b, double* to) const { return b != 0.0 && !is_null(*to = a / b); }
};
struct ModuloReal {
    bool operator()(double a, double b, double* to) const { return b != 0.0 && !is_null(*to = std::fmod(a, b)); }
};
struct PositiveModuloReal {
    bool operator()(double a, double b, double* to) const {
        if (!ModuloReal()(a, b, to)) return false;
        return *to >= 0 || !is_null(*to = std::fmod(*to + b, b));
    }
};

// Java's power, which is not a number for 1 to the power of infinity, unlike C's.
struct PowerReal {
    bool operator()(double a, double b, double* to) const {
        if (std::fabs(a) == 1.0 && std::isinf(b)) return false;
        return !is_null(*to = std::pow(a, b));
    }
};

// A decimal with fewer digits behind its point.
enum class Rounding : uint8_t { half_up, floor, ceil, truncate };

template <Rounding rounding>
inline Wide dropped(Wide value, Wide unit) {
    Wide quotient = value / unit, rest = value % unit;
    if constexpr (rounding == Rounding::half_up) {
        if (magnitude(rest) >= unit - magnitude(rest)) return quotient + (value < 0 ? -1 : 1);
    }
    if constexpr (rounding == Rounding::floor) return quotient - (rest < 0);
    if constexpr (rounding == Rounding::ceil) return quotient + (rest > 0);
    return quotient;
}

// The nearest float of a decimal, where one division of two exact floats gives it.
inline bool real_of_decimal(Wide value, unsigned scale, double* to) {
    constexpr Wide exact = Wide{1} << 53;
    if (magnitude(value) > exact || scale > 22) return false;
    *to = static_cast<double>(value) / static_cast<double>(power_of_ten(scale));
    return true;
}

inline bool int_of_real(double whole, int64_t* to) {
    constexpr double limit = 9223372036854775808.0;
    if (!(whole > -limit && whole < limit)) return false;
    *to = static_cast<int64_t>(whole);
    return true;
}

}  // namespace ivme
