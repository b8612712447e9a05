// Finding, counting and changing rows of an ordered tree; ordered_nodes.cpp has what its nodes do.
#include "ordered_tree.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "portable.hpp"

namespace ivme {

namespace {

constexpr unsigned LEAF_WORDS = 256;  // about 2 KB: a shift of half a leaf is as quick as a cache miss
constexpr unsigned INNER_WORDS = 192;

unsigned most(unsigned words, unsigned each, unsigned least, unsigned greatest) {
    return std::clamp(words / each, least, greatest);
}

}  // namespace

OrderedTree::OrderedTree(OrderedKeys keys, std::vector<unsigned> summed, unsigned room)
    : keys_(std::move(keys)),
      summed_(std::move(summed)),
      words_(keys_.words()),
      slot_words_(SLOT_WORDS * count_of(summed_)),
      leaf_most_(room ? std::max(room, 4u) : most(LEAF_WORDS, words_ + 1, 8, 64)),
      inner_most_(room ? std::max(room, 4u) : most(INNER_WORDS, words_ + 2 + slot_words_, 8, 32)) {
    leaves_.block = 3 + leaf_most_ * (1 + words_);
    inner_.block = 1 + inner_most_ * (2 + slot_words_ + words_);
}

void OrderedTree::reserve() {
    leaves_.reserve(2);
    inner_.reserve(height_ + 2);
}

// Finding

unsigned OrderedTree::child_for(uint32_t node, const int64_t* row, unsigned words, bool equal_too) const {
    unsigned low = 0, high = fanout(node);
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        int order = keys_.compare(bound(node, middle), row, words);
        ++operations;
        if (order < 0 || (equal_too && order == 0)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

unsigned OrderedTree::place_in(uint32_t leaf, const int64_t* row, unsigned words, bool after) const {
    unsigned low = 0, high = filled(leaf);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int order = keys_.compare(leaf_row(leaf, middle), row, words);
        ++operations;
        if (order < 0 || (after && order == 0)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Where a row is in a leaf, without comparing strings; behind the last row if it is not there. Rows that went since it
// was at the hint were before it.
unsigned OrderedTree::find_in(uint32_t leaf, const int64_t* row, unsigned hint) const {
    unsigned n = filled(leaf), first = std::min(hint + 1, n);
    auto is_here = [&](unsigned place) {
        const int64_t* found = leaf_row(leaf, place);
        unsigned word = words_;
        while (word && found[word - 1] == row[word - 1]) --word;
        return !word;
    };
    for (unsigned place = first; place; --place) {
        if (is_here(place - 1)) return place - 1;
    }
    for (unsigned place = first; place < n; ++place) {
        if (is_here(place)) return place;
    }
    return n;
}

// To the leaf of a whole row: rows are distinct, so that it is in the last child whose bound is not behind it.
void OrderedTree::descend(const int64_t* row, Path& path) const {
    uint32_t node = root_;
    for (unsigned level = 0; level < height_; ++level) {
        path.nodes[level] = node;
        path.at[level] = child_for(node, row, words_, true);
        node = static_cast<uint32_t>(children(node)[path.at[level]]);
    }
    path.leaf = node;
}

void OrderedTree::find_place(const int64_t* row, Path& path, bool is_there) const {
    path.place = is_there && keys_.has_strings() ? find_in(path.leaf, row, 0) : place_in(path.leaf, row, words_, false);
}

void OrderedTree::find(const int64_t* const* rows, unsigned n, Paths& paths) const noexcept {
    paths.shape = shape_;
    for (unsigned i = 0; i < n; ++i) paths.each[i].leaf = root_;
    for (unsigned level = 0; level < height_; ++level) {
        bool is_last = level + 1 == height_;
        for (unsigned i = 0; i < n; ++i) {
            Path& path = paths.each[i];
            uint32_t node = path.nodes[level] = path.leaf;
            path.at[level] = child_for(node, rows[i], words_, true);
            path.leaf = static_cast<uint32_t>(children(node)[path.at[level]]);
            const int64_t* start = is_last ? leaves_.at(path.leaf) : inner_.at(path.leaf);
            const int64_t* found = is_last ? leaf_row(path.leaf, 0) : bound(path.leaf, 0);
            size_t most = size_t{is_last ? leaf_most_ : inner_most_} * words_;
            prefetch_line(start);
            for (size_t part = 1; part < 8; ++part) prefetch_line(found + part * most / 8);
        }
    }
}

void OrderedTree::prefetch(Hint hint) const noexcept {
    prefetch_line(leaves_.at(hint.leaf));
    prefetch_line(leaf_counts(hint.leaf) + hint.place);
    prefetch_line(leaf_row(hint.leaf, hint.place));
}

bool OrderedTree::is_at(const Path& path, const int64_t* row) const {
    return path.place < filled(path.leaf) && std::equal(row, row + words_, leaf_row(path.leaf, path.place));
}

int64_t OrderedTree::rank(const int64_t* row, unsigned words, bool after) const {
    if (root_ == NIL) return 0;
    if (!words) return after ? copies_ : 0;
    int64_t before = 0;
    uint32_t node = root_;
    for (unsigned level = 0; level < height_; ++level) {
        unsigned at = child_for(node, row, words, after || words == words_);
        for (unsigned i = 0; i < at; ++i) before += below(node)[i];
        node = static_cast<uint32_t>(children(node)[at]);
    }
    unsigned place = place_in(node, row, words, after);
    for (unsigned i = 0; i < place; ++i) before += leaf_counts(node)[i];
    return before;
}

int64_t OrderedTree::copies_of(const int64_t* row) const {
    if (root_ == NIL) return 0;
    Path path;
    descend(row, path);
    find_place(row, path, false);
    return is_at(path, row) ? leaf_counts(path.leaf)[path.place] : 0;
}

// The leaf that has the copy of a rank, which becomes one among the leaf's.
uint32_t OrderedTree::leaf_at(int64_t* rank) const {
    uint32_t node = root_;
    for (unsigned level = 0; level < height_; ++level) {
        unsigned at = 0;
        for (; below(node)[at] <= *rank; ++at) *rank -= below(node)[at];
        node = static_cast<uint32_t>(children(node)[at]);
    }
    return node;
}

OrderedTotals OrderedTree::totals(int64_t rank) const {
    std::vector<int64_t> slots_before(slot_words_);
    rank = std::clamp<int64_t>(rank, 0, copies_);
    int64_t left = rank;
    uint32_t node = root_;
    bool whole = left == copies_;  // behind the last copy there is no leaf to go to
    for (unsigned level = 0; level < height_ && node != NIL; ++level) {
        unsigned at = 0;
        for (; at < fanout(node) && (whole || below(node)[at] <= left); ++at) {
            left -= below(node)[at];
            add_slots(slots_before.data(), slots(node, at));
        }
        if (whole) break;
        node = static_cast<uint32_t>(children(node)[at]);
    }
    if (node != NIL && (!whole || !height_)) {
        for (unsigned i = 0; i < filled(node) && left > 0; ++i) {
            int64_t shown = std::min(left, leaf_counts(node)[i]);
            add_values(slots_before.data(), leaf_row(node, i), shown);
            left -= shown;
        }
    }
    OrderedTotals found;
    found.copies = rank;
    for (unsigned s = 0; s < slot_words_; s += SLOT_WORDS) {
        found.sums.push_back(load_wide(slots_before.data() + s));
        found.known.push_back(slots_before[s + 2]);
    }
    return found;
}

// Changing

OrderedTree::Hint OrderedTree::add(const int64_t* row, int64_t weight) {
    Path path;
    if (root_ != NIL) descend(row, path);
    return add_at(row, weight, path);
}

OrderedTree::Hint OrderedTree::add(const int64_t* row, int64_t weight, const Paths& paths, unsigned number) {
    if (paths.shape != shape_ || root_ == NIL) return add(row, weight);
    Path path;
    std::copy_n(paths.each[number].nodes, height_, path.nodes);
    std::copy_n(paths.each[number].at, height_, path.at);
    path.leaf = paths.each[number].leaf;
    return add_at(row, weight, path);
}

OrderedTree::Hint OrderedTree::add_at(const int64_t* row, int64_t weight, Path& path) {
    int64_t total;
    if (add_overflows(copies_, weight, &total)) throw Overflow();
    if (root_ == NIL) {
        if (weight < 0) throw std::invalid_argument("a row of an ordered map has fewer than no copies");
        path.leaf = root_ = new_leaf(NIL);
    }
    find_place(row, path, weight < 0);
    if (is_at(path, row)) {
        int64_t& here = leaf_counts(path.leaf)[path.place];
        if (here + weight < 0) throw std::invalid_argument("a row of an ordered map has fewer than no copies");
        here += weight;
        count(path, row, weight);
        return {path.leaf, path.place};
    }
    if (weight < 0) throw std::invalid_argument("a row of an ordered map has fewer than no copies");
    while (filled(path.leaf) == leaf_most_) {
        split(path);
        descend(row, path);
        find_place(row, path, false);
    }
    insert_at(path.leaf, path.place, row);
    leaf_counts(path.leaf)[path.place] = weight;
    ++size_;
    count(path, row, weight);
    return {path.leaf, path.place};
}

void OrderedTree::erase_if_gone(const int64_t* row, Hint hint) noexcept {
    if (root_ == NIL) return;
    if (previous(hint.leaf) != FREED && filled(hint.leaf) > leaf_most_ / 4) {
        unsigned place = find_in(hint.leaf, row, hint.place);
        if (place < filled(hint.leaf)) {
            if (leaf_counts(hint.leaf)[place]) return;
            remove_at(hint.leaf, place);
            --size_;
            return;
        }
    }
    Path path;
    descend(row, path);
    find_place(row, path, true);
    if (!is_at(path, row) || leaf_counts(path.leaf)[path.place]) return;
    remove_at(path.leaf, path.place);
    --size_;
    shrink(path);
}

// Adds copies to what is known on the way to their leaf.
void OrderedTree::count(const Path& path, const int64_t* row, int64_t weight) noexcept {
    copies_ += weight;
    for (unsigned level = 0; level < height_; ++level) {
        below(path.nodes[level])[path.at[level]] += weight;
        if (slot_words_) add_values(slots(path.nodes[level], path.at[level]), row, weight);
    }
}

// A sum has 128 bits: the copies of all rows fit 64, and so does each value.
void OrderedTree::add_values(int64_t* slots, const int64_t* row, int64_t weight) const noexcept {
    for (unsigned each : summed_) {
        int64_t value = keys_.code(row, each);
        if (value != NULL_CODE) {
            store_wide(slots, load_wide(slots) + static_cast<Wide>(value) * weight);
            slots[2] += weight;
        }
        slots += SLOT_WORDS;
    }
}

void OrderedTree::insert_at(uint32_t leaf, unsigned place, const int64_t* row) noexcept {
    unsigned n = filled(leaf);
    int64_t* counts = leaf_counts(leaf);
    std::memmove(counts + place + 1, counts + place, (n - place) * sizeof(int64_t));
    std::memmove(leaf_row(leaf, place + 1), leaf_row(leaf, place), size_t{n - place} * words_ * sizeof(int64_t));
    std::copy_n(row, words_, leaf_row(leaf, place));
    leaves_.at(leaf)[0] = n + 1;
}

void OrderedTree::remove_at(uint32_t leaf, unsigned place) noexcept {
    unsigned n = filled(leaf);
    int64_t* counts = leaf_counts(leaf);
    std::memmove(counts + place, counts + place + 1, (n - place - 1) * sizeof(int64_t));
    std::memmove(leaf_row(leaf, place), leaf_row(leaf, place + 1), size_t{n - place - 1} * words_ * sizeof(int64_t));
    leaves_.at(leaf)[0] = n - 1;
}

}  // namespace ivme
