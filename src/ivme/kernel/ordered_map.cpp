#include "ordered_map.hpp"

#include <algorithm>

namespace ivme {

namespace {

// Calls visit(row, weight, paths, number) for rows that are given by column, a block at a time, with the ways to them
// that were found before the block. Where strings are compared, in their
// order: neighbours are compared with the same ones.
template <class Visit>
void each_row(const OrderedTree& tree, const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n,
              Visit visit) {
    const OrderedKeys& keys = tree.keys();
    size_t words = keys.words();
    Array<int64_t> rows;
    Array<uint32_t> order;
    if (n > NIL) throw Capacity("a batch cannot have more than 4 billion rows");
    rows.resize(n * words + 1);
    order.resize(n);
    for (size_t i = 0; i < n; ++i) {
        keys.encode([&](unsigned column) { return columns[column][i]; }, keys.arity(), rows.data() + i * words);
        order[i] = static_cast<uint32_t>(i);
    }
    auto row = [&](uint32_t i) { return rows.data() + size_t{i} * words; };
    auto is_before = [&](uint32_t a, uint32_t b) { return keys.compare(row(a), row(b), keys.words()) < 0; };
    if (keys.has_strings()) std::sort(order.data(), order.data() + n, is_before);
    OrderedTree::Paths paths;
    for (size_t start = 0; start < n; start += OrderedTree::BLOCK) {
        auto count = static_cast<unsigned>(std::min<size_t>(OrderedTree::BLOCK, n - start));
        const int64_t* block[OrderedTree::BLOCK];
        for (unsigned i = 0; i < count; ++i) block[i] = row(order[start + i]);
        tree.find(block, count, paths);
        for (unsigned i = 0; i < count; ++i) {
            if (weights[order[start + i]]) visit(block[i], weights[order[start + i]], paths, i);
        }
    }
}

}  // namespace

// A few rows begin alike by chance.
void OrderedMap::learn(const std::vector<const int64_t*>& columns, size_t n) {
    constexpr size_t ENOUGH = 64;
    if (n >= ENOUGH && !tree_.size() && !log_.size()) tree_.learn(columns, n);
}

void OrderedMap::apply(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n) {
    learn(columns, n);
    log_.reserve(log_.size() + n * record());
    each_row(tree_, columns, weights, n,
             [&](const int64_t* row, int64_t weight, const Paths& paths, unsigned i) { add(row, weight, paths, i); });
}

void OrderedMap::apply(const std::vector<const int64_t*>& columns, const int64_t* weights, size_t n,
                       const OrderedWindow& window, Delta& moved) {
    learn(columns, n);
    log_.reserve(log_.size() + n * record());
    each_row(tree_, columns, weights, n, [&](const int64_t* row, int64_t weight, const Paths& paths, unsigned i) {
        change(row, weight, paths, i, window, moved);
    });
}

// The log has room.
void OrderedMap::add(const int64_t* row, int64_t weight, const Paths& paths, unsigned number) {
    tree_.reserve();
    OrderedTree::Hint hint = tree_.add(row, weight, paths, number);
    size_t end = log_.size(), words = keys().words();
    log_.resize(end + record());
    std::copy_n(row, words, log_.data() + end);
    log_[end + words] = weight;
    log_[end + words + 1] = static_cast<int64_t>(uint64_t{hint.leaf} << 32 | hint.place);
}

OrderedTree::Hint OrderedMap::hint_of(const int64_t* record) const noexcept {
    auto packed = static_cast<uint64_t>(record[keys().words() + 1]);
    return {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
}

void OrderedMap::erase_logged(bool only_taken) noexcept {
    constexpr size_t AHEAD = 8;
    size_t words = keys().words();
    for (size_t at = 0; at < log_.size(); at += record()) {
        size_t coming = at + AHEAD * record();
        if (coming < log_.size()) tree_.prefetch(hint_of(log_.data() + coming));
        const int64_t* row = log_.data() + at;
        if (!only_taken || row[words] < 0) tree_.erase_if_gone(row, hint_of(row));
    }
    log_.trim(size_t{1} << 18);
}

// Rows without copies go: only what was taken away may be one.
void OrderedMap::commit() noexcept { erase_logged(true); }

// All rows that changed are still there, so that no node has to be made; then those go that were not there before.
void OrderedMap::roll_back() noexcept {
    size_t words = keys().words();
    for (size_t at = log_.size(); at; at -= record()) {
        const int64_t* row = log_.data() + at - record();
        tree_.add(row, -row[words]);
    }
    erase_logged(false);
}

// Where the window of a group ends, whose copies have the ranks from `start` up to `stop`.
int64_t OrderedMap::end_of(int64_t start, int64_t stop, const OrderedWindow& window) const {
    unsigned words = keys().words_of(window.ordered_by);
    auto behind = [&](int64_t rank) {  // all that are like the copy of a rank
        int64_t end = rank;
        tree_.scan(rank, rank + 1, [&](const int64_t* row, int64_t) { end = tree_.rank(row, words, true); });
        return end;
    };
    if (window.ties == OrderedWindow::DENSE) {
        if (window.limit >= stop - start) return stop;  // there are no more values than copies
        int64_t end = start;
        for (int64_t values = 0; values < window.limit && end < stop; ++values) end = behind(end);
        return end;
    }
    if (window.offset + window.limit >= stop - start) return stop;
    int64_t end = start + window.offset + window.limit;
    return window.ties == OrderedWindow::LIKE_LAST && window.limit ? behind(end - 1) : end;
}

std::pair<int64_t, int64_t> OrderedMap::shown(const int64_t* group, const OrderedWindow& window) const {
    unsigned words = keys().words_of(groups_);
    int64_t start = tree_.rank(group, words, false), stop = tree_.rank(group, words, true);
    int64_t end = end_of(start, stop, window);
    return {std::min(start + std::min(window.offset, stop - start), end), end};
}

void OrderedMap::all_shown(const OrderedWindow& window, Array<int64_t>& first, Array<int64_t>& last) const {
    unsigned words = keys().words_of(groups_);
    for (int64_t start = 0, stop = 0; start < tree_.copies(); start = stop) {
        tree_.scan(start, start + 1, [&](const int64_t* row, int64_t) { stop = tree_.rank(row, words, true); });
        int64_t end = end_of(start, stop, window);
        first.push(std::min(start + std::min(window.offset, stop - start), end));
        last.push(end);
    }
}

// Adds copies of a row, and appends what moves. With the copies the group is larger by `much`; in the ranks of the
// group without them (the small one), the window of the large one is two spans, around the place where the copies are.
void OrderedMap::change(const int64_t* row, int64_t weight, const Paths& paths, unsigned number,
                        const OrderedWindow& window, Delta& moved) {
    unsigned group = keys().words_of(groups_);
    int64_t start = tree_.rank(row, group, false), stop = tree_.rank(row, group, true);
    int64_t place = tree_.rank(row, keys().words(), false);
    bool grows = weight > 0;
    int64_t much = grows ? weight : -weight;
    if (window.ties != OrderedWindow::DENSE && place - start >= window.offset + window.limit) {
        // A row that is like the last one shown is right behind it.
        if (window.ties == OrderedWindow::NONE || place > end_of(start, stop, window)) {
            add(row, weight, paths, number);
            return;
        }
    }
    auto span = [&](int64_t end) { return std::pair{start + std::min(window.offset, end - start), end}; };
    auto before = span(end_of(start, stop, window));
    add(row, weight, paths, number);
    auto after = span(end_of(start, stop + weight, window));
    auto [small_first, small_last] = grows ? before : after;
    auto [large_first, large_last] = grows ? after : before;
    int64_t spans[2][2] = {{large_first, std::min(large_last, place)},
                           {std::max(large_first - much, place), large_last - much}};
    int64_t edges[6] = {small_first, small_last, spans[0][0], spans[0][1], spans[1][0], spans[1][1]};
    std::sort(edges, edges + 6);
    auto within = [](int64_t rank, int64_t first, int64_t last) { return first <= rank && rank < last; };
    auto append = [&](const int64_t* found, int64_t copies) {
        size_t at = moved.extend(1);
        for (unsigned i = 0; i < keys().arity(); ++i) moved.columns[i][at] = keys().code(found, i);
        moved.payload(at)[0] = copies;
    };
    auto move = [&](int64_t first, int64_t last, int64_t sign) {
        tree_.scan(first, last, [&](const int64_t* found, int64_t copies) { append(found, sign * copies); });
    };
    for (unsigned i = 0; i + 1 < 6; ++i) {
        int64_t first = edges[i], last = edges[i + 1];
        if (first == last) continue;
        bool in_small = within(first, small_first, small_last);
        bool in_large = within(first, spans[0][0], spans[0][1]) || within(first, spans[1][0], spans[1][1]);
        if (in_small == in_large) continue;
        int64_t sign = in_large == grows ? 1 : -1, shift = grows ? much : 0;
        move(first, std::min(last, place), sign);
        move(std::max(first, place) + shift, last + shift, sign);
    }
    int64_t inside = std::min(place + much, large_last) - std::max(place, large_first);
    if (inside > 0) append(row, grows ? inside : -inside);
}

}  // namespace ivme
