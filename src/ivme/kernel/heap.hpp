// The rows of a table as columns with row numbers.
//
// Rows are appended; a row that is deleted is marked by a weight of zero, and its place is given back when most are.
// A primary key is an index to row numbers: as long as rows come in the order of their keys, as numbered ones and those
// of a log do, they are searched, and from the first that does not, hashed. Without a key, equal rows may lie in
// several places until a delete, or a question for one row, first needs the hash over whole rows; from then on each row
// lies in one place.
//
// A column of strings that nobody reads may have loose ones (see Dictionary): rows are then compared by what the
// strings are, not by their codes. Who reads such a column has its strings entered first.
//
// A table that is not kept only counts the rows that pass: it has no row to look for, and nothing to read.
//
// Between two commits everything can be undone without memory: rows from `base_` on are new, and the old weights of
// others are logged.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "codes.hpp"
#include "dictionary.hpp"
#include "hash.hpp"
#include "narrow_column.hpp"

namespace ivme {

class Heap {
public:
    // Without key columns a row has no key. Rows that are not kept have none.
    Heap(unsigned columns, std::vector<unsigned> key, const Seed& seed, bool is_kept = true);

    bool is_kept() const { return is_kept_; }

    unsigned arity() const { return static_cast<unsigned>(columns_.size()); }
    // How many rows there are; equal ones that lie in several places count for each. Of rows that are not kept, how
    // many have passed.
    uint64_t size() const { return live_; }
    size_t high() const { return weights_.size(); }
    const NarrowColumn& column(unsigned i) const { return columns_[i]; }
    const NarrowColumn& weights() const { return weights_; }
    // Whether each row lies in one place.
    bool is_distinct() const { return indexed_; }

    // Adds rows, each with its weight, which is positive or negative; what counts is the sum for each row. Throws
    // BrokenCheck("unique") for a second row of a key, and, unless weights may become negative, BrokenCheck("present")
    // for a delete of more than is there. What it did before an error is undone by `roll_back`.
    void add(const int64_t* const* columns, const int64_t* weights, size_t n, bool may_be_negative);

    // Rows that only come may be added by several threads, each some of `append_parts()` parts, in any order: the first
    // is the key with its index and the weights, the others are columns. False if these rows may not be; else all parts
    // have to be added, or rolled back.
    bool begin_append(const int64_t* weights, size_t n);
    unsigned append_parts() const;
    void append_part(unsigned part, const int64_t* const* columns, const int64_t* weights, size_t n);

    // From now on the column may have loose strings of this dictionary; false if it cannot. No string may be added to
    // the dictionary while rows are added, looked up, committed or rolled back.
    bool let_be_loose(unsigned column, Dictionary* dictionary);
    // Whether the strings of a column are the same if, and only if, their codes are.
    bool is_entered(unsigned column) const { return !loose_[column] || entered_[column] >= high(); }
    // Makes them so from one place to another; the caller has the dictionary for itself.
    void enter(unsigned column, size_t first, size_t end);
    Dictionary* loose(unsigned column) const { return loose_[column]; }
    // Whether rows that come may be compared by strings that are loose; those that go are.
    bool compares_strings() const { return has_loose_ && !keyed_; }

    // The weight of a row.
    int64_t get(const int64_t* row);

    // The number of the row that has a key, given by its columns in the order of the table's; NIL if there is none.
    // Without a primary key, the key is the whole row.
    uint32_t find_key(const int64_t* const* key, size_t row) const {
        auto word = [&](unsigned i) { return key[i][row]; };
        return find(word, tag(word));
    }
    size_t key_columns() const { return key_.size(); }

    // How many rows have been added or taken away so far, those of changes that were undone among them.
    uint64_t changes() const { return changes_; }

    // How often rows got other numbers; between two changes of this, a number is the same row, or none.
    uint64_t moves() const { return moves_; }

    // From here on each row lies in one place, and is found in constant time.
    void make_index();

    void commit() noexcept;
    void roll_back() noexcept;
    // Forgets all rows; there is nothing to undo.
    void clear() noexcept;

    // Marks the codes that rows have.
    void mark_codes(CodeMarks& marks);
    // So many rows came since codes were marked, whose codes are known to be held.
    void hold_codes(size_t rows) { marked_size_ += rows; }
    // How many rows fewer there are than when codes were last marked, if there were any.
    uint64_t shrunk() const { return marked_size_ > live_ ? marked_size_ - live_ : 0; }
    uint64_t marked_size() const { return marked_size_; }

    size_t bytes() const;
    // Of the rows and their weights, wherever they lie.
    uint64_t digest(uint64_t salt) const;
    // Throws std::logic_error if the index does not say what the rows say.
    void verify() const;

    uint64_t version = 0;
    unsigned users = 0;

private:
    void pass(const int64_t* const* columns, const int64_t* weights, size_t n);
    void append(const int64_t* const* columns, size_t row, int64_t weight);
    void net(const int64_t* const* columns, const int64_t* weights, size_t n);
    bool weigh(const int64_t* weights, size_t n, int64_t most);
    void append_all(const int64_t* const* columns, const int64_t* weights, size_t n);
    void append_first(const int64_t* const* columns, const int64_t* weights, size_t n);
    void append_column(unsigned column, const int64_t* codes, size_t n);
    size_t rows_in_order(const int64_t* const* columns, size_t first, const int64_t* weights, size_t n) const;
    size_t index_rows(const int64_t* const* columns, const int64_t* weights, size_t first, size_t n);
    bool is_of_index(unsigned column) const;
    void cut(size_t end) noexcept;
    void prefetch(uint32_t id) const;
    void insert(const int64_t* const* columns, size_t row, uint32_t hashed, int64_t weight, bool may_be_negative);
    void remove(const int64_t* const* columns, size_t row, uint32_t hashed, int64_t weight);
    template <class Work>
    void each(const int64_t* const* columns, const int64_t* weights, size_t n, int sign, Work work);
    void reweigh(uint32_t id, uint32_t hashed, int64_t weight);
    void settle() noexcept;
    void compact() noexcept;
    void shrink() noexcept;

