// What a chain of views is made of: the rows that change, the views, and what takes rows to them.
#pragma once

#include <vector>

#include "bound_expressions.hpp"
#include "kept_rows.hpp"

namespace ivme {

// Thrown where Python has to do what was begun.
struct Declined : std::exception {};

// Rows that changed, by column, with their weights; somebody else's memory.
struct RowsSeen {
    std::vector<const int64_t*> columns;
    const int64_t* weights = nullptr;
    size_t n = 0;
};

// Rows that changed, by column, with their weights.
struct ChangedRows {
    std::vector<std::vector<int64_t>> columns;
    std::vector<int64_t> weights;

    size_t n() const { return weights.size(); }
    // Rows behind those that are there: the first columns of a delta, and the counts of its payloads.
    void append(const Delta& delta) {
        for (size_t c = 0; c < columns.size(); ++c) {
            columns[c].insert(columns[c].end(), delta.columns[c].data(), delta.columns[c].data() + delta.n);
        }
        weights.reserve(weights.size() + delta.n);
        for (size_t row = 0; row < delta.n; ++row) weights.push_back(delta.payload(row)[0]);
    }
    void clear(size_t width) {
        columns.resize(width);
        for (auto& column : columns) column.clear();
        weights.clear();
    }
    // Gives back what many rows needed.
    void trim() {
        constexpr size_t MANY = size_t{1} << 14;
        if (weights.capacity() > MANY) *this = ChangedRows();
    }
    void see(RowsSeen& seen) const {
        place(seen.columns);
        seen.weights = weights.data();
        seen.n = n();
    }
    std::vector<const int64_t*> places() const {
        std::vector<const int64_t*> found;
        place(found);
        return found;
    }
    void place(std::vector<const int64_t*>& found) const {
        found.clear();
        for (const auto& column : columns) found.push_back(column.data());
    }
};

// Expressions over rows, if there are any, and what fills in what they lack over some columns: `prepare` says whether
// they turn back no more.
struct ChainExpressions {
    Expressions* program = nullptr;
    PyObject* prepare = nullptr;
};

// A branch of a union over a relation: the expressions that it computes, and where its columns, its test and its factor
// are among the codes of a row and those of the expressions; none if negative.
struct ChainBranch {
    size_t view;
    ChainExpressions expressions;
    std::vector<unsigned> columns;
    int test, factor;
};

// How an aggregate is shown: by the count of a group, an extreme, or what its words in the payload say.
struct ChainValue {
    char kind;              // c, x, n, s, m, d, or f and g for the sum and the mean of floats
    unsigned place, words;  // of the extreme; or of the words, and how many there are
    unsigned present;       // where the number of values that are not NULL is
    int64_t most, factor;
};

// What takes the rows of a relation further.
class RowTaker {
public:
    RowTaker() = default;
    RowTaker(const RowTaker&) = delete;
    RowTaker& operator=(const RowTaker&) = delete;
    virtual ~RowTaker() = default;
    virtual void take(const RowsSeen& rows, bool has_gil) = 0;
    // Gives back what many rows needed.
    virtual void trim() = 0;
};

struct ChainView {
    unsigned width = 0;            // of what is emitted
    std::vector<unsigned> places;  // of what is shown
    bool hides = false;            // rows that are shown may be equal
    bool is_union = false;
    bool is_distinct = false;       // rows are there or not, and `reader` says how often they are
    std::vector<unsigned> numbers;  // columns that must have a number
    RowTaker* readers = nullptr;
    // With aggregates: where a group is found, and the rows as they were.
    KeptRows* kept = nullptr;
    size_t reader = 0;
    std::vector<ChainValue> values;
    std::vector<int64_t> nothing;  // the values of a group of everything that has no rows; empty if there is none

    // Whether the rows of a delta, each there once, are its change as they are.
    bool shows_deltas() const { return !is_union && !is_distinct && !kept && !hides; }

    ChangedRows emitted, netted, rows, shown;
    const Delta* lent = nullptr;  // all that was emitted, in a register of its trigger, in the place of `emitted`
    RowsSeen seen;
    bool is_net = true;  // whether no row was emitted twice: a single delta has each row once
    Delta sums, compared;
    NewRows now;
    std::vector<std::vector<int64_t>> codes;
    bool is_changed = false;
    // For those who follow it: the columns that are shown and the weights, if they are told and changed.
    bool is_told = false;
    std::vector<Array<int64_t>> told;
};

}  // namespace ivme
