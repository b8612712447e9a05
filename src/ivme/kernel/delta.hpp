// Deltas: small relations on their way through a program, codes by column, payloads by row.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "array.hpp"
#include "hash.hpp"
#include "payload.hpp"
#include "portable.hpp"

namespace ivme {

// Rows are handled in blocks: hash all, fetch all slots, fetch all records, then work on warm lines.
inline constexpr unsigned BLOCK = 64;

struct Delta {
    Layout layout;
    std::vector<Array<int64_t>> columns;
    Array<int64_t> payloads;
    // The hashes of the rows, if their maker had to know: a map that takes the delta hashes by the same seed.
    Array<uint32_t> tags;
    bool tagged = false;
    size_t n = 0;

    void shape(unsigned arity, Layout kind) {
        columns.resize(arity);
        layout = std::move(kind);
    }
    void clear() {
        n = 0;
        tagged = false;
    }

    void reserve(size_t rows) {
        for (auto& column : columns) column.reserve(rows);
        payloads.reserve(rows * layout.words);
    }

    const int64_t* payload(size_t row) const { return payloads.data() + row * layout.words; }
    int64_t* payload(size_t row) { return payloads.data() + row * layout.words; }

    // Makes room for more rows and counts them in; their words are for the caller to fill.
    size_t extend(size_t rows) {
        size_t start = n;
        if (n + rows >= NIL) throw Capacity("a delta cannot have more than 4 billion rows");
        for (auto& column : columns) column.reserve(n + rows);
        payloads.reserve((n + rows) * layout.words);
        n += rows;
        return start;
    }

    // Takes all rows of a delta of the same shape.
    void append(const Delta& other) {
        size_t start = extend(other.n);
        for (unsigned c = 0; c < columns.size(); ++c) {
            std::copy_n(other.columns[c].data(), other.n, columns[c].data() + start);
        }
        std::copy_n(other.payloads.data(), other.n * layout.words, payload(start));
    }

    size_t bytes() const {
        size_t total = payloads.bytes() + tags.bytes();
        for (const auto& column : columns) total += column.bytes();
        return total;
    }

    void trim(size_t keep = size_t{1} << 17) noexcept {
        for (auto& column : columns) column.trim(keep);
        payloads.trim(keep);
        tags.trim(keep);
        clear();
    }
};

// Sums rows with equal codes into a delta; rows whose payload sums to zero are left out at the end. Only the sum of all
// counts of a row must fit: what partial sums exceed is counted beside them.
class Consolidator {
public:
    explicit Consolidator(const Seed& seed) : seed_(seed) {}

    const Seed& seed() const { return seed_; }

    void begin(Delta* target, size_t expected) {
        target_ = target;
        target_->clear();
        target_->tags.clear();
        places_.clear();
        size_t wanted = 64;
        while (wanted < expected * 2) wanted *= 2;
        if (target->columns.empty()) wanted = 64;
        if (slots_.size() < wanted || slots_.size() > std::max<size_t>(wanted * 8, 1 << 16)) {
            slots_.zeroed(wanted);
        } else if (dirty_) {
            std::memset(slots_.data(), 0, slots_.size() * sizeof(uint64_t));
        }
        dirty_ = true;
        carries_.clear();
        shift_ = 32 - static_cast<unsigned>(std::countr_zero(slots_.size()));
        zeroes_ = false;
    }

    // Adds the rows of `origin` from `start` on, with their `picked` columns.
    void add(const Delta& origin, const std::vector<unsigned>& picked, size_t start, size_t count) {
        const int64_t* from[64];
        unsigned arity = count_of(picked);
        for (unsigned c = 0; c < arity; ++c) from[c] = origin.columns[picked[c]].data() + start;
        add_rows(from, arity, origin.payload(start), origin.layout.words, count);
    }

    void add_rows(const int64_t* const* from, unsigned arity, const int64_t* payloads, unsigned words, size_t count) {
        if (!arity) return add_all(payloads, words, count);
        target_->reserve(target_->n + count);
        target_->tags.reserve(target_->n + count);
        places_.reserve(places_.size() + count);
        size_t last = 0;  // where the row before went
        for (size_t block = 0; block < count; block += BLOCK) {
            unsigned n = static_cast<unsigned>(std::min<size_t>(BLOCK, count - block));
            while ((target_->n + n) * 2 > slots_.size()) grow();
            uint32_t tags[BLOCK];
            bool repeats[BLOCK];
            for (unsigned i = 0; i < n; ++i) {
                repeats[i] = is_repeated(from, arity, block + i);
                if (repeats[i]) continue;
                tags[i] = seed_.tag_of(arity, [&](unsigned c) { return from[c][block + i]; });
                prefetch_line(&slots_[tags[i] >> shift_]);
            }
            for (unsigned i = 0; i < n; ++i) {
                const int64_t* payload = payloads + (block + i) * words;
                if (!repeats[i]) {
                    last = add_row(from, arity, block + i, tags[i], payload);
                    continue;
                }
                unsigned end = i + 1;
                while (end < n && repeats[end]) ++end;
                add_run(last, payload, end - i);
                i = end - 1;
            }
        }
    }

