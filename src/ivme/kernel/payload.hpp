// Payloads in the ring of degree one (algebra/ring.py): a count and sums, as consecutive 64-bit words, low word first.
//
// Counts never wrap: every operation reports overflow, and the caller throws before it has changed anything. Sums wrap,
// and are exact all the same: they are known modulo 2^64, 2^128 or 2^192, and the sum of a group whose count fits 63
// bits is below half of that, as each summed value is below 2^0, 2^63 or 10^38 (decision 0100), squares of ints and
// of decimals of 19 digits included. So partial sums need no
// check, in whatever order they come. Sums of floats are exact, too (exact_float.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "exact_float.hpp"
#include "wide.hpp"

namespace ivme {

// Joint slots are of products of values of several tables: each table has its factor, or one, and they just multiply.
// Those of floats are rounded at each step, as the sums of a covariance ring are (decision 0381).
enum class Slot : uint8_t { I64, F64, I128, I192, Joint64, Joint192, JointF64 };

constexpr unsigned width(Slot slot) {
    switch (slot) {
        case Slot::I64:
        case Slot::Joint64:
        case Slot::JointF64:
            return 1;
        case Slot::I128:
            return 2;
        case Slot::I192:
        case Slot::Joint192:
            return 3;
        default:
            return FLOAT_WORDS;
    }
}

// A slot that is known when a loop over it is compiled.
template <Slot slot>
using Kind = std::integral_constant<Slot, slot>;

// A float as a word; zero is the word of zero, of either sign.
inline double double_of(int64_t word) { return std::bit_cast<double>(word); }
inline int64_t word_of(double value) { return value == 0 ? 0 : std::bit_cast<int64_t>(value); }

// What a visible sum must fit: any value will do, those of an int, or those of 38 decimal digits.
enum class Limit : uint8_t { None, Int, Decimal };

struct Layout {
    std::vector<Slot> slots;
    unsigned words = 1;
    FloatPool* pool = nullptr;  // for sums of floats that are long
    bool has_floats = false;
    bool has_words_only = true;  // every sum is of one or two words, and adds up as whole numbers do

    Layout() = default;
    Layout(std::vector<Slot> kinds, FloatPool* floats) : slots(std::move(kinds)), pool(floats) {
        for (Slot slot : slots) {
            words += width(slot);
            has_floats |= slot == Slot::F64;
            has_words_only &= slot == Slot::I64 || slot == Slot::Joint64 || slot == Slot::I128;
        }
    }

    bool plain() const { return words == 1; }
    bool has(std::initializer_list<Slot> kinds) const {
        return std::equal(slots.begin(), slots.end(), kinds.begin(), kinds.end());
    }
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

    // Visits where the words of each slot begin, and its kind as a constant.
    template <class Visit>
    void each_slot(Visit visit) const {
        unsigned at = 1;
        for (Slot slot : slots) {
            switch (slot) {
                case Slot::I64:
                    visit(at, Kind<Slot::I64>());
                    break;
                case Slot::F64:
                    visit(at, Kind<Slot::F64>());
                    break;
                case Slot::I128:
                    visit(at, Kind<Slot::I128>());
                    break;
                case Slot::I192:
                    visit(at, Kind<Slot::I192>());
                    break;
                case Slot::Joint64:
                    visit(at, Kind<Slot::Joint64>());
                    break;
                case Slot::Joint192:
                    visit(at, Kind<Slot::Joint192>());
                    break;
                case Slot::JointF64:
                    visit(at, Kind<Slot::JointF64>());
                    break;
            }
            at += width(slot);
        }
    }

    // total := left + right, of one slot; `total` may be either.
    template <Slot slot>
    void add_slot(Kind<slot>, int64_t* total, const int64_t* left, const int64_t* right) const {
        if constexpr (slot == Slot::JointF64) {
            *total = word_of(double_of(*left) + double_of(*right));
        } else if constexpr (width(slot) == 1) {
            *total = wrapped_sum(*left, *right);
        } else if constexpr (slot == Slot::F64) {
            add_float(total, left, right, *pool);
        } else {
            add_words<width(slot)>(total, left, right);
        }
    }

    // total := factor · right, of one slot; `total` may be `right`.
    template <Slot slot>
    void scale_slot(Kind<slot>, int64_t* total, int64_t factor, const int64_t* right) const {
        if constexpr (slot == Slot::JointF64) {
            *total = word_of(static_cast<double>(factor) * double_of(*right));
        } else if constexpr (width(slot) == 1) {
            *total = wrapped_product(factor, *right);
        } else if constexpr (slot == Slot::F64) {
            scale_float(total, factor, right, *pool);
        } else {
            scale_words<width(slot)>(total, factor, right);
        }
    }

    // left := left · right, of one slot; their counts are c and d.
    template <Slot slot>
    void multiply_slot(Kind<slot>, int64_t* left, int64_t c, int64_t d, const int64_t* right) const {
        if constexpr (slot == Slot::I64) {
            *left = wrapped_sum(wrapped_product(c, *right), wrapped_product(d, *left));
        } else if constexpr (slot == Slot::F64) {
            multiply_float(left, c, d, right, *pool);
        } else if constexpr (slot == Slot::Joint64) {
            *left = wrapped_product(*left, *right);
        } else if constexpr (slot == Slot::JointF64) {
            *left = word_of(double_of(*left) * double_of(*right));
        } else if constexpr (slot == Slot::Joint192) {
            multiply_three_words(left, right);
        } else {
            multiply_words<width(slot)>(left, c, d, right);
        }
    }

