// The order of an ordered map's entries: rows of codes as words that compare as their values do.
//
// A column whose codes have the order of its values is one word, turned so that plain comparison puts NULL and DESC
// where they belong; the turn can be taken back. One of a dictionary is its code, which is compared by the string,
// behind a word of the string's first bytes if it is ordered by: that decides nearly always, without a look at the
// string. Bytes that all strings of a first batch begin with are skipped, as they decide nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "array.hpp"
#include "string_order.hpp"

namespace ivme {

struct OrderedColumn {
    unsigned column;  // its position in a row
    bool descending;
    bool nulls_first;
    const Dictionary* order;  // null where the order of codes is that of values
    bool prefixed;            // whether the first bytes of its strings are kept beside the code
};

class OrderedKeys {
public:
    // The columns of a row, each once, in the order in which they are compared.
    explicit OrderedKeys(std::vector<OrderedColumn> columns)
        : columns_(std::move(columns)), shared_(columns_.size()), stored_(columns_.size()) {
        for (unsigned i = 0; i < arity(); ++i) {
            const OrderedColumn& column = columns_[i];
            if (column.order && column.prefixed) parts_.push_back({nullptr, i, true});
            stored_[column.column] = {i, words()};
            parts_.push_back({column.order, i, false});
            ends_.push_back(words());
        }
    }

    unsigned arity() const { return count_of(columns_); }
    unsigned words() const { return count_of(parts_); }
    // The words of so many of the first columns.
    unsigned words_of(unsigned columns) const { return columns ? ends_[columns - 1] : 0; }
    const std::vector<OrderedColumn>& columns() const { return columns_; }
    bool has_strings() const {
        return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.order; });
    }

    // Skips what all strings of some rows begin with; while there are no words of rows yet.
    void skip_shared(const std::vector<const int64_t*>& rows, size_t n) {
        for (unsigned i = 0; i < arity(); ++i) {
            const OrderedColumn& column = columns_[i];
            if (column.order && column.prefixed) shared_[i] = shared_start(*column.order, rows[column.column], n);
        }
    }

    // The words of the first columns, in their order; `code` gives the code of a column by its position in a row.
    template <class Code>
    void encode(Code code, unsigned columns, int64_t* words) const {
        for (unsigned i = 0; i < words_of(columns); ++i) words[i] = word(i, code(column_of(i)));
    }

    // The column that a word is made of, by its position in a row; and the word, from the code of that column.
    unsigned column_of(unsigned word) const { return columns_[parts_[word].column].column; }
    int64_t word(unsigned word, int64_t code) const {
        const OrderedColumn& column = columns_[parts_[word].column];
        if (parts_[word].is_prefix) return prefix(code, column, shared_[parts_[word].column]);
        return column.order ? code : turned(code, column);
    }

    // The code of the column at a position, from the words of a row.
    int64_t code(const int64_t* words, unsigned position) const {
        const OrderedColumn& column = columns_[stored_[position].column];
        int64_t word = words[stored_[position].word];
        return column.order ? word : turned_back(word, column);
    }

    // Below, equal or above zero, as the first words of one row are before, like or behind those of another.
    int compare(const int64_t* a, const int64_t* b, unsigned words) const {
        for (unsigned i = 0; i < words; ++i) {
            if (a[i] != b[i]) return is_before(i, a[i], b[i]) ? -1 : 1;
        }
        return 0;
    }

    // Whether one word of a row is before another, which is not like it.
    bool is_before(unsigned word, int64_t a, int64_t b) const {
        const Part& part = parts_[word];
        return part.order ? is_string_before(columns_[part.column], a, b) : a < b;
    }

private:
    // How a word compares, without `order` as a number; the place of its column in the order; and whether it has the
    // first bytes of strings.
    struct Part {
        const Dictionary* order;
        unsigned column;
        bool is_prefix;
    };

    // Where the code of a column is: its place in the order, and its word.
    struct Stored {
        unsigned column;
        unsigned word;
    };

    static bool is_string_before(const OrderedColumn& column, int64_t a, int64_t b) {
        if (a == NULL_CODE) return column.nulls_first;
        if (b == NULL_CODE) return !column.nulls_first;
        return is_less(*column.order, a, b) != column.descending;
    }

    // NULL is the least code: one less is the greatest number, and all others stay in their order.
    static int64_t turned(int64_t code, const OrderedColumn& column) {
        auto word = static_cast<uint64_t>(code);
        if (column.nulls_first == column.descending) --word;
        return static_cast<int64_t>(column.descending ? ~word : word);
    }

    static int64_t turned_back(int64_t turned, const OrderedColumn& column) {
        auto word = static_cast<uint64_t>(turned);
        if (column.descending) word = ~word;
        if (column.nulls_first == column.descending) ++word;
        return static_cast<int64_t>(word);
    }

    static int64_t prefix(int64_t code, const OrderedColumn& column, const std::string& shared) {
        uint64_t bytes = column.nulls_first ? 0 : ~uint64_t{0};
        if (code != NULL_CODE) {
            bytes = prefix_of(*column.order, code, shared);
            if (column.descending) bytes = ~bytes;
        }
        return static_cast<int64_t>(bytes ^ (uint64_t{1} << 63));
    }

    std::vector<OrderedColumn> columns_;
    std::vector<std::string> shared_;  // by place in the order: what the first bytes of strings are behind
    std::vector<Part> parts_;
    std::vector<Stored> stored_;  // by position in a row
    std::vector<unsigned> ends_;  // by place in the order: the words up to its end
};

}  // namespace ivme
