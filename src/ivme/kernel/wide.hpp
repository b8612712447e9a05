// Integers of several 64-bit words, low word first, in two's complement: what sums are kept in. They wrap.
#pragma once

#include <cstdint>

#include "int128.hpp"

namespace ivme {

inline int64_t wrapped_sum(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapped_product(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

inline Wide load_wide(const int64_t* words) {
    return static_cast<Wide>(static_cast<UnsignedWide>(static_cast<uint64_t>(words[0])) |
                             static_cast<UnsignedWide>(static_cast<uint64_t>(words[1])) << 64);
}

inline void store_wide(int64_t* words, Wide value) {
    words[0] = static_cast<int64_t>(static_cast<uint64_t>(value));
    words[1] = static_cast<int64_t>(static_cast<uint64_t>(static_cast<UnsignedWide>(value) >> 64));
}

// total := left + right; `total` may be either.
template <unsigned N>
inline void add_words(int64_t* total, const int64_t* left, const int64_t* right) {
    UnsignedWide carry = 0;
    for (unsigned i = 0; i < N; ++i) {
        carry += static_cast<UnsignedWide>(static_cast<uint64_t>(left[i])) + static_cast<uint64_t>(right[i]);
        total[i] = static_cast<int64_t>(static_cast<uint64_t>(carry));
        carry >>= 64;
    }
}

template <>
inline void add_words<2>(int64_t* total, const int64_t* left, const int64_t* right) {
    store_wide(total, static_cast<Wide>(static_cast<UnsignedWide>(load_wide(left)) +
                                        static_cast<UnsignedWide>(load_wide(right))));
}

// total := factor · right; `total` may be `right`. A negative factor is one of the same word, less 2^64.
template <unsigned N>
inline void scale_words(int64_t* total, int64_t factor, const int64_t* right) {
    UnsignedWide carry = 0;
    uint64_t less = 0, borrow = 0;
    for (unsigned i = 0; i < N; ++i) {
        uint64_t word = static_cast<uint64_t>(right[i]);
        carry += static_cast<UnsignedWide>(word) * static_cast<uint64_t>(factor);
        uint64_t low = static_cast<uint64_t>(carry);
        total[i] = static_cast<int64_t>(low - less - borrow);
        borrow = low < less || low - less < borrow;
        less = factor < 0 ? word : 0;
        carry >>= 64;
    }
}

template <>
inline void scale_words<2>(int64_t* total, int64_t factor, const int64_t* right) {
    store_wide(total, static_cast<Wide>(static_cast<UnsignedWide>(load_wide(right)) *
                                        static_cast<UnsignedWide>(static_cast<Wide>(factor))));
}

// left := c · right + d · left.
template <unsigned N>
inline void multiply_words(int64_t* left, int64_t c, int64_t d, const int64_t* right) {
    int64_t other[N];
    scale_words<N>(other, c, right);
    scale_words<N>(left, d, left);
    add_words<N>(left, left, other);
}

// left := left · right, of three words each.
inline void multiply_three_words(int64_t* left, const int64_t* right) {
    uint64_t product[3] = {};
    for (unsigned i = 0; i < 3; ++i) {
        UnsignedWide carry = 0;
        for (unsigned j = 0; i + j < 3; ++j) {
            carry += static_cast<UnsignedWide>(static_cast<uint64_t>(left[i])) * static_cast<uint64_t>(right[j]) +
                     product[i + j];
            product[i + j] = static_cast<uint64_t>(carry);
            carry >>= 64;
        }
    }
    for (unsigned i = 0; i < 3; ++i) left[i] = static_cast<int64_t>(product[i]);
}

constexpr Wide power_of_ten(unsigned digits) {
    Wide power = 1;
    for (unsigned i = 0; i < digits; ++i) power *= 10;
    return power;
}

}  // namespace ivme