    // total := left + right; `total` may be either. The result says by how many times 2^64 the count is off: 0 if it
    // fits.
    [[nodiscard]] int add(int64_t* total, const int64_t* left, const int64_t* right) const {
        int carry = left[0] < 0 ? -1 : 1;
        if (!add_overflows(left[0], right[0], &total[0])) carry = 0;
        each_slot([&](unsigned at, auto kind) { add_slot(kind, total + at, left + at, right + at); });
        return carry;
    }

    // Adds the sums, not the counts, of several payloads that lie behind each other; if `has_words_only`.
    void add_words_of(int64_t* total, const int64_t* payloads, unsigned count) const {
        unsigned at = 1;
        for (Slot slot : slots) {
            const int64_t* from = payloads + at;
            if (slot == Slot::I128) {
                auto sum = static_cast<UnsignedWide>(load_wide(total + at));
                for (unsigned i = 0; i < count; ++i)
                    sum += static_cast<UnsignedWide>(load_wide(from + size_t{i} * words));
                store_wide(total + at, static_cast<Wide>(sum));
            } else {
                for (unsigned i = 0; i < count; ++i) total[at] = wrapped_sum(total[at], from[size_t{i} * words]);
            }
            at += width(slot);
        }
    }

    // `add` for what is stored: false also if a sum left its words, which only negative multiplicities can bring about.
    [[nodiscard]] bool add_stored(int64_t* total, const int64_t* left, const int64_t* right) const {
        bool overflow = add_overflows(left[0], right[0], &total[0]);
        unsigned at = 1;
        for (Slot slot : slots) {
            if (slot == Slot::JointF64) {
                total[at] = word_of(double_of(left[at]) + double_of(right[at]));
            } else if (width(slot) == 1) {
                overflow |= add_overflows(left[at], right[at], &total[at]);
            } else if (slot == Slot::I128) {
                Wide sum;
                overflow |= add_overflows(load_wide(left + at), load_wide(right + at), &sum);
                store_wide(total + at, sum);
            } else if (slot == Slot::F64) {
                add_float(total + at, left + at, right + at, *pool);
            } else {
                int64_t one = left[at + 2], other = right[at + 2];
                add_words<3>(total + at, left + at, right + at);
                overflow |= ((total[at + 2] ^ one) & (total[at + 2] ^ other)) < 0;
            }
            at += width(slot);
        }
        return !overflow;
    }

    // total := factor · right, for a plain multiplicity; `total` may be `right`. False if the count does not fit.
    [[nodiscard]] bool scale(int64_t* total, int64_t factor, const int64_t* right) const {
        bool overflow = multiply_overflows(factor, right[0], &total[0]);
        each_slot([&](unsigned at, auto kind) { scale_slot(kind, total + at, factor, right + at); });
        return !overflow;
    }

    // left := left · right, both with sums: (c, s)·(d, t) = (c·d, c·t + d·s), and s·t where they are joint. False if
    // the count does not fit.
    [[nodiscard]] bool multiply(int64_t* left, const int64_t* right) const {
        int64_t c = left[0], d = right[0];
        bool overflow = multiply_overflows(c, d, &left[0]);
        each_slot([&](unsigned at, auto kind) { multiply_slot(kind, left + at, c, d, right + at); });
        return !overflow;
    }
};

// What is demanded of one sum of a payload: where its words are, and what it must fit.
struct SumLimit {
    unsigned at, words;
    Limit limit;

    bool holds(const int64_t* payload) const {
        const int64_t* sum = payload + at;
        for (unsigned i = 2; i < words; ++i) {
            if (sum[i] != sum[1] >> 63) return false;
        }
        if (limit == Limit::Int) return sum[1] == sum[0] >> 63 && sum[0] != INT64_MIN;
        constexpr Wide bound = power_of_ten(38);
        Wide value = load_wide(sum);
        return -bound < value && value < bound;
    }
};

inline Slot parse_slot(const std::string& name) {
    if (name == "i64") return Slot::I64;
    if (name == "f64") return Slot::F64;
    if (name == "i128" || name == "d128") return Slot::I128;
    if (name == "i192" || name == "d192") return Slot::I192;
    if (name == "joint i64") return Slot::Joint64;
    if (name == "joint f64") return Slot::JointF64;
    if (name == "joint i192" || name == "joint d192") return Slot::Joint192;
    throw std::invalid_argument("a slot is i64, f64, i128, d128, i192, d192 or a joint one, not " + name);
}

inline std::vector<Slot> parse_slots(const std::vector<std::string>& names) {
    std::vector<Slot> slots;
    for (const auto& name : names) slots.push_back(parse_slot(name));
    return slots;
}

inline Limit parse_limit(const std::string& name) {
    if (name.empty()) return Limit::None;
    if (name == "int") return Limit::Int;
    if (name == "decimal") return Limit::Decimal;
    throw std::invalid_argument("a limit is empty, int or decimal, not " + name);
}

}  // namespace ivme
