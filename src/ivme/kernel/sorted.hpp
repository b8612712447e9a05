// An ordered index: for each key, the entries of a map by one column, for MIN and MAX.
//
// Each group is a treap threaded through the entries: two ids an entry, priorities hashed from the id, so that it
// stays balanced whatever comes in, and a delete or its undoing allocates nothing. NULL is not in it.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "dictionary.hpp"
#include "groups.hpp"

namespace ivme {

class SortedIndex {
public:
    SortedIndex(std::vector<unsigned> key, unsigned value, const Dictionary* order, const Seed& seed)
        : key_(std::move(key)), value_(value), order_(order), seed_(seed), groups_(count_of(key_), seed) {}

    // The same over no entries.
    SortedIndex without_entries() const { return {key_, value_, order_, seed_}; }

    const std::vector<unsigned>& key() const { return key_; }
    unsigned value() const { return value_; }
    const Dictionary* order() const { return order_; }
    const GroupTable& groups() const { return groups_; }
    size_t bytes() const { return groups_.bytes() + nodes_.bytes(); }

    // `rows` gives the record of an entry.
    template <class Rows>
    void insert(uint32_t entry, const Rows& rows) {
        const int64_t* row = rows(entry);
        if (row[value_] == NULL_CODE) return;
        if (entry >= nodes_.size()) nodes_.resize(entry + 1);
        int64_t key[64];
        pick(row, key);
        uint32_t tag = groups_.tag(key);
        uint32_t group = groups_.find(key, tag);
        nodes_[entry] = {NIL, NIL};
        if (group == NIL) {
            groups_.insert(key, tag, entry);
            return;
        }
        uint32_t root = root_of(group);
        uint32_t* link = &root;
        while (*link != NIL && priority(*link) >= priority(entry)) {
            link = less(row, rows(*link)) ? &nodes_[*link].left : &nodes_[*link].right;
        }
        split(*link, row, rows, &nodes_[entry].left, &nodes_[entry].right);
        *link = entry;
        groups_.word(group) = root;
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
        while (*link != entry) link = less(row, rows(*link)) ? &nodes_[*link].left : &nodes_[*link].right;
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

    void clear() {
        groups_.clear();
        nodes_.trim(4096);
    }

    template <class Visit>
    void each(uint32_t group, Visit visit) const {
        walk(root_of(group), visit);
    }

    bool less(const int64_t* a, const int64_t* b) const {
        return order_ ? order_->less(a[value_], b[value_]) : a[value_] < b[value_];
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
    uint64_t priority(uint32_t entry) const { return fold(seed_.start ^ entry, seed_.factor); }

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

    void merge(uint32_t* link, uint32_t left, uint32_t right) noexcept {
        while (left != NIL && right != NIL) {
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
    GroupTable groups_;
    Array<Node> nodes_;
};

}  // namespace ivme
