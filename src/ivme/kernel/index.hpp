// An index: for each key, the entries of a map that have it, in one contiguous array of entry ids.
//
// A join walks such an array in order and can fetch the records ahead, where a linked list would wait for each.
// Deleting moves the last id into the gap; every entry knows its group and its place there. A group of one keeps
// its id inline. Arrays come from a pool in powers of two; what a batch frees, it may reuse only when it rolls
// back, so that undoing never needs memory.
//
// A map that is hashed by its key finds the entries of a key by itself (decision 0601). Its index by that key has only
// the keys of which there are several entries, as there are while a batch replaces a row.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "array.hpp"
#include "groups.hpp"
#include "portable.hpp"

namespace ivme {

class Pool {
public:
    size_t bytes() const { return words_.bytes(); }
    uint64_t used() const { return used_; }
    uint64_t size() const { return words_.size(); }
    uint32_t* at(uint32_t offset) { return words_.data() + offset; }
    const uint32_t* at(uint32_t offset) const { return words_.data() + offset; }

    // 2^power words, of which the first is for the owner.
    uint32_t take(unsigned power) {
        uint32_t offset = pop(free_[power]);
        if (offset == NIL && undoing) offset = pop(pending_[power]);
        if (offset == NIL) {
            uint64_t start = words_.size();
            if (start + (uint64_t{1} << power) >= NIL) throw Capacity("the groups of an index need more than 16 GB");
            words_.resize(start + (uint64_t{1} << power));
            offset = static_cast<uint32_t>(start);
        }
        used_ += uint64_t{1} << power;
        return offset;
    }

    void give(uint32_t offset, unsigned power) {
        List& list = undoing ? free_[power] : pending_[power];
        words_[offset + 1] = list.head;
        if (list.head == NIL) list.tail = offset;
        list.head = offset;
        has_pending_ |= !undoing;
        used_ -= uint64_t{1} << power;
    }

    void commit() {
        if (!has_pending_) return;
        for (unsigned power = 0; power < 33; ++power) {
            List& list = pending_[power];
            if (list.head == NIL) continue;
            words_[list.tail + 1] = free_[power].head;
            if (free_[power].head == NIL) free_[power].tail = list.tail;
            free_[power].head = list.head;
            list = List{};
        }
        has_pending_ = false;
    }

    void clear() {
        words_.trim(4096);
        for (unsigned power = 0; power < 33; ++power) free_[power] = pending_[power] = List{};
        has_pending_ = false;
        used_ = 0;
    }

    bool undoing = false;

private:
    struct List {
        uint32_t head = NIL;
        uint32_t tail = NIL;
    };

    uint32_t pop(List& list) {
        uint32_t offset = list.head;
        if (offset != NIL) list.head = words_[offset + 1];
        return offset;
    }

    Array<uint32_t> words_;
    List free_[33], pending_[33];
    uint64_t used_ = 0;
    bool has_pending_ = false;
};

// The ids of one group. A copy keeps its own inline id, so it is passed by value.
struct Members {
    uint32_t n = 0;
    uint32_t one = NIL;
    const uint32_t* many = nullptr;
    const uint32_t* begin() const { return n == 1 ? &one : many; }
};

class Map;

class GroupIndex {
public:
    // With `hashed`, the map that is hashed by this key.
    GroupIndex(std::vector<unsigned> key, const Seed& seed, const Map* hashed = nullptr)
        : key_(std::move(key)), groups_(count_of(key_), seed), hashed_(hashed) {}

    // The same over no entries.
    GroupIndex without_entries() const { return {key_, groups_.seed()}; }

    const std::vector<unsigned>& key() const { return key_; }
    const GroupTable& groups() const { return groups_; }
    size_t bytes() const { return groups_.bytes() + pool_.bytes() + links_.bytes(); }

    // What `probe_keys` asks of a table.
    unsigned arity() const { return groups_.arity(); }
    uint32_t tag(const int64_t* key) const { return groups_.tag(key); }
    inline void prefetch(uint32_t tag) const;
    inline void prefetch_record(uint32_t tag) const;

