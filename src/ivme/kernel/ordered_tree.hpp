// A B+-tree of weighted rows, whose inner nodes know how much is below each child: copies, and sums of columns.
//
// Finding, adding and erasing a row, its rank and the row at a rank take O(log N) comparisons. Nodes are blocks of
// words in two arrays, named by number, so that growing moves pages and an entry costs its words, one for its copies,
// and the free part of its leaf. A row whose copies go to zero stays until it is erased: a transaction that is undone
// finds it there, and needs no memory.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "errors.hpp"
#include "hash.hpp"
#include "ordered_keys.hpp"
#include "wide.hpp"

namespace ivme {

// What is known of some rows: how many copies there are, and for each summed column the sum of its values that are not
// NULL, and how many these are.
struct OrderedTotals {
    int64_t copies = 0;
    std::vector<Wide> sums;
    std::vector<int64_t> known;
};

class OrderedTree {
    static constexpr unsigned DEEPEST = 32;

public:
    // Columns that are summed have codes that are their values. Nodes have room for so many, or with 0 for what is
    // best.
    OrderedTree(OrderedKeys keys, std::vector<unsigned> summed, unsigned room);

    const OrderedKeys& keys() const { return keys_; }
    const std::vector<unsigned>& summed() const { return summed_; }
    int64_t copies() const { return copies_; }
    uint64_t size() const { return size_; }  // the rows, those without copies included
    size_t bytes() const { return leaves_.words.bytes() + inner_.words.bytes(); }

    // Room for what `add` of one row may need; that and all else then asks for no memory.
    void reserve();

    // The way to a leaf: inner nodes from the root on, and the child that was taken in each.
    struct Path {
        uint32_t nodes[DEEPEST];
        unsigned at[DEEPEST];
        uint32_t leaf;
        unsigned place;
    };

    // The ways to a few rows, which are right until a node is split or merged.
    static constexpr unsigned BLOCK = 16;
    struct Paths {
        Path each[BLOCK];
        uint64_t shape;
    };

    // Goes the ways to a few rows side by side, so that their cache misses overlap.
    void find(const int64_t* const* rows, unsigned n, Paths& paths) const noexcept;

    // Where a row was found, so that it is found again without a search if it is still there.
    struct Hint {
        uint32_t leaf;
        uint32_t place;
    };

    // Changes the copies of a row, and says where it is. What is below zero, or beyond 64 bits, throws and changes
    // nothing.
    Hint add(const int64_t* row, int64_t weight);

    // The same, by the way that was found.
    Hint add(const int64_t* row, int64_t weight, const Paths& paths, unsigned number);

    // Takes a row away that has no copies; nothing if it is not there, or has some.
    void erase_if_gone(const int64_t* row, Hint hint) noexcept;
    void prefetch(Hint hint) const noexcept;

    // For a tree without rows: what the first rows are tells how strings are compared quickly.
    void learn(const std::vector<const int64_t*>& columns, size_t n) { keys_.skip_shared(columns, n); }

    // For a tree without rows: adds a row behind all others, in leaves that `build` makes a tree of; then all else may
    // be called again. O(1) a row, with full nodes.
    void append(const int64_t* row, int64_t copies);
    void build();
    void clear() noexcept;

    // The copies before the first row whose first words are like those given or behind them; with `after`, behind them.
    int64_t rank(const int64_t* row, unsigned words, bool after) const;

    // The copies of a row.
    int64_t copies_of(const int64_t* row) const;

    // Calls visit(row, copies) for the copies from rank `start` up to `stop`, in their order.
    template <class Visit>
    void scan(int64_t start, int64_t stop, Visit visit) const {
        if (start < 0) start = 0;
        if (stop > copies_) stop = copies_;
        if (start >= stop) return;
        int64_t before = start;
        uint32_t leaf = leaf_at(&before);
        int64_t left = stop - start;
        for (; leaf != NIL && left > 0; leaf = next(leaf)) {
            const int64_t* counts = leaf_counts(leaf);
            for (unsigned i = 0; i < filled(leaf) && left > 0; ++i) {
                int64_t here = counts[i];
                if (here <= before) {
                    before -= here;
                    continue;
                }
                int64_t shown = here - before < left ? here - before : left;
                before = 0;
                left -= shown;
                visit(leaf_row(leaf, i), shown);
            }
        }
    }

    // Calls visit(row) for every row, those without copies included.
    template <class Visit>
    void each(Visit visit) const {
        if (root_ == NIL) return;
        uint32_t leaf = root_;
        for (unsigned level = 0; level < height_; ++level) leaf = static_cast<uint32_t>(children(leaf)[0]);
        for (; leaf != NIL; leaf = next(leaf)) {
            for (unsigned i = 0; i < filled(leaf); ++i) visit(leaf_row(leaf, i));
        }
    }

    // Calls visit(row) for every row that inner nodes compare with: it may be gone from the leaves.
    template <class Visit>
    void each_bound(Visit visit) const {
        if (height_) each_bound(root_, 0, visit);
    }

    // What is before a rank.
    OrderedTotals totals(int64_t rank) const;

    // Throws std::logic_error where what nodes say is not what is below them; for tests.
    void check() const;

    mutable uint64_t operations = 0;  // comparisons of rows

private:
    static constexpr uint32_t FREED = NIL - 1;  // in place of the neighbour of a leaf that is none any more
    static constexpr unsigned SLOT_WORDS = 3;   // the low and the high word of a sum, and the values that are not NULL

    struct Pool {
        Array<int64_t> words;
        unsigned block = 0;  // words of a node
        uint32_t free = NIL;
        uint32_t spare = 0;  // free nodes
        int64_t* at(uint32_t node) { return words.data() + static_cast<size_t>(node) * block; }
        const int64_t* at(uint32_t node) const { return words.data() + static_cast<size_t>(node) * block; }
        void reserve(uint32_t nodes);
        uint32_t take();
        void give(uint32_t node) noexcept;
    };

