// Rows that are added behind those that are there: a whole batch by column, on several threads if they like, or one
// row.
#include <algorithm>

#include "errors.hpp"
#include "heap.hpp"

namespace ivme {

namespace {

// Columns of one part; they take about as long as its key does to be found a place.
constexpr unsigned COLUMNS_OF_PART = 4;
constexpr size_t MANY = 32, BLOCK_OF_KEYS = 256;

}  // namespace

bool Heap::begin_append(const int64_t* weights, size_t n) {
    if (!is_kept_ || (indexed_ && !keyed_)) return false;
    int64_t most = 0;
    for (size_t row = 0; row < n; ++row) {
        if (weights[row] <= 0) return false;
        most = std::max(most, weights[row]);
    }
    if (!indexed_ && !weigh(weights, n, most)) return false;
    changes_ += n;
    return true;
}

unsigned Heap::append_parts() const {
    if (!is_kept_) return 1;
    auto others = indexed_ ? arity() - static_cast<unsigned>(key_.size()) : arity();
    return 1 + (others + COLUMNS_OF_PART - 1) / COLUMNS_OF_PART;
}

void Heap::append_part(unsigned part, const int64_t* const* columns, const int64_t* weights, size_t n) {
    if (!part) return append_first(columns, weights, n);
    unsigned begin = (part - 1) * COLUMNS_OF_PART, end = begin + COLUMNS_OF_PART, number = 0;
    for (unsigned c = 0; c < arity(); ++c) {
        if (is_of_index(c)) continue;
        if (number >= begin && number < end) append_column(c, columns[c], n);
        ++number;
    }
}

bool Heap::is_of_index(unsigned column) const {
    return indexed_ && std::find(key_.begin(), key_.end(), column) != key_.end();
}

void Heap::append_column(unsigned column, const int64_t* codes, size_t n) {
    columns_[column].prepare(codes, n);
    columns_[column].append(codes, n);
}

// A row that has a weight is in the index, so that `roll_back` knows those before a key that is refused.
void Heap::append_first(const int64_t* const* columns, const int64_t* weights, size_t n) {
    if (weights_.size() + n >= NIL) throw Capacity("a table cannot have more than 4 billion rows");
    weights_.prepare(weights, n);
    size_t rows = n;
    if (indexed_) {
        size_t in_order = rows_in_order(columns, 0, weights, n);
        if (in_order < n) index_.reserve(index_.size() + n - in_order);
        for (unsigned column : key_) append_column(column, columns[column], n);
        ordered_ += in_order;
        rows = index_rows(columns, weights, in_order, n);
    }
    weights_.append(weights, rows);
    live_ += rows - static_cast<size_t>(std::count(weights, weights + rows, 0));
    ++version;
    if (rows < n) refuse("unique", columns, rows, false);
}

// How many of some rows have keys in order, behind all that are there; few of many are not worth it.
size_t Heap::rows_in_order(const int64_t* const* columns, size_t first, const int64_t* weights, size_t n) const {
    if (!keyed_ || ordered_ != weights_.size() || !n || weights[0] != 1) return 0;
    if (ordered_ && !is_less(ordered_ - 1, given(columns, first))) return 0;
    size_t row = 1;
    for (bool is_whole = true; is_whole && row < n;) {
        bool follows[BLOCK_OF_KEYS] = {};
        size_t count = std::min(BLOCK_OF_KEYS, n - row);
        for (size_t i = key_.size(); i-- > 0;) compare_with_next(columns[key_[i]] + first + row - 1, count, follows);
        size_t in_order = 0;
        while (in_order < count && follows[in_order] && weights[row + in_order] == 1) ++in_order;
        row += in_order;
        is_whole = in_order == count;
    }
    return row == n || row >= MANY ? row : 0;
}

// How many rows have a new key, from the first that is not in order up to the first that has not.
size_t Heap::index_rows(const int64_t* const* columns, const int64_t* weights, size_t first, size_t n) {
    uint32_t tags[MANY];
    auto next = static_cast<uint32_t>(weights_.size() + first);
    for (size_t start = first; start < n; start += MANY) {
        size_t count = std::min(MANY, n - start);
        for (size_t i = 0; i < count; ++i) {
            tags[i] = tag(given(columns, start + i));
            index_.prefetch(tags[i]);
        }
        for (size_t i = 0; i < count; ++i, ++next) {
            if (!weights[start + i]) continue;
            if (weights[start + i] > 1 || find(given(columns, start + i), tags[i]) != NIL) return start + i;
            index_.insert(tags[i], next);
        }
    }
    return n;
}

void Heap::append_all(const int64_t* const* columns, const int64_t* weights, size_t n) {
    for (unsigned part = append_parts(); part-- > 0;) append_part(part, columns, weights, n);
}

void Heap::append(const int64_t* const* columns, size_t row, int64_t weight) {
    if (weights_.size() + 1 >= NIL) throw Capacity("a table cannot have more than 4 billion rows");
    for (unsigned c = 0; c < arity(); ++c) columns_[c].prepare(columns[c] + row, 1);
    weights_.prepare(&weight, 1);
    for (unsigned c = 0; c < arity(); ++c) columns_[c].append(columns[c] + row, 1);
    weights_.append(&weight, 1);
    ++live_;
    ++version;
}

}  // namespace ivme