    // The group of a key, or NIL: its number, or `ALONE` with its only entry.
    inline uint64_t find(const int64_t* key, uint32_t tag) const;

    uint32_t size(uint64_t group) const {
        if (group == NIL) return 0;
        return group & ALONE ? 1 : head(static_cast<uint32_t>(group)).size;
    }
    // No group has, or ever had since it was cleared, more members; not of a map that is hashed by the key.
    uint32_t largest() const { return largest_; }

    Members members(uint64_t group) const {
        if (group == NIL) return {};
        if (group & ALONE) return {1, static_cast<uint32_t>(group), nullptr};
        Head h = head(static_cast<uint32_t>(group));
        return {h.size, h.ref, h.size > 1 ? pool_.at(h.ref) + 1 : nullptr};
    }

    uint32_t group_of(uint32_t entry) const { return links_[entry].group; }
    uint32_t place_of(uint32_t entry) const { return links_[entry].place; }

    uint32_t row_tag(const int64_t* row) const {
        int64_t key[MAX_KEY];
        pick(row, key);
        return groups_.tag(key);
    }

    // What the insertion of a row with this tag, or the deletion of this entry, will touch next, a step a call.
    void warm_slot(uint32_t tag) const { groups_.prefetch(tag); }
    void warm_group(uint32_t tag) const { groups_.prefetch_record(tag); }
    void warm_tail(uint32_t tag) const {
        uint32_t group = groups_.guess(tag);
        if (group != NIL) warm_array(head(group), 0);
    }
    void warm_link(uint32_t entry) const { prefetch_line(&links_[entry]); }
    void warm_group_of(uint32_t entry) const { groups_.prefetch_group(links_[entry].group); }
    void warm_place(uint32_t entry) const { warm_array(head(links_[entry].group), links_[entry].place); }

    // Puts an entry into its group; throws before it has changed anything.
    void insert(uint32_t entry, const int64_t* row) {
        if (entry >= links_.size()) links_.resize(entry + 1);
        int64_t key[MAX_KEY];
        pick(row, key);
        uint32_t hashed = groups_.tag(key);
        uint32_t group = groups_.find(key, hashed);
        if (group == NIL) {
            links_[entry] = {groups_.insert(key, hashed, pack({1, entry})), 0};
            largest_ = std::max(largest_, uint32_t{1});
            return;
        }
        links_[entry] = {group, append(group, entry)};
    }

    // Puts an entry of a map that is hashed by this key beside another of the same key; throws before it has changed
    // anything.
    void insert_beside(uint32_t other, uint32_t entry, const int64_t* row) {
        int64_t key[MAX_KEY];
        pick(row, key);
        uint32_t hashed = groups_.tag(key), group = groups_.find(key, hashed);
        if (group != NIL) {
            append(group, entry);
            return;
        }
        uint32_t array = pool_.take(2);
        pool_.at(array)[0] = 2;
        pool_.at(array)[1] = other;
        pool_.at(array)[2] = entry;
        try {
            groups_.insert(key, hashed, pack({2, array}));
        } catch (...) {
            pool_.give(array, 2);
            throw;
        }
    }

    // Forgets an entry of a map that is hashed by this key, and the group if one other is left.
    void erase_beside(uint32_t entry, const int64_t* row) noexcept {
        if (!groups_.size()) return;
        int64_t key[MAX_KEY];
        pick(row, key);
        uint32_t group = groups_.find(key, groups_.tag(key));
        if (group == NIL) return;
        Head h = head(group);
        const uint32_t* ids = pool_.at(h.ref) + 1;
        uint32_t place = h.size;  // the last ones are those that a batch takes back
        while (place && ids[place - 1] != entry) --place;
        if (!place) return;
        h = remove(h, place - 1);
        if (h.size == 1) {
            groups_.erase(group);
        } else {
            groups_.word(group) = pack(h);
        }
    }

