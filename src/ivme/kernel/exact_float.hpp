// Exact sums of doubles, rounded once when they are read (decision 0101).
//
// A finite double is a whole number of units of 2^-1074. A sum is kept in three words: a position and an odd mantissa
// of up to 127 bits, for mantissa · 2^position units; zero is three zeros. That holds what most groups ever have. A sum
// that spans more bits, or has infinities or NaNs in it, is a `LongFloat` that the words point to: it never changes, so
// that copies of the words (in deltas, in undo records) cost nothing, and those that no map points to any more are
// freed at the end of a transaction (`FloatPool`). Each value has one form only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "wide.hpp"

namespace ivme {

inline constexpr unsigned FLOAT_WORDS = 3;

// In place of a position: the second word is the address of a LongFloat.
inline constexpr int64_t IS_LONG = -1;

// Up to 2^1102, which is 2^15 times more than 2^63 times the largest double: sums wrap there, as integers do.
inline constexpr unsigned LONG_WORDS = 34;

// The words of a sum from word `first` on, those above are its sign; and how often infinities and NaN are in it.
struct LongFloat {
    int64_t positive = 0, negative = 0, undefined = 0;
    uint32_t first = 0, count = 0;
    mutable bool marked = false;

    // The words lie behind it.
    int64_t* words() { return reinterpret_cast<int64_t*>(this + 1); }
    const int64_t* words() const { return reinterpret_cast<const int64_t*>(this + 1); }
};

// Owns the LongFloats of a kernel, or those that a reader makes while it multiplies.
class FloatPool {
public:
    FloatPool() = default;
    FloatPool(const FloatPool&) = delete;
    FloatPool& operator=(const FloatPool&) = delete;
    ~FloatPool();

    LongFloat* make(unsigned words);
    void clear() noexcept;
    bool is_crowded() const { return all_.size() > most_; }
    // Frees those that are not marked, and the marks. The maps have so many entries with floats.
    void sweep(size_t entries) noexcept;
    size_t bytes() const { return bytes_ + all_.capacity() * sizeof(LongFloat*); }
    size_t size() const { return all_.size(); }

private:
    static size_t bytes_of(unsigned words) { return sizeof(LongFloat) + words * sizeof(int64_t); }

    std::vector<LongFloat*> all_;
    size_t bytes_ = 0;
    size_t most_ = 1024;
};

// A sum in full, for whatever the three words do not hold.
struct FullFloat {
    int64_t words[LONG_WORDS] = {};
    int64_t positive = 0, negative = 0, undefined = 0;

    // Adds factor times a sum.
    void add(const int64_t* sum, int64_t factor);
    void store(int64_t* sum, FloatPool& pool) const;
    double rounded() const;
};

inline const LongFloat* long_float(const int64_t* sum) {
    return reinterpret_cast<const LongFloat*>(static_cast<intptr_t>(sum[1]));
}

void add_long(int64_t* total, const int64_t* left, int64_t factor, const int64_t* right, FloatPool& pool);
void lift_float(int64_t* sum, double value, int64_t weight, FloatPool& pool);
double rounded_float(const int64_t* sum);
// A number that depends on the value only.
uint64_t hash_float(const int64_t* sum);
// A long sum as words that `load_long` reads; how many it read, 0 if they are none.
void dump_long(const LongFloat& from, std::vector<int64_t>& words);
size_t load_long(int64_t* sum, const int64_t* words, size_t n, FloatPool& pool);

inline constexpr int64_t LAST_POSITION = 2048;

inline unsigned trailing_zeros(UnsignedWide value) {
    uint64_t low = static_cast<uint64_t>(value);
    int zeros = low ? std::countr_zero(low) : 64 + std::countr_zero(static_cast<uint64_t>(value >> 64));
    return static_cast<unsigned>(zeros);
}

// Writes mantissa · 2^position in its one form; false if three words do not hold it.
[[nodiscard]] inline bool store_short(int64_t* sum, Wide mantissa, int64_t position) {
    if (!mantissa) {
        sum[0] = sum[1] = sum[2] = 0;
        return true;
    }
    unsigned zeros = trailing_zeros(static_cast<UnsignedWide>(mantissa));
    if (position + zeros > LAST_POSITION) return false;
    sum[0] = position + zeros;
    store_wide(sum + 1, mantissa >> zeros);
    return true;
}

// The mantissa at a lower position; false if it has no room there.
[[nodiscard]] inline bool lower(Wide& mantissa, int64_t by) {
    if (by > 126) return false;
    Wide lowered = static_cast<Wide>(static_cast<UnsignedWide>(mantissa) << by);
    if (lowered >> by != mantissa) return false;
    mantissa = lowered;
    return true;
}

// total := left + right; `total` may be either.
inline void add_float(int64_t* total, const int64_t* left, const int64_t* right, FloatPool& pool) {
    if (left[0] != IS_LONG && right[0] != IS_LONG) {
        Wide one = load_wide(left + 1), other = load_wide(right + 1), sum;
        int64_t position = left[0] < right[0] ? left[0] : right[0];
        if (!one) position = right[0];
        if (!other) position = left[0];
        bool fits = (!one || lower(one, left[0] - position)) && (!other || lower(other, right[0] - position));
        if (fits && !add_overflows(one, other, &sum) && store_short(total, sum, position)) return;
    }
    add_long(total, left, 1, right, pool);
}

// total := factor · right; `total` may be `right`.
inline void scale_float(int64_t* total, int64_t factor, const int64_t* right, FloatPool& pool) {
    if (factor == 1) {
        for (unsigned i = 0; i < FLOAT_WORDS; ++i) total[i] = right[i];
        return;
    }
    if (right[0] != IS_LONG) {
        Wide product;
        bool overflow = multiply_overflows(load_wide(right + 1), static_cast<Wide>(factor), &product);
        if (!overflow && store_short(total, product, right[0])) return;
    }
    add_long(total, nullptr, factor, right, pool);
}

// left := c · right + d · left.
inline void multiply_float(int64_t* left, int64_t c, int64_t d, const int64_t* right, FloatPool& pool) {
    int64_t one[FLOAT_WORDS], other[FLOAT_WORDS];
    scale_float(one, c, right, pool);
    scale_float(other, d, left, pool);
    add_float(left, one, other, pool);
}

}  // namespace ivme