    // The table is left clean at the cost of what was put there, not of its size.
    void end() {
        for (const auto& [row, carry] : carries_) {
            if (carry) throw Overflow();
        }
        if (places_.size() * 8 > slots_.size()) {
            std::memset(slots_.data(), 0, slots_.size() * sizeof(uint64_t));
        } else {
            for (size_t i = 0; i < places_.size(); ++i) slots_[places_[i]] = 0;
        }
        dirty_ = false;
        target_->tagged = target_->tags.size() == target_->n;
        if (!zeroes_) return;
        target_->tagged = false;
        size_t kept = 0;
        for (size_t i = 0; i < target_->n; ++i) {
            if (target_->layout.is_zero(target_->payload(i))) continue;
            if (kept != i) {
                for (auto& column : target_->columns) column[kept] = column[i];
                std::copy_n(target_->payload(i), target_->layout.words, target_->payload(kept));
            }
            ++kept;
        }
        target_->n = kept;
    }

    size_t bytes() const { return slots_.bytes() + places_.bytes(); }
    void trim(size_t keep = size_t{1} << 18) noexcept {
        if (slots_.size() > keep) slots_.release();
        places_.trim(keep / 4);
    }

private:
    // Whether a row is as the one before: what a join adds to one row often comes in a run.
    static bool is_repeated(const int64_t* const* from, unsigned arity, size_t row) {
        if (!row) return false;
        for (unsigned c = 0; c < arity; ++c) {
            if (from[c][row] != from[c][row - 1]) return false;
        }
        return true;
    }

    // Where the row is.
    size_t add_row(const int64_t* const* from, unsigned arity, size_t row, uint32_t tag, const int64_t* payload) {
        Delta& target = *target_;
        size_t mask = slots_.size() - 1;
        for (size_t i = tag >> shift_;; i = (i + 1) & mask) {
            uint64_t slot = slots_[i];
            if (!slot) {
                slots_[i] = static_cast<uint64_t>(tag) << 32 | (target.n + 1);
                for (unsigned c = 0; c < arity; ++c) target.columns[c][target.n] = from[c][row];
                std::copy_n(payload, target.layout.words, target.payload(target.n));
                ++target.n;
                target.tags.push(tag);
                places_.push(static_cast<uint32_t>(i));
                zeroes_ |= payload[0] == 0;  // the sum of a run may be
                return target.n - 1;
            }
            if (static_cast<uint32_t>(slot >> 32) != tag) continue;
            size_t known = static_cast<uint32_t>(slot) - 1;
            bool equal = true;
            for (unsigned c = 0; c < arity; ++c) equal &= target.columns[c][known] == from[c][row];
            if (!equal) continue;
            add_to(known, payload);
            return known;
        }
    }

    void add_to(size_t known, const int64_t* payload) {
        int64_t* total = target_->payload(known);
        if (int carry = target_->layout.add(total, total, payload)) carries_[known] += carry;
        zeroes_ |= total[0] == 0;
    }

    // Several payloads at once: sums of whole numbers one after the other.
    void add_run(size_t known, const int64_t* payloads, unsigned count) {
        const Layout& layout = target_->layout;
        int64_t* total = target_->payload(known);
        if (layout.has_words_only) {
            for (unsigned i = 0; i < count; ++i) {
                bool is_negative = total[0] < 0;
                if (add_overflows(total[0], payloads[size_t{i} * layout.words], &total[0]))
                    carries_[known] += is_negative ? -1 : 1;
            }
            layout.add_words_of(total, payloads, count);
            zeroes_ |= total[0] == 0;
            return;
        }
        for (unsigned i = 0; i < count; ++i) add_to(known, payloads + size_t{i} * layout.words);
    }

    void add_all(const int64_t* payloads, unsigned words, size_t count) {
        if (!count) return;
        size_t first = 0;
        if (!target_->n) {
            target_->extend(1);
            std::copy_n(payloads, words, target_->payload(0));
            first = 1;
        }
        int64_t* total = target_->payload(0);
        for (size_t i = first; i < count; ++i) {
            if (int carry = target_->layout.add(total, total, payloads + i * words)) carries_[0] += carry;
        }
        zeroes_ = true;
    }

    void grow() {
        if (target_->n >= NIL / 2) throw Capacity("a delta cannot have more than 2 billion rows");
        Array<uint64_t> fresh;
        fresh.zeroed(slots_.size() * 2);
        slots_.swap(fresh);
        --shift_;
        size_t mask = slots_.size() - 1;
        for (size_t row = 0; row < target_->n; ++row) {
            size_t i = target_->tags[row] >> shift_;
            while (slots_[i]) i = (i + 1) & mask;
            slots_[i] = static_cast<uint64_t>(target_->tags[row]) << 32 | (row + 1);
            places_[row] = static_cast<uint32_t>(i);
        }
    }

    Seed seed_;
    Delta* target_ = nullptr;
    Array<uint64_t> slots_;
    Array<uint32_t> places_;                       // the slot of each row
    std::unordered_map<size_t, int64_t> carries_;  // by row, how many times 2^64 its count is off
    bool dirty_ = false;
    unsigned shift_ = 28;
    bool zeroes_ = false;
};

}  // namespace ivme
