// Integers of 128 bits: the compiler's own, or two words where it has none (MSVC). IVME_NO_INT128 forces the latter,
// which is how it is tested (tests/unit/kernel/test_int128.py). Both wrap, and shift signed numbers with their sign.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace ivme {

template <bool is_signed>
class WordPair {
public:
    constexpr WordPair() = default;
    template <std::integral Number>
    constexpr WordPair(Number number) : low_(static_cast<uint64_t>(number)) {
        if constexpr (std::is_signed_v<Number>) high_ = number < 0 ? ~uint64_t{0} : 0;
    }
    constexpr explicit WordPair(const WordPair<!is_signed>& other) : low_(other.low()), high_(other.high()) {}
    static constexpr WordPair of(uint64_t low, uint64_t high) {
        WordPair made;
        made.low_ = low;
        made.high_ = high;
        return made;
    }

    constexpr uint64_t low() const { return low_; }
    constexpr uint64_t high() const { return high_; }
    constexpr bool is_negative() const { return is_signed && high_ >> 63; }

    template <std::integral Number>
    constexpr explicit operator Number() const {
        if constexpr (std::is_same_v<Number, bool>) return low_ || high_;
        return static_cast<Number>(low_);
    }

    // The nearest double: the first 64 bits with a last one that says whether any follow are rounded as all of them.
    explicit operator double() const {
        if (is_negative()) return -static_cast<double>(WordPair<false>(-*this));
        if (!high_) return static_cast<double>(low_);
        int above = 64 - std::countl_zero(high_);
        WordPair<false> first = WordPair<false>::of(low_, high_) >> above;
        bool rest = (first << above) != WordPair<false>::of(low_, high_);
        return std::ldexp(static_cast<double>(first.low() | static_cast<uint64_t>(rest)), above);
    }

    friend constexpr bool operator==(const WordPair& a, const WordPair& b) = default;
    friend constexpr std::strong_ordering operator<=>(const WordPair& a, const WordPair& b) {
        if (a.high_ == b.high_) return a.low_ <=> b.low_;
        if constexpr (is_signed) return static_cast<int64_t>(a.high_) <=> static_cast<int64_t>(b.high_);
        return a.high_ <=> b.high_;
    }

    friend constexpr WordPair operator~(const WordPair& a) { return of(~a.low_, ~a.high_); }
    friend constexpr WordPair operator-(const WordPair& a) { return ~a + WordPair(1); }
    friend constexpr WordPair operator|(const WordPair& a, const WordPair& b) {
        return of(a.low_ | b.low_, a.high_ | b.high_);
    }
    friend constexpr WordPair operator&(const WordPair& a, const WordPair& b) {
        return of(a.low_ & b.low_, a.high_ & b.high_);
    }
    friend constexpr WordPair operator^(const WordPair& a, const WordPair& b) {
        return of(a.low_ ^ b.low_, a.high_ ^ b.high_);
    }
    friend constexpr WordPair operator+(const WordPair& a, const WordPair& b) {
        uint64_t low = a.low_ + b.low_;
        return of(low, a.high_ + b.high_ + (low < a.low_));
    }
    friend constexpr WordPair operator-(const WordPair& a, const WordPair& b) {
        return of(a.low_ - b.low_, a.high_ - b.high_ - (a.low_ < b.low_));
    }
    friend constexpr WordPair operator*(const WordPair& a, const WordPair& b) {
        WordPair product = of_words(a.low_, b.low_);
        product.high_ += a.low_ * b.high_ + a.high_ * b.low_;
        return product;
    }
    friend constexpr WordPair operator/(const WordPair& a, const WordPair& b) {
        WordPair<false> quotient = divided(size_of(a), size_of(b), nullptr);
        return WordPair(a.is_negative() == b.is_negative() ? quotient : -quotient, Same());
    }
    friend constexpr WordPair operator%(const WordPair& a, const WordPair& b) {
        WordPair<false> rest;
        divided(size_of(a), size_of(b), &rest);
        return WordPair(a.is_negative() ? -rest : rest, Same());
    }
    template <std::integral Count>
    friend constexpr WordPair operator<<(const WordPair& a, Count count) {
        auto by = static_cast<unsigned>(count);
        if (!by) return a;
        if (by >= 64) return of(0, a.low_ << (by - 64));
        return of(a.low_ << by, a.high_ << by | a.low_ >> (64 - by));
    }
    template <std::integral Count>
    friend constexpr WordPair operator>>(const WordPair& a, Count count) {
        auto by = static_cast<unsigned>(count);
        uint64_t sign = a.is_negative() ? ~uint64_t{0} : 0;
        if (!by) return a;
        if (by == 64) return of(a.high_, sign);
        if (by > 64) return of(a.high_ >> (by - 64) | sign << (128 - by), sign);
        return of(a.low_ >> by | a.high_ << (64 - by), a.high_ >> by | sign << (64 - by));
    }
    constexpr WordPair& operator++() { return *this += WordPair(1); }
    constexpr WordPair& operator+=(const WordPair& other) { return *this = *this + other; }
    constexpr WordPair& operator-=(const WordPair& other) { return *this = *this - other; }
    constexpr WordPair& operator*=(const WordPair& other) { return *this = *this * other; }
    constexpr WordPair& operator/=(const WordPair& other) { return *this = *this / other; }
    constexpr WordPair& operator|=(const WordPair& other) { return *this = *this | other; }
    template <std::integral Count>
    constexpr WordPair& operator<<=(Count count) {
        return *this = *this << count;
    }
    template <std::integral Count>
    constexpr WordPair& operator>>=(Count count) {
        return *this = *this >> count;
    }

