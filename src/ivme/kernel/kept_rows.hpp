// The rows of a followed view as they were after the last batch: by the codes of their groups, the codes they show.
//
// A group with aggregates has one row before a batch and another after it, and the one before is no function of what
// changed (a minimum that went, a rounded sum). So it is kept, in a few words a group. Comparing changes nothing:
// `put` follows when the batch is committed, and may then be done twice.
#pragma once

#include <cstdint>
#include <vector>

#include "delta.hpp"
#include "groups.hpp"
#include "portable.hpp"

namespace ivme {

// The groups that changed, by column: their keys, and for those that are there now the row of `values` they have.
struct NewRows {
    std::vector<const int64_t*> keys;
    std::vector<const int64_t*> values;
    Array<uint32_t> rows;  // for each group, NIL if it is gone
};

class KeptRows {
public:
    KeptRows(unsigned keys, unsigned values, uint64_t seed) : keys_(keys), words_(keys + values), seed_(seed) {}

    size_t size() const { return table_.size(); }
    size_t bytes() const { return table_.bytes() + records_.bytes() + free_.bytes(); }

    // Appends the rows that go (weight -1) and come (+1): keys, then values; none where nothing is different.
    void compare(const NewRows& now, Delta& changes) const {
        std::vector<int64_t> row(words_);
        each(now, [&](size_t group, const int64_t* key, uint32_t id) {
            uint32_t at = now.rows[group];
            if (at != NIL) {
                std::copy_n(key, keys_, row.data());
                for (unsigned v = keys_; v < words_; ++v) row[v] = now.values[v - keys_][at];
            }
            if (id != NIL && at != NIL && same(record(id) + keys_, row.data() + keys_, words_ - keys_)) return;
            if (id != NIL) append(changes, record(id), -1);
            if (at != NIL) append(changes, row.data(), 1);
        });
    }

    // Room for so many groups more, so that `put` has nothing to ask for once a batch is committed.
    void reserve(size_t groups) {
        table_.reserve(size() + groups);
        records_.reserve(records_.size() + groups * words_);
        free_.reserve(high_ + groups);
    }

    void put(const NewRows& now) {
        each(now, [&](size_t group, const int64_t* key, uint32_t id) {
            uint32_t at = now.rows[group];
            if (at == NIL) {
                if (id != NIL) erase(key, id);
                return;
            }
            if (id == NIL) id = insert(key);
            for (unsigned v = keys_; v < words_; ++v) record(id)[v] = now.values[v - keys_][at];
        });
    }

    template <class Visit>
    void each_row(Visit visit) const {
        Array<uint8_t> dead;
        dead.zeroed(high() + 1);
        for (size_t i = 0; i < free_.size(); ++i) dead[free_[i]] = 1;
        for (uint32_t id = 0; id < high(); ++id) {
            if (!dead[id]) visit(record(id));
        }
    }

    unsigned width() const { return words_; }

private:
    // Finds the groups in blocks, so that the cache misses of a block overlap.
    template <class Visit>
    void each(const NewRows& now, Visit visit) const {
        std::vector<int64_t> keys(static_cast<size_t>(BLOCK) * keys_ + 1);
        uint32_t tags[BLOCK];
        for (size_t start = 0; start < now.rows.size(); start += BLOCK) {
            auto n = static_cast<unsigned>(std::min<size_t>(BLOCK, now.rows.size() - start));
            for (unsigned i = 0; i < n; ++i) {
                int64_t* key = keys.data() + static_cast<size_t>(i) * keys_;
                for (unsigned k = 0; k < keys_; ++k) key[k] = now.keys[k][start + i];
                tags[i] = seed_.tag(key, keys_);
                table_.prefetch(tags[i]);
            }
            for (unsigned i = 0; i < n; ++i) {
                uint32_t id = table_.guess(tags[i]);
                if (id != NIL) prefetch_line(record(id));
            }
            for (unsigned i = 0; i < n; ++i) {
                const int64_t* key = keys.data() + static_cast<size_t>(i) * keys_;
                visit(start + i, key, find(key, tags[i]));
            }
        }
    }

    uint32_t find(const int64_t* key, uint32_t tag) const {
        return table_.find(tag, [&](uint32_t id) { return same(record(id), key, keys_); });
    }

    uint32_t insert(const int64_t* key) {
        table_.reserve_one();
        uint32_t id;
        if (free_.size()) {
            id = free_[free_.size() - 1];
            free_.resize(free_.size() - 1);
        } else {
            id = high_;
            free_.reserve(static_cast<size_t>(id) + 1);  // so that erasing cannot fail
            records_.resize(records_.size() + words_);
            ++high_;
        }
        std::copy_n(key, keys_, record(id));
        table_.insert(seed_.tag(key, keys_), id);
        return id;
    }

    void erase(const int64_t* key, uint32_t id) {
        table_.erase(seed_.tag(key, keys_), id);
        free_.push(id);
    }

    void append(Delta& changes, const int64_t* row, int64_t weight) const {
        size_t at = changes.extend(1);
        for (unsigned w = 0; w < words_; ++w) changes.columns[w][at] = row[w];
        changes.payload(at)[0] = weight;
    }

    uint32_t high() const { return high_; }
    int64_t* record(uint32_t id) { return records_.data() + static_cast<size_t>(id) * words_; }
    const int64_t* record(uint32_t id) const { return records_.data() + static_cast<size_t>(id) * words_; }

    unsigned keys_, words_;
    Seed seed_;
    IdTable table_;
    Array<int64_t> records_;
    Array<uint32_t> free_;
    uint32_t high_ = 0;
};

}  // namespace ivme
