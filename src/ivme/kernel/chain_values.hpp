// What the rows of groups show, as a chain of views tells it.
#pragma once

#include "chain_view.hpp"
#include "finishing.hpp"

namespace ivme {

// The code of an aggregate of a row of a block, by the words of its payload.
inline int64_t finished(const ChainValue& value, const int64_t* payload, const Block& block, size_t row) {
    const int64_t *sum = payload + (value.kind == 'x' ? 0 : value.place), *present = payload + value.present;
    int64_t code = NULL_VALUE;
    bool is_done = true;
    switch (value.kind) {
        case 'c':
            return payload[0];
        case 'x':
            return block.extremes[value.place][row];
        case 'n':
            return *present;
        case 's':
            is_done = finish_sums(sum, value.words, present, 1, value.most, &code);
            break;
        case 'm':
            is_done = finish_means(sum, value.words, present, 1, &code);
            break;
        case 'd':
            is_done = finish_decimal_means(sum, value.words, present, 1, value.factor, value.most, &code);
            break;
        default: {
            double rounded = rounded_float(sum);
            finish_floats(&rounded, present, 1, value.kind == 'g', &code);
        }
    }
    if (!is_done) throw Declined();
    return code;
}

}  // namespace ivme