    // The product of two words, which always fits.
    static constexpr WordPair of_words(uint64_t a, uint64_t b) {
        constexpr uint64_t HALF = 0xFFFFFFFFu;
        uint64_t lows = (a & HALF) * (b & HALF), middle = (a >> 32) * (b & HALF) + (lows >> 32);
        uint64_t other = (a & HALF) * (b >> 32) + (middle & HALF);
        return of(other << 32 | (lows & HALF), (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32));
    }

private:
    struct Same {};
    constexpr WordPair(const WordPair<false>& words, Same) : low_(words.low()), high_(words.high()) {}

    static constexpr WordPair<false> size_of(const WordPair& a) {
        WordPair<false> words = WordPair<false>::of(a.low_, a.high_);
        return a.is_negative() ? -words : words;
    }

    // Bit by bit, unless both fit a word.
    static constexpr WordPair<false> divided(WordPair<false> a, WordPair<false> b, WordPair<false>* rest) {
        if (!a.high() && !b.high()) {
            if (rest) *rest = a.low() % b.low();
            return a.low() / b.low();
        }
        WordPair<false> quotient, left;
        for (int bit = 127; bit >= 0; --bit) {
            left = left << 1 | (a >> bit & WordPair<false>(1));
            if (left < b) continue;
            left -= b;
            quotient |= WordPair<false>(1) << bit;
        }
        if (rest) *rest = left;
        return quotient;
    }

    uint64_t low_ = 0, high_ = 0;
};

#if defined(__SIZEOF_INT128__) && !defined(IVME_NO_INT128)

using Wide = __int128;
using UnsignedWide = unsigned __int128;

// Operands by value: GCC 12 reads them again after it has written the result, so the builtins must not see a result
// that is one of their operands.
template <class T>
inline bool add_overflows(T a, T b, T* sum) {
    return __builtin_add_overflow(a, b, sum);
}
template <class T>
inline bool subtract_overflows(T a, T b, T* difference) {
    return __builtin_sub_overflow(a, b, difference);
}
template <class T>
inline bool multiply_overflows(T a, T b, T* product) {
    return __builtin_mul_overflow(a, b, product);
}

#else

using Wide = WordPair<true>;
using UnsignedWide = WordPair<false>;

// Of signed numbers, here and below: without a sign they wrap, which is what they are then compared with.
inline bool add_overflows(int64_t a, int64_t b, int64_t* sum) {
    *sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return ((a ^ *sum) & (b ^ *sum)) < 0;
}
inline bool subtract_overflows(int64_t a, int64_t b, int64_t* difference) {
    *difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return ((a ^ b) & (a ^ *difference)) < 0;
}
inline bool multiply_overflows(int64_t a, int64_t b, int64_t* product) {
    Wide whole = Wide(a) * Wide(b);
    *product = static_cast<int64_t>(whole);
    return whole != Wide(*product);
}
inline bool add_overflows(Wide a, Wide b, Wide* sum) {
    *sum = a + b;
    return ((a ^ *sum) & (b ^ *sum)).is_negative();
}
inline bool subtract_overflows(Wide a, Wide b, Wide* difference) {
    *difference = a - b;
    return ((a ^ b) & (a ^ *difference)).is_negative();
}
inline bool multiply_overflows(Wide a, Wide b, Wide* product) {
    *product = a * b;
    UnsignedWide one(a.is_negative() ? -a : a), other(b.is_negative() ? -b : b);
    if (one.high() && other.high()) return true;
    uint64_t small = one.high() ? other.low() : one.low();
    UnsignedWide big = one.high() ? one : other;
    UnsignedWide lows = UnsignedWide::of_words(big.low(), small), highs = UnsignedWide::of_words(big.high(), small);
    uint64_t top = highs.low() + lows.high();
    if (highs.high() || top < lows.high()) return true;
    bool negative = a.is_negative() != b.is_negative();
    constexpr uint64_t FIRST = uint64_t{1} << 63;
    return negative ? top > FIRST || (top == FIRST && lows.low()) : top >= FIRST;
}

#endif

}  // namespace ivme
