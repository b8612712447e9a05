// Sums of payloads by row, for a reader that wants all rows and finds each of them many times.
//
// A loop that runs over the same values behind several contexts finds rows in the order in which it found them before.
// So a row is compared with the one that came behind the last one, and with the last one itself, before it is hashed.
// Rows of one column with small codes have a table of their places, and are not hashed at all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>

#include "delta.hpp"
#include "errors.hpp"
#include "hash.hpp"
#include "payload_columns.hpp"

namespace ivme {

// Payloads of rows one behind the other.
struct WholePayloads {
    const int64_t* words;

    WholePayloads from(size_t row, const Layout& layout) const { return {words + row * layout.words}; }
    template <class Place, class Carry>
    void add(const Layout& layout, int64_t* totals, Place place, size_t n, Carry carry) const {
        add_each(layout, totals, place, words, n, carry);
    }
};

// Payloads that are products of counts and of payloads elsewhere.
struct ProductPayloads {
    const int64_t* factors;
    const int64_t* const* rights;

    ProductPayloads from(size_t row, const Layout&) const { return {factors + row, rights + row}; }
    template <class Place, class Carry>
    void add(const Layout& layout, int64_t* totals, Place place, size_t n, Carry carry) const {
        if (!add_products(layout, totals, place, factors, rights, n, carry)) throw Overflow();
    }
};

class RowSums {
public:
    RowSums(unsigned arity, const Layout& layout, const Seed& seed) : seed_(seed) { rows_.shape(arity, layout); }

    // Adds rows by column.
    template <class Payloads>
    void add(const int64_t* const* from, Payloads payloads, size_t n) {
        rows_.reserve(rows_.n + n);
        size_t most = BLOCK;
        for (size_t row = 0, done = 0; row < n; row += done) {
            size_t left = std::min<size_t>(BLOCK, n - row);
            done = add_following(from, payloads, row, left);
            if (!done && rows_.columns.size() == 1) done = add_small(from, payloads, row, left);
            if (!done) done = add_repeated(from, payloads, row, left);
            if (done) {
                most = BLOCK / 8;  // others are few
            } else {
                done = look_up(from, payloads, row, static_cast<unsigned>(std::min(most, left)));
                most = BLOCK;
            }
        }
    }

    // The sums, some with a count of zero. Only the sum of all counts of a row must fit.
    Delta& end() {
        for (const auto& [row, carry] : carries_) {
            if (carry) throw Overflow();
        }
        return rows_;
    }

private:
    static constexpr uint64_t SMALL = 4096;

    // Adds as many rows as have small codes.
    template <class Payloads>
    size_t add_small(const int64_t* const* from, Payloads payloads, size_t row, size_t most) {
        const int64_t* codes = from[0] + row;
        if (!is_small(codes[0])) make_places(static_cast<uint64_t>(codes[0]));
        uint32_t places[BLOCK];
        for (size_t done = 0;;) {
            if constexpr (std::is_same_v<Payloads, WholePayloads>) {
                const int64_t* counts = payloads.words + row + done;
                if (rows_.layout.plain()) done += add_counts(codes + done, counts, most - done);
            }
            size_t n = find_places(from, row + done, std::min<size_t>(BLOCK, most - done), places);
            add_at([&](size_t i) { return size_t{places[i]}; }, payloads.from(row + done, rows_.layout), n);
            if (n) last_ = places[n - 1];
            done += n;
            if (done == most || !is_small(codes[done])) return done;
        }
    }

    // Where as many rows are as have small codes; those that are new come with a payload of zero.
    size_t find_places(const int64_t* const* from, size_t row, size_t most, uint32_t* places) {
        const int64_t* codes = from[0] + row;
        uint32_t* known = places_.data();
        uint64_t end = places_.size();
        size_t n = 0;
        for (; n < most; ++n) {
            auto code = static_cast<uint64_t>(codes[n]);
            if (code >= end) return n;
            if (!known[code]) known[code] = static_cast<uint32_t>(append(from, row + n) + 1);
            places[n] = known[code] - 1;
        }
        return n;
    }

    // Adds the counts of as many rows as are there, while they fit.
    size_t add_counts(const int64_t* codes, const int64_t* counts, size_t most) {
        const uint32_t* places = places_.data();
        int64_t* totals = rows_.payloads.data();
        uint64_t end = places_.size();
        for (size_t i = 0; i < most; ++i) {
            if (static_cast<uint64_t>(codes[i]) >= end) return i;
            uint32_t place = places[codes[i]];
            int64_t total;
            if (!place || add_overflows(totals[place - 1], counts[i], &total)) return i;
            totals[place - 1] = total;
        }
        return most;
    }

