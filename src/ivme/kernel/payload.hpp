// Payloads in the ring of degree one (algebra/ring.py): a count and sums, as consecutive 64-bit words, low word first.
//
// Counts never wrap: every operation reports overflow, and the caller throws before it has changed anything. Sums wrap,
// and are exact all the same: they are known modulo 2^64, 2^128 or 2^192, and the sum of a group whose count fits 63 bits
// is below half of that, as each summed value is below 2^0, 2^63 or 10^38 (decision 0100). So partial sums need no check,
// in whatever order they come. Sums of floats are exact, too (exact_float.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "exact_float.hpp"
#include "wide.hpp"

namespace ivme {

enum class Slot : uint8_t { I64, F64, I128, I192 };

inline unsigned width(Slot slot) {
    return slot == Slot::I64 ? 1 : slot == Slot::I128 ? 2 : slot == Slot::I192 ? 3 : FLOAT_WORDS;
}

// What a visible sum must fit: any value will do, those of an int, or those of 38 decimal digits.
enum class Limit : uint8_t { None, Int, Decimal };

struct Layout {
    std::vector<Slot> slots;
    unsigned words = 1;
    FloatPool* pool = nullptr;  // for sums of floats that are long
    bool has_floats = false;

    Layout() = default;
    Layout(std::vector<Slot> kinds, FloatPool* pool) : slots(std::move(kinds)), pool(pool) {
        for (Slot slot : slots) {
            words += width(slot);
            has_floats |= slot == Slot::F64;
        }
    }

    bool plain() const { return words == 1; }
    bool operator==(const Layout& other) const { return slots == other.slots; }

    bool is_zero(const int64_t* payload) const {
        for (unsigned i = 0; i < words; ++i) {
            if (payload[i]) return false;
        }
        return true;
    }

    // Visits the sums of floats that are long.
    template <class Words, class Visit>
    void each_long(Words* payload, Visit visit) const {
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::F64 && payload[at] == IS_LONG) visit(payload + at);
            at += width(slot);
        }
    }

    // total := left + right; `total` may be either. The result says by how many times 2^64 the count is off: 0 if it fits.
    [[nodiscard]] int add(int64_t* total, const int64_t* left, const int64_t* right) const {
        int carry = left[0] < 0 ? -1 : 1;
        if (!add_overflows(left[0], right[0], &total[0])) carry = 0;
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                total[at] = wrapped_sum(left[at], right[at]);
            } else if (slot == Slot::F64) {
                add_float(total + at, left + at, right + at, *pool);
            } else if (slot == Slot::I128) {
                add_words<2>(total + at, left + at, right + at);
            } else {
                add_words<3>(total + at, left + at, right + at);
            }
            at += width(slot);
        }
        return carry;
    }

    // Whether adding to a stored payload changed the sign that two summands had in common. Without negative multiplicities
    // that never happens; with them it shows most sums that left their words.
    bool has_wrapped(const int64_t* total, const int64_t* left, const int64_t* right) const {
        int64_t wrapped = 0;
        unsigned at = 0;
        for (Slot slot : slots) {
            at += width(slot);
            if (slot != Slot::F64) wrapped |= (total[at] ^ left[at]) & (total[at] ^ right[at]);
        }
        return wrapped < 0;
    }

    // total := factor · right, for a plain multiplicity; `total` may be `right`. False if the count does not fit.
    [[nodiscard]] bool scale(int64_t* total, int64_t factor, const int64_t* right) const {
        bool overflow = multiply_overflows(factor, right[0], &total[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                total[at] = wrapped_product(factor, right[at]);
            } else if (slot == Slot::F64) {
                scale_float(total + at, factor, right + at, *pool);
            } else if (slot == Slot::I128) {
                scale_words<2>(total + at, factor, right + at);
            } else {
                scale_words<3>(total + at, factor, right + at);
            }
            at += width(slot);
        }
        return !overflow;
    }

    // left := left · right, both with sums: (c, s)·(d, t) = (c·d, c·t + d·s). False if the count does not fit.
    [[nodiscard]] bool multiply(int64_t* left, const int64_t* right) const {
        int64_t c = left[0], d = right[0];
        bool overflow = multiply_overflows(c, d, &left[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::I64) {
                left[at] = wrapped_sum(wrapped_product(c, right[at]), wrapped_product(d, left[at]));
            } else if (slot == Slot::F64) {
                multiply_float(left + at, c, d, right + at, *pool);
            } else if (slot == Slot::I128) {
                multiply_words<2>(left + at, c, d, right + at);
            } else {
                multiply_words<3>(left + at, c, d, right + at);
            }
            at += width(slot);
        }
        return !overflow;
    }

    // Whether every sum fits what is demanded of it; `limits` has one for each slot.
    bool fits(const int64_t* payload, const std::vector<Limit>& limits) const {
        unsigned at = 1;
        for (size_t i = 0; i < slots.size(); ++i) {
            if (limits[i] != Limit::None && !is_within(payload + at, width(slots[i]), limits[i])) return false;
            at += width(slots[i]);
        }
        return true;
    }

private:
    static bool is_within(const int64_t* sum, unsigned words, Limit limit) {
        for (unsigned i = 2; i < words; ++i) {
            if (sum[i] != sum[1] >> 63) return false;
        }
        Wide bound = limit == Limit::Int ? Wide{1} << 63 : power_of_ten(38), value = words > 1 ? load_wide(sum) : sum[0];
        return -bound < value && value < bound;
    }
};

inline Slot parse_slot(const std::string& name) {
    if (name == "i64") return Slot::I64;
    if (name == "f64") return Slot::F64;
    if (name == "i128" || name == "d128") return Slot::I128;
    if (name == "d192") return Slot::I192;
    throw std::invalid_argument("a slot is i64, f64, i128, d128 or d192, not " + name);
}

inline Limit parse_limit(const std::string& name) {
    if (name.empty()) return Limit::None;
    if (name == "int") return Limit::Int;
    if (name == "decimal") return Limit::Decimal;
    throw std::invalid_argument("a limit is empty, int or decimal, not " + name);
}

}  // namespace ivme