    void erase(uint32_t entry) noexcept {
        Link link = links_[entry];
        Head h = head(link.group);
        if (h.size == 1) {
            groups_.erase(link.group);
            return;
        }
        uint32_t last = pool_.at(h.ref)[h.size];
        links_[last].place = link.place;
        groups_.word(link.group) = pack(remove(h, link.place));
    }

    void commit() { pool_.commit(); }
    void undoing(bool value) { pool_.undoing = value; }

    // Both are over the same key, of maps that are both hashed by it or both not.
    void swap_groups(GroupIndex& other) noexcept {
        std::swap(groups_, other.groups_);
        std::swap(pool_, other.pool_);
        std::swap(links_, other.links_);
        std::swap(largest_, other.largest_);
    }

    void clear() {
        groups_.clear();
        pool_.clear();
        links_.trim(4096);
        largest_ = 0;
    }

    static constexpr unsigned MAX_KEY = 64;
    static constexpr uint64_t ALONE = uint64_t{1} << 32;

private:
    struct Link {
        uint32_t group;
        uint32_t place;
    };
    struct Head {
        uint32_t size;
        uint32_t ref;
    };

    static int64_t pack(Head head) { return std::bit_cast<int64_t>(head); }
    Head head(uint32_t group) const { return std::bit_cast<Head>(groups_.word(group)); }

    // Its place in the group.
    uint32_t append(uint32_t group, uint32_t entry) {
        Head h = head(group);
        if (h.size == 1) {
            uint32_t array = pool_.take(2);
            pool_.at(array)[0] = 2;
            pool_.at(array)[1] = h.ref;
            h.ref = array;
        } else if (std::has_single_bit(h.size + 1)) {
            // Only such an array can be full; the others' first words are not worth a cache miss.
            unsigned power = pool_.at(h.ref)[0];
            if (h.size + 1 == uint32_t{1} << power) h.ref = move(h.ref, h.size, power, power + 1);
        }
        pool_.at(h.ref)[1 + h.size] = entry;
        ++h.size;
        largest_ = std::max(largest_, h.size);
        groups_.word(group) = pack(h);
        return h.size - 1;
    }

    // What is left of a group of several, the last in place of the one that goes.
    Head remove(Head h, uint32_t place) noexcept {
        uint32_t* ids = pool_.at(h.ref) + 1;
        ids[place] = ids[--h.size];
        unsigned power = ids[-1];
        if (h.size == 1) {
            uint32_t array = h.ref;
            h.ref = ids[0];
            pool_.give(array, power);
        } else if (!pool_.undoing && power > 3 && h.size * 4 < uint32_t{1} << power) {
            h.ref = shrink(h.ref, h.size, power);
        }
        return h;
    }

    void pick(const int64_t* row, int64_t* key) const {
        for (unsigned i = 0; i < key_.size(); ++i) key[i] = row[key_[i]];
    }
    void warm_array(Head head, uint32_t place) const {
        if (head.size < 2) return;
        prefetch_line(pool_.at(head.ref) + 1 + place);
        prefetch_line(pool_.at(head.ref) + head.size);
    }

    uint32_t move(uint32_t from, uint32_t size, unsigned power, unsigned wanted) {
        uint32_t to = pool_.take(wanted);
        std::memcpy(pool_.at(to) + 1, pool_.at(from) + 1, size * sizeof(uint32_t));
        pool_.at(to)[0] = wanted;
        pool_.give(from, power);
        return to;
    }

    uint32_t shrink(uint32_t from, uint32_t size, unsigned power) noexcept {
        try {
            return move(from, size, power, power - 1);
        } catch (...) {
            return from;  // a loose fit is better than a failing delete
        }
    }

    std::vector<unsigned> key_;
    GroupTable groups_;
    Pool pool_;
    Array<Link> links_;
    uint32_t largest_ = 0;
    const Map* hashed_;
};

}  // namespace ivme
