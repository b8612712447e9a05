// Payloads in the ring of degree one (algebra/ring.py): a count and sums, as consecutive 64-bit words.
//
// Counts and integer sums never wrap: every operation reports overflow, and the caller throws before it has changed
// anything. An i128 sum takes two words, low first; an f64 sum is kept by its bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ivme {

enum class Slot : uint8_t { I64, F64, I128 };

using Wide = __int128;

// Operands by value: GCC 12 reads them again after it has written the result, so the builtins must not see a result
// that is one of their operands.
template <class T>
inline bool add_overflows(T a, T b, T* sum) {
    return __builtin_add_overflow(a, b, sum);
}
template <class T>
inline bool multiply_overflows(T a, T b, T* product) {
    return __builtin_mul_overflow(a, b, product);
}

inline Wide load_wide(const int64_t* words) {
    return static_cast<Wide>(static_cast<unsigned __int128>(static_cast<uint64_t>(words[0])) |
                             static_cast<unsigned __int128>(static_cast<uint64_t>(words[1])) << 64);
}

inline void store_wide(int64_t* words, Wide value) {
    words[0] = static_cast<int64_t>(static_cast<uint64_t>(value));
    words[1] = static_cast<int64_t>(static_cast<uint64_t>(static_cast<unsigned __int128>(value) >> 64));
}

inline double load_double(const int64_t* word) { return std::bit_cast<double>(*word); }
inline void store_double(int64_t* word, double value) { *word = std::bit_cast<int64_t>(value); }

// False for what no delete could take back: an infinity, or what comes of one.
[[nodiscard]] inline bool store_finite(int64_t* word, double value) {
    store_double(word, value);
    return std::isfinite(value);
}

struct Layout {
    std::vector<Slot> slots;
    unsigned words = 1;

    Layout() = default;
    explicit Layout(std::vector<Slot> kinds) : slots(std::move(kinds)) {
        for (Slot slot : slots) words += slot == Slot::I128 ? 2 : 1;
    }

    bool plain() const { return words == 1; }
    bool operator==(const Layout& other) const { return slots == other.slots; }

    bool is_zero(const int64_t* payload) const {
        if (payload[0]) return false;
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::F64 ? load_double(payload + at) != 0 : payload[at] != 0) return false;
            if (slot == Slot::I128 && payload[at + 1]) return false;
            at += slot == Slot::I128 ? 2 : 1;
        }
        return true;
    }

    // total := left + right; `total` may be either. False on overflow.
    [[nodiscard]] bool add(int64_t* total, const int64_t* left, const int64_t* right) const {
        bool overflow = add_overflows(left[0], right[0], &total[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                overflow |= add_overflows(left[at], right[at], &total[at]);
            } else if (slot == Slot::F64) {
                overflow |= !store_finite(total + at, load_double(left + at) + load_double(right + at));
            } else {
                Wide sum;
                overflow |= add_overflows(load_wide(left + at), load_wide(right + at), &sum);
                store_wide(total + at++, sum);
            }
            ++at;
        }
        return !overflow;
    }

    // total := factor · right, for a plain multiplicity; `total` may be `right`.
    [[nodiscard]] bool scale(int64_t* total, int64_t factor, const int64_t* right) const {
        bool overflow = multiply_overflows(factor, right[0], &total[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                overflow |= multiply_overflows(factor, right[at], &total[at]);
            } else if (slot == Slot::F64) {
                overflow |= !store_finite(total + at, static_cast<double>(factor) * load_double(right + at));
            } else {
                Wide product;
                overflow |= multiply_overflows(static_cast<Wide>(factor), load_wide(right + at), &product);
                store_wide(total + at++, product);
            }
            ++at;
        }
        return !overflow;
    }

    // left := left · right, both with sums: (c, s)·(d, t) = (c·d, c·t + d·s).
    [[nodiscard]] bool multiply(int64_t* left, const int64_t* right) const {
        int64_t c = left[0], d = right[0];
        bool overflow = multiply_overflows(c, d, &left[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                int64_t one, other;
                overflow |= multiply_overflows(c, right[at], &one);
                overflow |= multiply_overflows(d, left[at], &other);
                overflow |= add_overflows(one, other, &left[at]);
            } else if (slot == Slot::F64) {
                double one = static_cast<double>(c) * load_double(right + at);
                overflow |= !store_finite(left + at, one + static_cast<double>(d) * load_double(left + at));
            } else {
                Wide one, other, sum;
                overflow |= multiply_overflows(static_cast<Wide>(c), load_wide(right + at), &one);
                overflow |= multiply_overflows(static_cast<Wide>(d), load_wide(left + at), &other);
                overflow |= add_overflows(one, other, &sum);
                store_wide(left + at++, sum);
            }
            ++at;
        }
        return !overflow;
    }
};

inline Slot parse_slot(const std::string& name) {
    if (name == "i64") return Slot::I64;
    if (name == "f64") return Slot::F64;
    if (name == "i128") return Slot::I128;
    throw std::invalid_argument("a slot is i64, f64 or i128, not " + name);
}

}  // namespace ivme
