// An ordered index: for each key, the entries of a map by one column, for MIN and MAX.
//
// Each group is a treap threaded through the entries: two ids an entry, priorities hashed from the id, so that it
// stays balanced whatever comes in, and a delete or its undoing allocates nothing. NULL is not in it.
//
// One that is counted also has for each entry the counts of all entries below it, so that the entry at a position is
// found in O(log n), for MEDIAN and percentiles. Counts are added modulo 2^64: within a batch they may be anything.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "groups.hpp"
#include "string_order.hpp"

namespace ivme {

class SortedIndex {
public:
    SortedIndex(std::vector<unsigned> key, unsigned value, const Dictionary* order, const Seed& seed, bool counted)
        : key_(std::move(key)),
          value_(value),
          order_(order),
          seed_(seed),
          counted_(counted),
          groups_(count_of(key_), seed) {}

    // The same over no entries.
    SortedIndex without_entries() const { return {key_, value_, order_, seed_, counted_}; }

    const std::vector<unsigned>& key() const { return key_; }
    unsigned value() const { return value_; }
    const Dictionary* order() const { return order_; }
    const GroupTable& groups() const { return groups_; }
    bool counted() const { return counted_; }
    size_t bytes() const { return groups_.bytes() + nodes_.bytes() + sums_.bytes(); }

    // `rows` gives the record of an entry.
    template <class Rows>
    void insert(uint32_t entry, const Rows& rows, int64_t count) {
        const int64_t* row = rows(entry);
        if (row[value_] == NULL_CODE) return;
        if (entry >= nodes_.size()) nodes_.resize(entry + 1);
        if (counted_ && entry >= sums_.size()) sums_.resize(entry + 1);
        int64_t key[64];
        pick(row, key);
        uint32_t tag = groups_.tag(key);
        uint32_t group = groups_.find(key, tag);
        nodes_[entry] = {NIL, NIL};
        if (counted_) sums_[entry] = static_cast<uint64_t>(count);
        if (group == NIL) {
            groups_.insert(key, tag, entry);
            return;
        }
        uint32_t root = root_of(group);
        uint32_t* link = &root;
        while (*link != NIL && priority(*link) >= priority(entry)) {
            if (counted_) sums_[*link] += static_cast<uint64_t>(count);
            link = less(row, rows(*link)) ? &nodes_[*link].left : &nodes_[*link].right;
        }
        if (counted_) {
            sums_[entry] += sum_of(*link);
            split_counted(*link, row, rows, nodes_[entry].left, nodes_[entry].right);
        } else {
            split(*link, row, rows, &nodes_[entry].left, &nodes_[entry].right);
        }
        *link = entry;
        groups_.word(group) = root;
    }

    // The count of an entry becomes greater by so much.
    template <class Rows>
    void recount(uint32_t entry, const Rows& rows, int64_t change) noexcept {
        const int64_t* row = rows(entry);
        if (row[value_] == NULL_CODE) return;
        int64_t key[64];
        pick(row, key);
        uint32_t node = root_of(groups_.find(key, groups_.tag(key)));
        for (;;) {
            sums_[node] += static_cast<uint64_t>(change);
            if (node == entry) return;
            node = less(row, rows(node)) ? nodes_[node].left : nodes_[node].right;
        }
    }

    template <class Rows>
    void erase(uint32_t entry, const Rows& rows) noexcept {
        const int64_t* row = rows(entry);
        if (row[value_] == NULL_CODE) return;
        int64_t key[64];
        pick(row, key);
        uint32_t group = groups_.find(key, groups_.tag(key));
        uint32_t root = root_of(group);
        uint32_t* link = &root;
        uint64_t count = counted_ ? count_at(entry) : 0;
        while (*link != entry) {
            if (counted_) sums_[*link] -= count;
            link = less(row, rows(*link)) ? &nodes_[*link].left : &nodes_[*link].right;
        }
        merge(link, nodes_[entry].left, nodes_[entry].right);
        if (root == NIL) {
            groups_.erase(group);
        } else {
            groups_.word(group) = root;
        }
    }

    // The entry with the least or the greatest value of a group, or NIL.
    uint32_t extreme(const int64_t* key, bool greatest) const {
        uint32_t group = groups_.find(key, groups_.tag(key));
        if (group == NIL) return NIL;
        uint32_t node = root_of(group);
        for (;;) {
            uint32_t next = greatest ? nodes_[node].right : nodes_[node].left;
            if (next == NIL) return node;
            node = next;
        }
    }

