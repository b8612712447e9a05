// What the rows of a table bring into sums: a value of theirs times their weight.
#pragma once

#include <bit>
#include <cmath>

#include "machine.hpp"

namespace ivme {

// The floats of codes: an encoding that keeps the order of doubles when compared as integers.
inline double decode_float(int64_t code) { return std::bit_cast<double>(code ^ ((code >> 63) & 0x7FFFFFFFFFFFFFFFll)); }

// The product of floats as two floats: the rounded one, and what its rounding left out.
inline void lift_float_product(double one, double other, int64_t weight, int64_t* word, FloatPool& pool) {
    double high = one * other;
    lift_float(word, high, weight, pool);
    double low = std::isfinite(high) ? std::fma(one, other, -high) : 0;
    if (low == 0) return;
    int64_t rest[FLOAT_WORDS] = {};
    lift_float(rest, low, weight, pool);
    add_float(word, word, rest, pool);
}

inline void lift_value(const Lift& lift, Slot slot, const Input& input, size_t row, int64_t weight, int64_t* word,
                       FloatPool* pool) {
    std::fill_n(word, width(slot), 0);
    if (lift.kind == LiftKind::None) return;
    if (lift.kind == LiftKind::One) {
        word[0] = slot == Slot::JointF64 ? word_of(static_cast<double>(weight)) : weight;
        for (unsigned i = 1; i < width(slot); ++i) word[i] = weight >> 63;
        return;
    }
    int64_t code = input.columns[lift.column][row];
    if (code == NULL_CODE && lift.kind != LiftKind::Int128) return;
    if (slot == Slot::F64) {
        double value = lift.kind == LiftKind::Count ? 1
                       : lift.kind == LiftKind::Int ? static_cast<double>(code)
                                                    : decode_float(code);
        if (lift.square) return lift_float_product(value, value, weight, word, *pool);
        if (lift.kind == LiftKind::Product) {
            int64_t other = input.columns[lift.column + 1][row];
            if (other == NULL_CODE) return;
            return lift_float_product(value, decode_float(other), weight, word, *pool);
        }
        return lift_float(word, value, weight, *pool);
    }
    if (slot == Slot::JointF64) {
        word[0] = word_of(static_cast<double>(weight) * decode_float(code));
        return;
    }
    if (width(slot) == 1) {
        word[0] = wrapped_product(weight, lift.kind == LiftKind::Count ? 1 : code);
        return;
    }
    if (slot == Slot::I128 && lift.kind != LiftKind::Int128) {
        return store_wide(word, static_cast<Wide>(weight) * (lift.kind == LiftKind::Count ? 1 : code));
    }
    word[0] = lift.kind == LiftKind::Count ? 1 : code;
    word[1] = lift.kind == LiftKind::Int128 ? input.columns[lift.column + 1][row] : word[0] >> 63;
    if (lift.square) {
        UnsignedWide size = static_cast<UnsignedWide>(word[1] < 0 ? -load_wide(word) : load_wide(word));
        store_wide(word, static_cast<Wide>(size * size));
    }
    if (slot == Slot::I128) {
        scale_words<2>(word, weight, word);
    } else {
        word[2] = word[1] >> 63;
        scale_words<3>(word, weight, word);
    }
}

// Some rows of an input, and where their payloads are.
struct LiftedRows {
    const Input& input;
    size_t start;
    const uint32_t* places;  // of the rows, from `start` on
    unsigned count;
    int64_t* payloads;
    unsigned words;

    template <class Write>
    void each(unsigned at, Write write) const {
        for (unsigned i = 0; i < count; ++i) {
            int64_t* payload = payloads + static_cast<size_t>(i) * words;
            write(start + places[i], payload[0], payload + at);
        }
    }
};

// Lifts a column into the words from `at` on. What integers bring is told in a loop without a choice in it.
inline void lift_column(const Lift& lift, Slot slot, const LiftedRows& rows, unsigned at, FloatPool* pool) {
    bool is_whole = lift.kind == LiftKind::Int && !lift.square;
    if (is_whole && (slot == Slot::I64 || slot == Slot::I128)) {
        const int64_t* codes = rows.input.columns[lift.column];
        auto value = [codes](size_t row) { return codes[row] == NULL_CODE ? 0 : codes[row]; };
        if (slot == Slot::I64) {
            return rows.each(
                at, [&](size_t row, int64_t weight, int64_t* word) { word[0] = wrapped_product(weight, value(row)); });
        }
        return rows.each(at, [&](size_t row, int64_t weight, int64_t* word) {
            store_wide(word, static_cast<Wide>(weight) * value(row));
        });
    }
    rows.each(at, [&](size_t row, int64_t weight, int64_t* word) {
        lift_value(lift, slot, rows.input, row, weight, word, pool);
    });
}

}  // namespace ivme
