// Rows of a chunk that fall into few groups, as those of a report do, or that come in runs with the same key, as the
// lines of an order do.
#pragma once

#include <cstdint>
#include <cstring>

#include "hash.hpp"

namespace ivme {

// Which group each of up to `CHUNK` rows is in, and a row of each group.
template <unsigned CHUNK>
class RowGroups {
    static constexpr unsigned TRIAL = 64, MOST = CHUNK / 3;

public:
    // The rows that `kept` names, grouped by these columns, or in runs: then several groups may have the same key.
    // False if there are more groups than a third of the rows, or more runs than two thirds of them: if most rows have
    // keys of their own, few are looked at.
    bool find(const int64_t* const* columns, unsigned arity, const uint32_t* kept, unsigned rows, const Seed& seed) {
        auto is_same_row = [&](uint32_t a, uint32_t b) {
            bool same = true;
            for (unsigned c = 0; c < arity; ++c) same &= columns[c][a] == columns[c][b];
            return same;
        };
        std::memset(slots_, 0, sizeof(slots_));
        groups = 0;
        unsigned runs = 0;
        for (unsigned i = 0; i < rows; ++i) {
            if (i % TRIAL == 0) {
                bool come_once = runs >= TRIAL / 8 && groups * 2 > runs;
                if (come_once && runs * 3 <= i * 2) return find_runs(columns, arity, kept, rows);
                if (groups * 3 > i * 2) return false;
            }
            uint32_t row = kept[i];
            if (i && is_same_row(row, kept[i - 1])) {
                places[i] = places[i - 1];
                continue;
            }
            ++runs;
            uint32_t slot = seed.tag_of(arity, [&](unsigned c) { return columns[c][row]; }) % CHUNK;
            while (slots_[slot] && !is_same_row(firsts[slots_[slot] - 1], row)) slot = (slot + 1) % CHUNK;
            if (!slots_[slot]) {
                if (groups == MOST) return false;
                firsts[groups] = row;
                slots_[slot] = static_cast<uint16_t>(++groups);
            }
            places[i] = static_cast<uint16_t>(slots_[slot] - 1);
        }
        return groups * 3 <= rows;
    }

    unsigned groups = 0;
    uint32_t firsts[CHUNK];  // a row of each group
    uint16_t places[CHUNK];  // the group of each row

private:
    // Where a run ends nobody can guess, so there are no branches.
    bool find_runs(const int64_t* const* columns, unsigned arity, const uint32_t* kept, unsigned rows) {
        uint32_t before = kept[0];
        groups = 1;
        for (unsigned i = 0; i < rows; ++i) {
            uint32_t row = kept[i];
            bool differs = false;
            for (unsigned c = 0; c < arity; ++c) differs |= columns[c][row] != columns[c][before];
            groups += differs;
            firsts[groups - 1] = before = row;
            places[i] = static_cast<uint16_t>(groups - 1);
        }
        return groups * 3 <= rows * 2;
    }

    uint16_t slots_[CHUNK];  // by hash, one more than the number of a group
};

}  // namespace ivme
