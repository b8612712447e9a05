// Filling an ordered map that is empty: rows are sorted once, and the nodes of the tree are made from the bottom up.
#include <algorithm>
#include <stdexcept>

#include "ordered_map.hpp"

namespace ivme {

namespace {

// A row that is to be sorted: one of its words at a time, and its number among those given.
struct Placed {
    int64_t word;
    uint32_t row;
};

// Sorts rows that are alike in all words before one: by that word, and those with the same one by the next. The words
// lie side by side, so that a comparison does not look for a row.
void sort_from(const OrderedKeys& keys, const std::vector<const int64_t*>& columns, Placed* first, Placed* last,
               unsigned word) {
    const int64_t* codes = columns[keys.column_of(word)];
    for (Placed* each = first; each != last; ++each) each->word = keys.word(word, codes[each->row]);
    std::sort(first, last, [&](const Placed& a, const Placed& b) {
        return a.word != b.word && keys.is_before(word, a.word, b.word);
    });
    if (word + 1 == keys.words()) return;
    for (Placed *start = first, *end = first; start != last; start = end) {
        while (end != last && end->word == start->word) ++end;
        if (end - start > 1) sort_from(keys, columns, start, end, word + 1);
    }
}

}  // namespace

void OrderedMap::load(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n) {
    if (n > NIL) throw Capacity("a batch cannot have more than 4 billion rows");
    learn(columns, n);
    Array<Placed> order;
    order.resize(n);
    for (uint32_t i = 0; i < n; ++i) order[i] = {0, i};
    if (keys().words()) sort_from(keys(), columns, order.data(), order.data() + n, 0);
    std::vector<int64_t> row(keys().words()), last(keys().words());
    int64_t copies = 0;
    auto append = [&] {
        if (copies < 0) throw std::invalid_argument("a row of an ordered map has fewer than no copies");
        if (copies) tree_.append(last.data(), copies);
        copies = 0;
    };
    try {
        for (size_t i = 0; i < n; ++i) {
            uint32_t number = order[i].row;
            keys().encode([&](unsigned column) { return columns[column][number]; }, keys().arity(), row.data());
            if (row != last) append();
            std::swap(row, last);
            if (add_overflows(copies, weights[number], &copies)) throw Overflow();
        }
        append();
        tree_.build();
    } catch (...) {
        tree_.clear();
        throw;
    }
}

void OrderedTree::append(const int64_t* row, int64_t copies) {
    int64_t total;
    if (add_overflows(copies_, copies, &total)) throw Overflow();
    if (last_ == NIL || filled(last_) == leaf_most_) {
        leaves_.reserve(1);
        last_ = new_leaf(last_);
        if (root_ == NIL) root_ = last_;
    }
    unsigned place = filled(last_);
    std::copy_n(row, words_, leaf_row(last_, place));
    leaf_counts(last_)[place] = copies;
    leaves_.at(last_)[0] = place + 1;
    copies_ = total;
    ++size_;
}

// The first leaf is the root so far; levels are put above all leaves until there is one node.
void OrderedTree::build() {
    Array<uint32_t> nodes;
    for (uint32_t leaf = root_; leaf != NIL; leaf = next(leaf)) nodes.push(leaf);
    while (nodes.size() > 1) build_level(nodes);
    if (root_ != NIL) root_ = nodes[0];
    last_ = NIL;
    ++shape_;
}

// Puts parents above nodes of one height, as many children in each, and these parents in their place. The first bound
// of a node is here its first row, which the level above needs.
void OrderedTree::build_level(Array<uint32_t>& nodes) {
    size_t n = nodes.size(), parents = (n + inner_most_ - 1) / inner_most_;
    for (size_t parent = 0; parent < parents; ++parent) {
        size_t first = parent * n / parents, end = (parent + 1) * n / parents;
        inner_.reserve(1);
        uint32_t node = inner_.take();
        inner_.at(node)[0] = static_cast<int64_t>(end - first);
        for (size_t i = first; i < end; ++i) {
            auto at = static_cast<unsigned>(i - first);
            uint32_t child = nodes[i];
            children(node)[at] = child;
            std::copy_n(height_ ? bound(child, 0) : leaf_row(child, 0), words_, bound(node, at));
            if (height_) {
                sum_inner(child, &below(node)[at], slots(node, at));
            } else {
                sum_leaf(child, &below(node)[at], slots(node, at));
            }
        }
        nodes[parent] = node;
    }
    nodes.resize(parents);
    ++height_;
}

// A leaf without rows behind another; there is room for it.
uint32_t OrderedTree::new_leaf(uint32_t after) {
    uint32_t made = leaves_.take();
    int64_t* leaf = leaves_.at(made);
    leaf[0] = 0;
    leaf[1] = NIL;
    leaf[2] = after;
    if (after != NIL) leaves_.at(after)[1] = made;
    ++shape_;
    return made;
}

void OrderedTree::clear() noexcept {
    for (Pool* pool : {&leaves_, &inner_}) {
        pool->words.release();
        pool->free = NIL;
        pool->spare = 0;
    }
    root_ = last_ = NIL;
    height_ = 0;
    size_ = 0;
    copies_ = 0;
    ++shape_;
}

}  // namespace ivme