    // A leaf: how many rows it has, its neighbours, the copies of each, the rows.
    unsigned filled(uint32_t leaf) const { return static_cast<unsigned>(leaves_.at(leaf)[0]); }
    uint32_t next(uint32_t leaf) const { return static_cast<uint32_t>(leaves_.at(leaf)[1]); }
    uint32_t previous(uint32_t leaf) const { return static_cast<uint32_t>(leaves_.at(leaf)[2]); }
    int64_t* leaf_counts(uint32_t leaf) { return leaves_.at(leaf) + 3; }
    const int64_t* leaf_counts(uint32_t leaf) const { return leaves_.at(leaf) + 3; }
    int64_t* leaf_row(uint32_t leaf, unsigned i) { return leaves_.at(leaf) + 3 + leaf_most_ + size_t{i} * words_; }
    const int64_t* leaf_row(uint32_t leaf, unsigned i) const {
        return leaves_.at(leaf) + 3 + leaf_most_ + size_t{i} * words_;
    }

    // An inner node: how many children it has, their numbers, what is below each (copies, slots), and for each a row
    // that is behind all of the child before it and not behind any of its own; that of the first child counts for
    // nothing.
    unsigned fanout(uint32_t node) const { return static_cast<unsigned>(inner_.at(node)[0]); }
    int64_t* children(uint32_t node) { return inner_.at(node) + 1; }
    const int64_t* children(uint32_t node) const { return inner_.at(node) + 1; }
    int64_t* below(uint32_t node) { return inner_.at(node) + 1 + inner_most_; }
    const int64_t* below(uint32_t node) const { return inner_.at(node) + 1 + inner_most_; }
    int64_t* slots(uint32_t node, unsigned i) {
        return inner_.at(node) + 1 + 2 * inner_most_ + size_t{i} * slot_words_;
    }
    const int64_t* slots(uint32_t node, unsigned i) const {
        return inner_.at(node) + 1 + 2 * inner_most_ + size_t{i} * slot_words_;
    }
    int64_t* bound(uint32_t node, unsigned i) {
        return inner_.at(node) + 1 + (2 + slot_words_) * size_t{inner_most_} + size_t{i} * words_;
    }
    const int64_t* bound(uint32_t node, unsigned i) const {
        return inner_.at(node) + 1 + (2 + slot_words_) * size_t{inner_most_} + size_t{i} * words_;
    }

    template <class Visit>
    void each_bound(uint32_t node, unsigned level, Visit visit) const {
        for (unsigned i = 0; i < fanout(node); ++i) {
            if (i) visit(bound(node, i));
            if (level + 1 < height_) each_bound(static_cast<uint32_t>(children(node)[i]), level + 1, visit);
        }
    }

    unsigned child_for(uint32_t node, const int64_t* row, unsigned words, bool equal_too) const;
    unsigned place_in(uint32_t leaf, const int64_t* row, unsigned words, bool after) const;
    unsigned find_in(uint32_t leaf, const int64_t* row, unsigned hint) const;
    void descend(const int64_t* row, Path& path) const;
    void find_place(const int64_t* row, Path& path, bool is_there) const;
    Hint add_at(const int64_t* row, int64_t weight, Path& path);
    bool is_at(const Path& path, const int64_t* row) const;
    uint32_t leaf_at(int64_t* rank) const;

    void count(const Path& path, const int64_t* row, int64_t weight) noexcept;
    void add_values(int64_t* slots, const int64_t* row, int64_t weight) const noexcept;
    uint32_t new_leaf(uint32_t after);
    void build_level(Array<uint32_t>& nodes);
    void sum_leaf(uint32_t leaf, int64_t* copies, int64_t* slots) const noexcept;
    void sum_inner(uint32_t node, int64_t* copies, int64_t* slots) const noexcept;
    void add_slots(int64_t* total, const int64_t* slots) const noexcept;
    void insert_at(uint32_t leaf, unsigned place, const int64_t* row) noexcept;
    void remove_at(uint32_t leaf, unsigned place) noexcept;

    void split(Path& path) noexcept;
    void split_leaf(const Path& path) noexcept;
    void split_inner(const Path& path, unsigned level) noexcept;
    uint32_t new_root(uint32_t left) noexcept;
    bool is_last(const Path& path) const;
    void add_child(uint32_t node, unsigned at, uint32_t child, const int64_t* row) noexcept;
    void drop_child(uint32_t node, unsigned at) noexcept;
    void move_children(uint32_t from, unsigned first, uint32_t to, unsigned at, unsigned n) noexcept;
    void shrink(Path& path) noexcept;
    bool merge_leaves(uint32_t parent, unsigned left) noexcept;
    bool merge_inner(uint32_t parent, unsigned left) noexcept;
    void unlink(uint32_t leaf) noexcept;
    int64_t check_node(uint32_t node, unsigned level, const int64_t* least, const int64_t* end, uint64_t* rows,
                       std::vector<int64_t>& slots) const;

    OrderedKeys keys_;
    std::vector<unsigned> summed_;
    unsigned words_, slot_words_;
    unsigned leaf_most_, inner_most_;
    Pool leaves_, inner_;
    uint32_t root_ = NIL;  // a leaf if there is no level above
    unsigned height_ = 0;  // levels of inner nodes
    uint32_t last_ = NIL;  // the leaf that rows are appended to
    uint64_t shape_ = 0;   // changes whenever a node is made, split, merged or dropped
    uint64_t size_ = 0;
    int64_t copies_ = 0;
};

}  // namespace ivme
