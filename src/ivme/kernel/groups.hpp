// Groups by key: a hash table from tuples of codes to one word of data each, shared by both kinds of index.
#pragma once

#include <cstdint>

#include "array.hpp"
#include "hash.hpp"
#include "portable.hpp"

namespace ivme {

inline bool same(const int64_t* a, const int64_t* b, unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

class GroupTable {
public:
    GroupTable(unsigned arity, const Seed& seed) : arity_(arity), seed_(seed) {}

    unsigned arity() const { return arity_; }
    const Seed& seed() const { return seed_; }
    uint64_t size() const { return table_.size(); }
    uint32_t high() const { return static_cast<uint32_t>(records_.size() / (arity_ + 1)); }
    size_t bytes() const { return table_.bytes() + records_.bytes(); }
    uint32_t tag(const int64_t* key) const { return seed_.tag(key, arity_); }

    void prefetch(uint32_t tag) const { table_.prefetch(tag); }
    void prefetch_record(uint32_t tag) const {
        uint32_t id = table_.guess(tag);
        if (id != NIL) prefetch_line(record(id));
    }
    void prefetch_group(uint32_t id) const { prefetch_line(record(id)); }
    uint32_t guess(uint32_t tag) const { return table_.guess(tag); }

    uint32_t find(const int64_t* key, uint32_t tag) const {
        return table_.find(tag, [&](uint32_t id) { return same(record(id), key, arity_); });
    }

    const int64_t* key(uint32_t id) const { return record(id); }
    int64_t& word(uint32_t id) { return records_[static_cast<size_t>(id) * (arity_ + 1) + arity_]; }
    int64_t word(uint32_t id) const { return records_[static_cast<size_t>(id) * (arity_ + 1) + arity_]; }

    // A new group; the caller knows that the key has none.
    uint32_t insert(const int64_t* key, uint32_t tag, int64_t word) {
        table_.reserve_one();
        uint32_t id = free_;
        if (id == NIL) {
            id = high();
            records_.resize(records_.size() + arity_ + 1);
        } else {
            free_ = arity_ ? static_cast<uint32_t>(record(id)[0]) : NIL;
        }
        int64_t* fresh = record(id);
        for (unsigned i = 0; i < arity_; ++i) fresh[i] = key[i];
        fresh[arity_] = word;
        table_.insert(tag, id);
        return id;
    }

    void erase(uint32_t id) {
        int64_t* dead = record(id);
        table_.erase(seed_.tag(dead, arity_), id);
        if (arity_) dead[0] = free_;
        free_ = id;
    }

    void clear() {
        table_.clear();
        records_.trim(4096);
        free_ = NIL;
    }

    template <class Visit>
    void each(Visit visit) const {
        // Freed records cannot be told from live ones by their words; the free list can.
        Array<uint8_t> dead;
        dead.zeroed(high() + 1);
        for (uint32_t id = free_; id != NIL; id = arity_ ? static_cast<uint32_t>(record(id)[0]) : NIL) dead[id] = 1;
        for (uint32_t id = 0; id < high(); ++id) {
            if (!dead[id]) visit(id);
        }
    }

private:
    int64_t* record(uint32_t id) { return records_.data() + static_cast<size_t>(id) * (arity_ + 1); }
    const int64_t* record(uint32_t id) const { return records_.data() + static_cast<size_t>(id) * (arity_ + 1); }

    unsigned arity_;
    Seed seed_;
    IdTable table_;
    Array<int64_t> records_;
    uint32_t free_ = NIL;
};

}  // namespace ivme
