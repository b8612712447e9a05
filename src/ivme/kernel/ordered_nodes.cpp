// The nodes of an ordered tree: how they are split when they are full, and merged when they are nearly empty.
//
// A full node is cut in the middle, and the last leaf behind its last row, so that rows that come in their order fill
// leaves. A node that is less than a quarter full is merged with a neighbour if both then leave a quarter free.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "ordered_tree.hpp"

namespace ivme {

void OrderedTree::Pool::reserve(uint32_t nodes) {
    if (words.size() / block + nodes >= NIL) throw Capacity("an ordered map cannot have more than 4 billion nodes");
    if (spare < nodes) words.reserve(words.size() + size_t{nodes - spare} * block);
}

uint32_t OrderedTree::Pool::take() {
    if (free == NIL) {
        words.resize(words.size() + block);
        return static_cast<uint32_t>(words.size() / block - 1);
    }
    uint32_t node = free;
    free = static_cast<uint32_t>(at(node)[0]);
    --spare;
    return node;
}

void OrderedTree::Pool::give(uint32_t node) noexcept {
    at(node)[0] = free;
    at(node)[2] = FREED;
    free = node;
    ++spare;
}

// Splits the topmost of the full nodes above the full leaf that a path ends at, or the leaf: its parent has room.
void OrderedTree::split(Path& path) noexcept {
    ++shape_;
    unsigned level = height_;
    while (level && fanout(path.nodes[level - 1]) == inner_most_) --level;
    if (level == height_) {
        split_leaf(path);
    } else {
        split_inner(path, level);
    }
}

// Whether a path ends behind the last of all rows.
bool OrderedTree::is_last(const Path& path) const { return next(path.leaf) == NIL && path.place == filled(path.leaf); }

void OrderedTree::split_leaf(const Path& path) noexcept {
    uint32_t leaf = path.leaf, right = leaves_.take();
    unsigned n = filled(leaf);
    unsigned stays = is_last(path) ? n - 1 : n / 2;
    unsigned at = height_ ? path.at[height_ - 1] : 0;
    uint32_t parent = height_ ? path.nodes[height_ - 1] : new_root(leaf);
    std::copy_n(leaf_counts(leaf) + stays, n - stays, leaf_counts(right));
    std::copy_n(leaf_row(leaf, stays), size_t{n - stays} * words_, leaf_row(right, 0));
    int64_t *made = leaves_.at(right), *old = leaves_.at(leaf);
    made[0] = n - stays;
    made[1] = old[1];
    made[2] = leaf;
    if (next(leaf) != NIL) leaves_.at(next(leaf))[2] = right;
    old[0] = stays;
    old[1] = right;
    add_child(parent, at + 1, right, leaf_row(right, 0));
    sum_leaf(right, &below(parent)[at + 1], slots(parent, at + 1));
    sum_leaf(leaf, &below(parent)[at], slots(parent, at));
}

// Splits the inner node of a level, whose parent has room.
void OrderedTree::split_inner(const Path& path, unsigned level) noexcept {
    uint32_t node = path.nodes[level], right = inner_.take();
    unsigned n = fanout(node), stays = is_last(path) ? n - 2 : n / 2;
    unsigned at = level ? path.at[level - 1] : 0;
    uint32_t parent = level ? path.nodes[level - 1] : new_root(node);
    inner_.at(right)[0] = n - stays;
    move_children(node, stays, right, 0, n - stays);
    inner_.at(node)[0] = stays;
    add_child(parent, at + 1, right, bound(right, 0));
    sum_inner(node, &below(parent)[at], slots(parent, at));
    sum_inner(right, &below(parent)[at + 1], slots(parent, at + 1));
}

// A root above the one that there is, with it as its only child.
uint32_t OrderedTree::new_root(uint32_t left) noexcept {
    uint32_t root = inner_.take();
    inner_.at(root)[0] = 1;
    children(root)[0] = left;
    below(root)[0] = 0;
    std::fill_n(slots(root, 0), slot_words_, 0);
    std::fill_n(bound(root, 0), words_, 0);
    root_ = root;
    ++height_;
    return root;
}

void OrderedTree::add_child(uint32_t node, unsigned at, uint32_t child, const int64_t* row) noexcept {
    unsigned n = fanout(node);
    move_children(node, at, node, at + 1, n - at);
    inner_.at(node)[0] = n + 1;
    children(node)[at] = child;
    std::copy_n(row, words_, bound(node, at));
}

void OrderedTree::drop_child(uint32_t node, unsigned at) noexcept {
    unsigned n = fanout(node);
    move_children(node, at + 1, node, at, n - at - 1);
    inner_.at(node)[0] = n - 1;
}

// Copies children with all that is known of them, within a node or to another.
void OrderedTree::move_children(uint32_t from, unsigned first, uint32_t to, unsigned at, unsigned n) noexcept {
    std::memmove(children(to) + at, children(from) + first, n * sizeof(int64_t));
    std::memmove(below(to) + at, below(from) + first, n * sizeof(int64_t));
    std::memmove(slots(to, at), slots(from, first), size_t{n} * slot_words_ * sizeof(int64_t));
    std::memmove(bound(to, at), bound(from, first), size_t{n} * words_ * sizeof(int64_t));
}

void OrderedTree::sum_leaf(uint32_t leaf, int64_t* copies, int64_t* slots) const noexcept {
    *copies = 0;
    std::fill_n(slots, slot_words_, 0);
    for (unsigned i = 0; i < filled(leaf); ++i) {
        *copies += leaf_counts(leaf)[i];
        if (slot_words_) add_values(slots, leaf_row(leaf, i), leaf_counts(leaf)[i]);
    }
}

void OrderedTree::sum_inner(uint32_t node, int64_t* copies, int64_t* total) const noexcept {
    *copies = 0;
    std::fill_n(total, slot_words_, 0);
    for (unsigned i = 0; i < fanout(node); ++i) {
        *copies += below(node)[i];
        add_slots(total, slots(node, i));
    }
}

void OrderedTree::add_slots(int64_t* total, const int64_t* slots) const noexcept {
    for (unsigned s = 0; s < slot_words_; s += SLOT_WORDS) {
        add_words<2>(total + s, total + s, slots + s);
        total[s + 2] += slots[s + 2];
    }
}

// After a row has gone: nodes on the way to it that have become small are merged, those without rows go.
void OrderedTree::shrink(Path& path) noexcept {
    ++shape_;
    if (!height_) {
        if (!filled(root_)) {
            leaves_.give(root_);
            root_ = NIL;
        }
        return;
    }
    if (filled(path.leaf) >= leaf_most_ / 4) return;
    uint32_t parent = path.nodes[height_ - 1];
    unsigned at = path.at[height_ - 1];
    if (!(at + 1 < fanout(parent) && merge_leaves(parent, at)) && !(at && merge_leaves(parent, at - 1))) {
        if (filled(path.leaf)) return;
        unlink(path.leaf);
        leaves_.give(path.leaf);
        drop_child(parent, at);
    }
    for (unsigned level = height_ - 1; level; --level) {
        uint32_t node = path.nodes[level], above = path.nodes[level - 1];
        if (fanout(node) >= inner_most_ / 4) break;
        at = path.at[level - 1];
        if ((at + 1 < fanout(above) && merge_inner(above, at)) || (at && merge_inner(above, at - 1))) continue;
        if (fanout(node)) break;
        inner_.give(node);
        drop_child(above, at);
    }
    while (height_ && fanout(root_) <= 1) {
        uint32_t root = root_;
        root_ = fanout(root) ? static_cast<uint32_t>(children(root)[0]) : NIL;
        inner_.give(root);
        --height_;
        if (root_ == NIL) height_ = 0;
    }
}

bool OrderedTree::merge_leaves(uint32_t parent, unsigned left) noexcept {
    auto a = static_cast<uint32_t>(children(parent)[left]), b = static_cast<uint32_t>(children(parent)[left + 1]);
    unsigned n = filled(a), more = filled(b);
    if (n + more > leaf_most_ * 3 / 4) return false;
    std::copy_n(leaf_counts(b), more, leaf_counts(a) + n);
    std::copy_n(leaf_row(b, 0), size_t{more} * words_, leaf_row(a, n));
    leaves_.at(a)[0] = n + more;
    below(parent)[left] += below(parent)[left + 1];
    add_slots(slots(parent, left), slots(parent, left + 1));
    unlink(b);
    leaves_.give(b);
    drop_child(parent, left + 1);
    return true;
}

bool OrderedTree::merge_inner(uint32_t parent, unsigned left) noexcept {
    auto a = static_cast<uint32_t>(children(parent)[left]), b = static_cast<uint32_t>(children(parent)[left + 1]);
    unsigned n = fanout(a), more = fanout(b);
    if (n + more > inner_most_ * 3 / 4) return false;
    std::copy_n(bound(parent, left + 1), words_, bound(b, 0));
    move_children(b, 0, a, n, more);
    inner_.at(a)[0] = n + more;
    below(parent)[left] += below(parent)[left + 1];
    add_slots(slots(parent, left), slots(parent, left + 1));
    inner_.give(b);
    drop_child(parent, left + 1);
    return true;
}

void OrderedTree::unlink(uint32_t leaf) noexcept {
    if (previous(leaf) != NIL) leaves_.at(previous(leaf))[1] = next(leaf);
    if (next(leaf) != NIL) leaves_.at(next(leaf))[2] = previous(leaf);
}

// For tests

void OrderedTree::check() const {
    uint64_t rows = 0;
    std::vector<int64_t> found(slot_words_);
    int64_t copies = root_ == NIL ? 0 : check_node(root_, 0, nullptr, nullptr, &rows, found);
    if (copies != copies_ || rows != size_) throw std::logic_error("the tree has other rows than it says");
}

int64_t OrderedTree::check_node(uint32_t node, unsigned level, const int64_t* least, const int64_t* end, uint64_t* rows,
                                std::vector<int64_t>& found) const {
    auto inside = [&](const int64_t* row) {
        if ((least && keys_.compare(row, least, words_) < 0) || (end && keys_.compare(row, end, words_) >= 0)) {
            throw std::logic_error("a row is outside the bounds of its node");
        }
    };
    int64_t copies = 0;
    if (level == height_) {
        for (unsigned i = 0; i < filled(node); ++i) {
            inside(leaf_row(node, i));
            if (i && keys_.compare(leaf_row(node, i - 1), leaf_row(node, i), words_) >= 0) {
                throw std::logic_error("the rows of a leaf are not in their order");
            }
        }
        sum_leaf(node, &copies, found.data());
        *rows += filled(node);
        return copies;
    }
    if (!fanout(node)) throw std::logic_error("an inner node has no children");
    for (unsigned i = 0; i < fanout(node); ++i) {
        if (i) inside(bound(node, i));
        std::vector<int64_t> beneath(slot_words_);
        int64_t here = check_node(static_cast<uint32_t>(children(node)[i]), level + 1, i ? bound(node, i) : least,
                                  i + 1 < fanout(node) ? bound(node, i + 1) : end, rows, beneath);
        if (here != below(node)[i] || !std::equal(beneath.begin(), beneath.end(), slots(node, i))) {
            throw std::logic_error("the totals of a node differ from those of the nodes below it");
        }
        copies += here;
        add_slots(found.data(), beneath.data());
    }
    return copies;
}

}  // namespace ivme
