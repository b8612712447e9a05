// Look-ups by the block: gather keys and hash them, fetch slots, fetch records, then visit on warm lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "delta.hpp"
#include "map.hpp"

namespace ivme {

// Where the columns of a key lie, for the rows of a delta.
struct KeyColumns {
    unsigned arity = 0;
    const int64_t* from[Map::MAX_ARITY];

    KeyColumns(const Delta& delta, const std::vector<unsigned>& columns) : arity(count_of(columns)) {
        for (unsigned c = 0; c < arity; ++c) from[c] = delta.columns[columns[c]].data();
    }
    explicit KeyColumns(const Delta& delta) : arity(count_of(delta.columns)) {
        for (unsigned c = 0; c < arity; ++c) from[c] = delta.columns[c].data();
    }
    void gather(size_t row, int64_t* key) const {
        for (unsigned c = 0; c < arity; ++c) key[c] = from[c][row];
    }
};

struct KeyBlock {
    int64_t keys[BLOCK * Map::MAX_ARITY];
    uint32_t tags[BLOCK];
};

// Visits (position, key, tag) for n keys of `table`, which is a map or a group table. `gather(i, key)` writes key i.
template <class Table, class Gather, class Visit>
void probe_keys(const Table& table, KeyBlock& block, size_t n, Gather gather, Visit visit) {
    unsigned arity = table.arity();
    for (size_t start = 0; start < n; start += BLOCK) {
        unsigned count = static_cast<unsigned>(std::min<size_t>(BLOCK, n - start));
        for (unsigned i = 0; i < count; ++i) {
            int64_t* key = block.keys + i * arity;
            gather(start + i, key);
            block.tags[i] = table.tag(key);
            table.prefetch(block.tags[i]);
        }
        if (count > 4) {
            for (unsigned i = 0; i < count; ++i) table.prefetch_record(block.tags[i]);
        }
        for (unsigned i = 0; i < count; ++i) visit(start + i, block.keys + i * arity, block.tags[i]);
    }
}

}  // namespace ivme