    bool is_small(int64_t code) const { return static_cast<uint64_t>(code) < places_.size(); }

    // Has places for codes up to one, if that is small: the table is no larger than eight times the rows.
    void make_places(uint64_t code) {
        if (code >= std::max<uint64_t>(SMALL, 4 * rows_.n)) return;
        places_.zeroed(std::bit_ceil(std::max(code + 1, SMALL / 8)));
        for (size_t row = 0; row < rows_.n; ++row) {
            int64_t known = rows_.columns[0][row];
            if (is_small(known)) places_[static_cast<size_t>(known)] = static_cast<uint32_t>(row + 1);
        }
    }

    // Adds as many rows as are those behind the last one, in turn.
    template <class Payloads>
    size_t add_following(const int64_t* const* from, Payloads payloads, size_t row, size_t most) {
        size_t first = last_ + 1, run = first < rows_.n ? std::min(most, rows_.n - first) : 0;
        for (size_t c = 0; c < rows_.columns.size() && run; ++c) {
            const int64_t *known = rows_.columns[c].data() + first, *given = from[c] + row;
            size_t same = 0;
            while (same < run && known[same] == given[same]) ++same;
            run = same;
        }
        add_at([first](size_t i) { return first + i; }, payloads.from(row, rows_.layout), run);
        last_ += run;
        return run;
    }

    // Adds as many rows as are the last one.
    template <class Payloads>
    size_t add_repeated(const int64_t* const* from, Payloads payloads, size_t row, size_t most) {
        size_t run = last_ < rows_.n ? most : 0;
        for (size_t c = 0; c < rows_.columns.size() && run; ++c) {
            int64_t known = rows_.columns[c][last_];
            size_t same = 0;
            while (same < run && from[c][row + same] == known) ++same;
            run = same;
        }
        add_at([this](size_t) { return last_; }, payloads.from(row, rows_.layout), run);
        return run;
    }

    // Adds rows by their hashes, up to one with a small code; how many.
    template <class Payloads>
    size_t look_up(const int64_t* const* from, Payloads payloads, size_t start, unsigned most) {
        uint32_t tags[BLOCK], places[BLOCK];
        unsigned arity = count_of(rows_.columns), n = most;
        for (unsigned i = 0; arity == 1 && i < n; ++i) n = is_small(from[0][start + i]) ? i : n;
        if (rows_.n + n > room_) table_.reserve(room_ = 2 * (rows_.n + n));
        for (unsigned i = 0; i < n; ++i) {
            tags[i] = seed_.tag_of(arity, [&](unsigned c) { return from[c][start + i]; });
            table_.prefetch(tags[i]);
        }
        for (unsigned i = 0; i < n; ++i) {
            size_t row = start + i;
            uint32_t place = table_.find(tags[i], [&](uint32_t known) { return is_at(known, from, row); });
            if (place == NIL) {
                place = static_cast<uint32_t>(append(from, row));
                table_.insert(tags[i], place);
            }
            places[i] = place;
        }
        add_at([&](size_t i) { return size_t{places[i]}; }, payloads.from(start, rows_.layout), n);
        if (n) last_ = places[n - 1];
        return n;
    }

    bool is_at(size_t place, const int64_t* const* from, size_t row) const {
        for (size_t c = 0; c < rows_.columns.size(); ++c) {
            if (rows_.columns[c][place] != from[c][row]) return false;
        }
        return true;
    }

    // A new row, with a payload of zero.
    size_t append(const int64_t* const* from, size_t row) {
        size_t place = rows_.extend(1);
        for (size_t c = 0; c < rows_.columns.size(); ++c) rows_.columns[c][place] = from[c][row];
        std::fill_n(rows_.payload(place), rows_.layout.words, 0);
        return place;
    }

    // Adds payloads to those of the rows whose places `place` gives.
    template <class Place, class Payloads>
    void add_at(Place place, Payloads payloads, size_t n) {
        payloads.add(rows_.layout, rows_.payloads.data(), place, n,
                     [&](size_t i, int by) { carries_[place(i)] += by; });
    }

    Seed seed_;
    Delta rows_;
    IdTable table_;
    std::unordered_map<size_t, int64_t> carries_;  // by row, how many times 2^64 its count is off
    size_t room_ = 0;                              // of the table, in rows
    Array<uint32_t> places_;  // by code, the place of a row of one column, plus one; 0 if it is not there
    size_t last_ = 0;
};

}  // namespace ivme
