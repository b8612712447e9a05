// An ordered map: weighted rows in the order of their values, by groups, and the part of each group that is shown.
//
// The first columns of the order are those of a group, so that one tree has all groups, small ones without waste. A
// change is undone by the log of what was added. A window is what is shown of each group: the copies from an offset up
// to a limit, with all that ORDER BY does not tell apart from the last if it has ties. The rows that enter and leave a
// window are found at its edges: one change costs O(log N) and the rows that move.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "delta.hpp"
#include "ordered_tree.hpp"

namespace ivme {

// Ranks within a group: how many copies before, and how many copies, or with DENSE values of what is ordered by, are
// shown.
struct OrderedWindow {
    enum Ties : uint8_t { NONE, LIKE_LAST, DENSE };
    int64_t offset;
    int64_t limit;
    Ties ties;
    unsigned ordered_by;  // columns of the order, those of groups included, that tell rows apart for ties
};

class OrderedMap {
public:
    OrderedMap(OrderedKeys keys, unsigned groups, std::vector<unsigned> summed, unsigned room)
        : tree_(std::move(keys), std::move(summed), room), groups_(groups) {}

    const OrderedTree& tree() const { return tree_; }
    const OrderedKeys& keys() const { return tree_.keys(); }
    size_t bytes() const { return tree_.bytes() + log_.bytes(); }

    // Adds rows of codes, by column, to be committed or rolled back.
    void apply(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n);

    // The same, and appends what enters (weights above zero) and leaves the window to a delta of the rows' codes.
    void apply(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n,
               const OrderedWindow& window, Delta& moved);

    // Fills a map without rows, in one go that is committed; one that fails leaves it without rows.
    void load(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n);

    void commit() noexcept;
    void roll_back() noexcept;

    // The ranks among all copies of the first copy shown of a group and behind the last; `group` has its words.
    std::pair<int64_t, int64_t> shown(const int64_t* group, const OrderedWindow& window) const;

    // The same for all groups, in their order.
    void all_shown(const OrderedWindow& window, Array<int64_t>& first, Array<int64_t>& last) const;

private:
    using Paths = OrderedTree::Paths;

    void add(const int64_t* row, int64_t weight, const Paths& paths, unsigned number);
    int64_t end_of(int64_t start, int64_t stop, const OrderedWindow& window) const;
    void change(const int64_t* row, int64_t weight, const Paths& paths, unsigned number, const OrderedWindow& window,
                Delta& moved);
    size_t record() const { return keys().words() + 2; }
    void learn(const std::vector<const int64_t*>& columns, size_t n);
    OrderedTree::Hint hint_of(const int64_t* record) const noexcept;
    void erase_logged(bool only_taken) noexcept;

    OrderedTree tree_;
    unsigned groups_;
    Array<int64_t> log_;  // the rows that were added, each with its weight and its hint behind it
};

}  // namespace ivme