    // The counts of all entries of a group; 0 if there is none.
    int64_t total(const int64_t* key) const {
        uint32_t group = groups_.find(key, groups_.tag(key));
        return group == NIL ? 0 : static_cast<int64_t>(sum_of(root_of(group)));
    }

    // The entry at a position among the copies of a group, which has more than so many; `end` is where the copies of
    // the next entry begin.
    uint32_t at(const int64_t* key, int64_t position, int64_t& end, uint64_t& operations) const {
        uint32_t node = root_of(groups_.find(key, groups_.tag(key)));
        int64_t before = 0;
        for (;;) {
            ++operations;
            int64_t here = before + static_cast<int64_t>(sum_of(nodes_[node].left));
            end = here + static_cast<int64_t>(count_at(node));
            if (position < here && nodes_[node].left != NIL) {
                node = nodes_[node].left;
            } else if (position < end || nodes_[node].right == NIL) {
                return node;
            } else {
                before = end;
                node = nodes_[node].right;
            }
        }
    }

    // The count of an entry that is in it.
    uint64_t count_at(uint32_t entry) const {
        return sums_[entry] - sum_of(nodes_[entry].left) - sum_of(nodes_[entry].right);
    }

    void clear() {
        groups_.clear();
        nodes_.trim(4096);
        sums_.trim(4096);
    }

    template <class Visit>
    void each(uint32_t group, Visit visit) const {
        walk(root_of(group), visit);
    }

    bool less(const int64_t* a, const int64_t* b) const {
        return order_ ? is_less(*order_, a[value_], b[value_]) : a[value_] < b[value_];
    }

private:
    struct Node {
        uint32_t left;
        uint32_t right;
    };

    void pick(const int64_t* row, int64_t* key) const {
        for (unsigned i = 0; i < key_.size(); ++i) key[i] = row[key_[i]];
    }
    uint32_t root_of(uint32_t group) const { return static_cast<uint32_t>(groups_.word(group)); }
    // Ids follow each other: folded only once, they gave some seeds priorities that rise and fall in long runs.
    uint64_t priority(uint32_t entry) const {
        return seed_.hash_of(1, [entry](unsigned) { return entry; });
    }
    uint64_t sum_of(uint32_t node) const { return node == NIL ? 0 : sums_[node]; }

    template <class Rows>
    void split(uint32_t node, const int64_t* row, const Rows& rows, uint32_t* left, uint32_t* right) {
        while (node != NIL) {
            if (less(rows(node), row)) {
                *left = node;
                left = &nodes_[node].right;
                node = *left;
            } else {
                *right = node;
                right = &nodes_[node].left;
                node = *right;
            }
        }
        *left = *right = NIL;
    }

    // The same with counts, which are right again from the bottom up; as deep as the treap, O(log n).
    template <class Rows>
    void split_counted(uint32_t node, const int64_t* row, const Rows& rows, uint32_t& left, uint32_t& right) {
        if (node == NIL) {
            left = right = NIL;
            return;
        }
        uint64_t count = count_at(node);
        if (less(rows(node), row)) {
            left = node;
            split_counted(nodes_[node].right, row, rows, nodes_[node].right, right);
        } else {
            right = node;
            split_counted(nodes_[node].left, row, rows, left, nodes_[node].left);
        }
        sums_[node] = count + sum_of(nodes_[node].left) + sum_of(nodes_[node].right);
    }

    void merge(uint32_t* link, uint32_t left, uint32_t right) noexcept {
        while (left != NIL && right != NIL) {
            if (counted_) {
                uint64_t both = sums_[left] + sums_[right];
                sums_[priority(left) >= priority(right) ? left : right] = both;
            }
            if (priority(left) >= priority(right)) {
                *link = left;
                link = &nodes_[left].right;
                left = *link;
            } else {
                *link = right;
                link = &nodes_[right].left;
                right = *link;
            }
        }
        *link = left != NIL ? left : right;
    }

    template <class Visit>
    void walk(uint32_t node, Visit& visit) const {
        if (node == NIL) return;
        walk(nodes_[node].left, visit);
        visit(node);
        walk(nodes_[node].right, visit);
    }

    std::vector<unsigned> key_;
    unsigned value_;
    const Dictionary* order_;
    Seed seed_;
    bool counted_;
    GroupTable groups_;
    Array<Node> nodes_;
    Array<uint64_t> sums_;  // of the counts of an entry and of all below it; none unless it is counted
};

}  // namespace ivme
