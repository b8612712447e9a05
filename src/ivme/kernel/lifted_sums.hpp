// What rows of few groups (row_groups.hpp) bring into sums: added up a column at a time, without a payload for each
// row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lift.hpp"

namespace ivme {

// Whether the sums of a layout are whole numbers, and a lift is a whole number times the weight of its row.
inline bool adds_up(const Layout& layout, const std::vector<Lift>& lifts) {
    auto is_whole = [](Slot slot) { return slot == Slot::I64 || slot == Slot::I128 || slot == Slot::I192; };
    auto adds = [](const Lift& lift) {
        return !lift.square && lift.kind != LiftKind::Float && lift.kind != LiftKind::Product;
    };
    return std::all_of(layout.slots.begin(), layout.slots.end(), is_whole) &&
           std::all_of(lifts.begin(), lifts.end(), adds);
}

// The payloads of groups, which are sums over the rows of an input.
struct LiftedSums {
    const Input& input;
    size_t start;
    const uint32_t* kept;  // the rows, from `start` on
    const uint16_t* places;
    unsigned rows, groups;
    int64_t* payloads;
    unsigned words;

    // False if a sum of weights does not fit.
    bool sum_weights() const {
        bool fits = true;
        clear(Slot::I64, 0);
        each(0, [&](size_t row, int64_t* word) { fits &= !add_overflows(word[0], input.weights[row], word); });
        return fits;
    }

    // Lifts a column into the words from `at` on, if it `adds_up`, once weights are summed.
    void sum_column(const Lift& lift, Slot slot, unsigned at) const {
        clear(slot, at);
        if (lift.kind == LiftKind::None) return;
        bool has_values = lift.kind == LiftKind::Int || lift.kind == LiftKind::Int128;
        const int64_t* codes = lift.kind == LiftKind::One ? nullptr : input.columns[lift.column];
        if (!has_values && (!codes || !has_null(codes))) return copy_weights(slot, at);
        const int64_t* high = lift.kind == LiftKind::Int128 ? input.columns[lift.column + 1] : nullptr;
        if (slot == Slot::I64) return add_values<1>(codes, high, !has_values, at);
        slot == Slot::I128 ? add_values<2>(codes, high, !has_values, at) : add_values<3>(codes, high, !has_values, at);
    }

private:
    void clear(Slot slot, unsigned at) const {
        for (unsigned i = 0; i < groups; ++i) std::fill_n(payloads + size_t{i} * words + at, width(slot), 0);
    }

    bool has_null(const int64_t* codes) const {
        bool found = false;
        for (unsigned i = 0; i < rows; ++i) found |= codes[start + kept[i]] == NULL_CODE;
        return found;
    }

    void copy_weights(Slot slot, unsigned at) const {
        for (unsigned i = 0; i < groups; ++i) {
            int64_t* payload = payloads + size_t{i} * words;
            payload[at] = payload[0];
            for (unsigned word = 1; word < width(slot); ++word) payload[at + word] = payload[0] >> 63;
        }
    }

    // A number of 128 bits has its upper word in another column; its words are zero where it is NULL.
    template <unsigned N>
    void add_values(const int64_t* codes, const int64_t* high, bool counts, unsigned at) const {
        each(at, [&](size_t row, int64_t* total) {
            int64_t code = codes[row], weight = input.weights[row];
            int64_t low = code == NULL_CODE && !high ? 0 : counts ? 1 : code;
            if constexpr (N == 1) {
                total[0] = wrapped_sum(total[0], wrapped_product(weight, low));
            } else {
                int64_t value[3] = {low, high ? high[row] : low >> 63};
                value[2] = value[1] >> 63;
                if (weight != 1) scale_words<N>(value, weight, value);
                add_words<N>(total, total, value);
            }
        });
    }

    // Visits each row, with the words of its group.
    template <class Add>
    void each(unsigned at, Add add) const {
        for (unsigned i = 0; i < rows; ++i) add(start + kept[i], payloads + size_t{places[i]} * words + at);
    }
};

}  // namespace ivme
