// From the totals of groups to the codes of what is shown: SUM, AVG, VARIANCE and STDDEV by column, NULL where no value
// is there.
//
// A column with a total that has no code of its own (a wide number, or a mean that takes more than one rounding) is
// left to Python, which does it value by value; such columns are rare.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "wide.hpp"

namespace ivme {

inline constexpr int64_t NULL_VALUE = std::numeric_limits<int64_t>::min();
inline constexpr int64_t NAN_VALUE = 0x7FF8000000000000;
inline constexpr int64_t EXACT = int64_t{1} << 53;  // integers up to this are floats as they are

// The code of a float: its bits, those of negative numbers turned over, one form of zero and of NaN.
inline int64_t float_code(double value) {
    if (std::isnan(value)) return NAN_VALUE;
    auto bits = std::bit_cast<int64_t>(value + 0.0);
    return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
}

// Whether the number of several words, low first, is the one of its low word alone.
inline bool is_narrow(const int64_t* words, unsigned width) {
    for (unsigned i = 1; i < width; ++i) {
        if (words[i] != words[0] >> 63) return false;
    }
    return true;
}

inline bool within(int64_t value, int64_t most) { return -most <= value && value <= most; }

// Totals of whole numbers as they are; false if one is not within `most`.
inline bool finish_sums(const int64_t* sums, unsigned width, const int64_t* counts, size_t n, int64_t most,
                        int64_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        const int64_t* words = sums + i * width;
        if (!is_narrow(words, width) || !within(words[0], most)) return false;
        codes[i] = counts[i] ? words[0] : NULL_VALUE;
    }
    return true;
}

// Means of whole numbers as floats, rounded once.
inline bool finish_means(const int64_t* sums, unsigned width, const int64_t* counts, size_t n, int64_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        const int64_t* words = sums + i * width;
        if (!is_narrow(words, width) || !within(words[0], EXACT) || !within(counts[i], EXACT)) return false;
        codes[i] = counts[i] ? float_code(static_cast<double>(words[0]) / static_cast<double>(counts[i])) : NULL_VALUE;
    }
    return true;
}

// Means of decimals in units that are `factor` times finer, rounded half up; false if one is not within `most`.
inline bool finish_decimal_means(const int64_t* sums, unsigned width, const int64_t* counts, size_t n, int64_t factor,
                                 int64_t most, int64_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        const int64_t* words = sums + i * width;
        if (!is_narrow(words, width) || words[0] == NULL_VALUE) return false;
        codes[i] = NULL_VALUE;
        if (!counts[i]) continue;
        bool negative = (words[0] < 0) != (counts[i] < 0);
        UnsignedWide total = static_cast<UnsignedWide>(static_cast<uint64_t>(std::abs(words[0])));
        UnsignedWide count = static_cast<uint64_t>(std::abs(counts[i]));
        UnsignedWide rounded = (total * static_cast<uint64_t>(factor) * 2 + count) / (count * 2);
        if (rounded > static_cast<uint64_t>(most)) return false;
        auto mean = static_cast<int64_t>(static_cast<uint64_t>(rounded));
        codes[i] = negative ? -mean : mean;
    }
    return true;
}

// The quotient of whole numbers below 2^127 as a float, rounded once, half to even.
inline double rounded_quotient(UnsignedWide dividend, UnsignedWide divisor) {
    UnsignedWide quotient = dividend / divisor, rest = dividend % divisor;
    if (!quotient && !rest) return 0;
    constexpr UnsignedWide full = static_cast<UnsignedWide>(1) << 63;
    bool inexact = false;
    int exponent = 0;
    for (; quotient >= full * 2; quotient >>= 1, ++exponent) inexact |= (quotient & 1) != 0;
    for (; quotient < full; --exponent) {
        rest <<= 1;
        bool bit = rest >= divisor;
        if (bit) rest -= divisor;
        quotient = quotient << 1 | (bit ? 1U : 0U);
    }
    auto bits = static_cast<uint64_t>(quotient);
    uint64_t dropped = bits & 0x7FF, kept = bits >> 11;
    inexact |= rest != 0;
    if (dropped > 0x400 || (dropped == 0x400 && (inexact || (kept & 1)))) ++kept;
    return std::ldexp(static_cast<double>(kept), exponent + 11);
}

// Variances of whole numbers in units whose square is 1 / `unit`, or their roots, from the totals of the values and of
// their squares (three words). A sample has NULL for fewer than two values, a population for none. False if something
// takes more than 127 bits.
inline bool finish_variances(const int64_t* sums, unsigned width, const int64_t* squares, const int64_t* counts,
                             size_t n, int64_t unit, bool root, bool population, int64_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        const int64_t *words = sums + i * width, *square = squares + i * 3;
        codes[i] = NULL_VALUE;
        if (counts[i] < (population ? 1 : 2)) continue;
        if (!is_narrow(words, width) || words[0] == NULL_VALUE || square[2] || square[1] < 0) return false;
        Wide total = words[0], spread, pairs, divisor;
        if (multiply_overflows(load_wide(square), static_cast<Wide>(counts[i]), &spread)) return false;
        pairs = static_cast<Wide>(counts[i]) * (population ? counts[i] : counts[i] - 1);
        if (multiply_overflows(pairs, static_cast<Wide>(unit), &divisor)) return false;
        double shown =
            rounded_quotient(static_cast<UnsignedWide>(spread - total * total), static_cast<UnsignedWide>(divisor));
        codes[i] = float_code(root ? std::sqrt(shown) : shown);
    }
    return true;
}

// Totals or means of floats, which come rounded.
inline void finish_floats(const double* sums, const int64_t* counts, size_t n, bool mean, int64_t* codes) {
    for (size_t i = 0; i < n; ++i) {
        double shown = mean && counts[i] ? sums[i] / static_cast<double>(counts[i]) : sums[i];
        codes[i] = counts[i] ? float_code(shown) : NULL_VALUE;
    }
}

}  // namespace ivme