    // A row of the heap, and a row that is given, by the columns of the index.
    auto stored(uint32_t id) const {
        return [this, id](unsigned i) { return columns_[key_[i]][id]; };
    }
    auto given(const int64_t* const* columns, size_t row) const {
        return [this, columns, row](unsigned i) { return columns[key_[i]][row]; };
    }
    template <class Word>
    uint32_t tag(Word word) const {
        auto n = static_cast<unsigned>(key_.size());
        if (keyed_ || !has_loose_) return seed_.tag_of(n, word);
        return seed_.tag_of(n, [&](unsigned i) { return content(key_[i], word(i)); });
    }
    template <class Word>
    uint32_t find(Word word, uint32_t tag) const {
        uint32_t found = index_.find(tag, [&](uint32_t id) { return is_key(id, word); });
        return found == NIL && ordered_ ? search(word) : found;
    }
    // The same among rows that lie in the order of their keys: from where it should be if keys were evenly spread, in
    // growing steps to one side, and then by halves.
    template <class Word>
    uint32_t search(Word word) const {
        size_t low = 0, high = ordered_;  // the first row whose key is not less is one of these, or the last of them
        size_t at = near(word);
        for (size_t step = 1; at < high && is_less(at, word); step *= 2) {
            low = at + 1;
            at = std::min(at + step, ordered_);
        }
        high = at;
        for (size_t step = 1; !low && high > step; step *= 2) {
            size_t middle = high - step;
            if (is_less(middle, word)) {
                low = middle + 1;
                break;
            }
            high = middle;
        }
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (is_less(middle, word)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // Rows that are being added have no weight yet.
        bool is_there = low < ordered_ && (low >= weights_.size() || weights_[low]) && is_key(low, word);
        return is_there ? static_cast<uint32_t>(low) : NIL;
    }
    // By the first column of the key that has several values: a tenant's rows are numbered by the second.
    template <class Word>
    size_t near(Word word) const {
        unsigned i = 0;
        while (i + 1 < key_.size() && columns_[key_[i]][0] == columns_[key_[i]][ordered_ - 1]) ++i;
        const NarrowColumn& column = columns_[key_[i]];
        auto first = static_cast<double>(column[0]), last = static_cast<double>(column[ordered_ - 1]);
        double place = (static_cast<double>(word(i)) - first) / (last - first) * static_cast<double>(ordered_ - 1);
        if (!(place > 0)) return 0;
        return std::min(static_cast<size_t>(std::min(place, 4e9)), ordered_ - 1);
    }
    template <class Word>
    bool is_less(size_t id, Word word) const {
        for (unsigned i = 0; i < key_.size(); ++i) {
            int64_t code = columns_[key_[i]][id], other = word(i);
            if (code != other) return code < other;
        }
        return false;
    }
    template <class Word>
    bool is_key(size_t id, Word word) const {
        for (unsigned i = 0; i < key_.size(); ++i) {
            if (!is_same(key_[i], columns_[key_[i]][id], word(i))) return false;
        }
        return true;
    }
    // What is the same for equal values of a column.
    int64_t content(unsigned column, int64_t code) const {
        return loose_[column] ? static_cast<int64_t>(loose_[column]->digest(code)) : code;
    }
    bool is_same(unsigned column, int64_t a, int64_t b) const {
        return a == b || (has_loose_ && loose_[column] && loose_[column]->are_equal(a, b));
    }
    bool is_row(uint32_t id, const int64_t* const* columns, size_t row) const;
    [[noreturn]] void refuse(const char* check, const int64_t* const* columns, size_t row, bool whole) const;

    std::vector<NarrowColumn> columns_;
    std::vector<Dictionary*> loose_;  // by column, if it may have loose strings
    std::vector<size_t> entered_;     // no place of a column before this one has a loose string
    bool has_loose_ = false;
    NarrowColumn weights_{NarrowColumn::FromZero()};
    std::vector<unsigned> key_;  // the columns that the index is on: the primary key's, or all
    bool is_kept_;
    bool keyed_;
    bool indexed_;
    Seed seed_;
    IdTable index_;       // of rows from `ordered_` on
    size_t ordered_ = 0;  // so many of the first rows, gone ones among them, lie in the order of their keys
    uint64_t live_ = 0;
    int64_t mass_ = 0;  // without an index, the weights of all rows together: no row can have more
    uint64_t marked_size_ = 0;
    uint64_t moves_ = 0;
    uint64_t changes_ = 0;
    size_t base_ = 0;  // rows from here on came after the last commit
    int64_t base_mass_ = 0;
    uint64_t base_live_ = 0;    // how many there were then
    Array<int64_t> reweighed_;  // since then: a row before `base_` and its weight then, by pairs
};

}  // namespace ivme
