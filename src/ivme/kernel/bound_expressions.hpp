// A compiled expression as Python holds it.
#pragma once

#include <mutex>

#include "bind.hpp"
#include "expression.hpp"
#include "workers.hpp"

namespace ivme {

using States = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline nb::object array_of(const std::vector<int64_t>& numbers) {
    Array<int64_t> copied;
    copied.resize(numbers.size());
    std::copy(numbers.begin(), numbers.end(), copied.data());
    return to_numpy(std::move(copied), numbers.size());
}

inline nb::object tuple_of(const std::vector<int64_t>& words) {
    PyObject* made = PyTuple_New(static_cast<Py_ssize_t>(words.size()));
    if (!made) throw nb::python_error();
    nb::object whole = nb::steal(made);
    for (size_t i = 0; i < words.size(); ++i) {
        PyObject* item = PyLong_FromLongLong(words[i]);
        if (!item) throw nb::python_error();
        PyTuple_SET_ITEM(made, static_cast<Py_ssize_t>(i), item);
    }
    return whole;
}

// The caller holds the lock of the database whose codes a program reads, except in `compute_beside`.
class Expressions {
public:
    Expressions(unsigned inputs, std::string kinds, unsigned outputs, unsigned foreign, const nb::list& tables,
                const nb::list& members, const nb::list& dictionaries,
                const std::vector<ExpressionProgram::Spec>& instructions)
        : program_(inputs, std::move(kinds), outputs, foreign) {
        for (nb::handle table : tables) program_.tables.push_back(&nb::cast<CodeTable&>(table));
        for (nb::handle each : members) {
            auto [codes, has_null] = nb::cast<std::pair<std::vector<int64_t>, bool>>(each);
            std::sort(codes.begin(), codes.end());
            program_.members.push_back({std::move(codes), has_null});
        }
        for (nb::handle each : dictionaries) program_.dictionaries.push_back(dictionary_of(each));
        for (const ExpressionProgram::Spec& each : instructions) program_.add(each);
        kept_ = nb::make_tuple(tables, dictionaries);
    }

    void set_constant(unsigned number, int64_t low, int64_t high) {
        std::lock_guard guard(changing_);
        program_.set_constant({number, {low, high}});
        ++constants_;
    }
    // Whether the codes of constants are those that their values have.
    bool is_current() const { return is_current_; }
    void set_current(bool is_current) {
        is_current_ = is_current;
        ++constants_;
    }
    // Another number whenever they may be others.
    uint64_t constants() const { return constants_; }

    // The outputs, a row each; the rows that are doubtful; and None, or the rows that are missing of foreign columns.
    // If anything is missing, here or in a table, the rest counts for nothing.
    nb::tuple run(const std::vector<Codes>& columns, size_t n, const std::vector<std::pair<Codes, States>>& foreign) {
        ExpressionRun run;
        for (const Codes& column : columns) {
            if (column.size() < n) throw std::invalid_argument("a column is too short");
            run.columns.push_back(column.data());
        }
        for (const auto& [values, states] : foreign) {
            if (values.size() < n || states.size() < n) throw std::invalid_argument("a foreign column is too short");
            run.foreign.push_back({values.data(), states.data()});
        }
        Array<int64_t> found;
        found.resize(program_.outputs() * n);
        for (size_t i = 0; i < program_.outputs(); ++i) run.outputs.push_back(found.data() + i * n);
        auto held = hold();
        {
            // Few rows take less time than letting the GIL go.
            std::unique_ptr<nb::gil_scoped_release> release;
            if (n > MANY) release = std::make_unique<nb::gil_scoped_release>();
            program_.run(run, n);
        }
        nb::object missing = nb::none();
        if (!run.complete) {
            nb::list rows;
            for (const auto& each : run.missing) rows.append(array_of(each));
            missing = std::move(rows);
        }
        return nb::make_tuple(as_rows(std::move(found), n), array_of(run.doubtful), missing);
    }

    // A row's codes and behind them the outputs; None if anything is missing or doubtful.
    nb::object run_row(nb::handle codes) {
        if (!PyTuple_Check(codes.ptr())) throw nb::type_error("the codes of a row are a tuple");
        auto n = static_cast<size_t>(PyTuple_GET_SIZE(codes.ptr()));
        std::vector<int64_t> row(n + program_.outputs());
        for (size_t i = 0; i < n; ++i) {
            row[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(codes.ptr(), static_cast<Py_ssize_t>(i)));
            if (row[i] == -1 && PyErr_Occurred()) throw nb::python_error();
        }
        return complete(row.data(), n) ? tuple_of(row) : nb::none();
    }

    // Writes the outputs behind the `n` codes of a row; false if anything is missing or doubtful, or if the codes of
    // constants have to be found anew.
    bool complete(int64_t* words, size_t n) {
        if (!is_current_ || program_.foreign()) return false;
        one_.columns.clear();
        one_.outputs.clear();
        for (size_t i = 0; i < n; ++i) one_.columns.push_back(words + i);
        for (size_t i = 0; i < program_.outputs(); ++i) one_.outputs.push_back(words + n + i);
        one_.doubtful.clear();
        one_.complete = true;
        {
            auto held = hold();
            program_.run(one_, 1);
        }
        if (!one_.complete) withdraw();
        return one_.complete && one_.doubtful.empty();
    }

    // The outputs for the rows of whole columns, one behind the other; false as before. Without the GIL. Tables note
    // what they lack, and are for one thread.
    bool compute(const std::vector<const int64_t*>& columns, size_t n, Array<int64_t>& found, unsigned threads = 1) {
        if (!is_current_ || program_.foreign()) return false;
        size_t piece = threads > 1 && program_.tables.empty() ? PIECE : std::max<size_t>(n, 1);
        std::vector<ExpressionRun> runs((n + piece - 1) / piece);
        bool is_whole;
        {
            Held held = hold_strings();
            is_whole = compute(columns, n, found, threads, piece, runs);
        }
        if (!std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.complete; })) withdraw();
        return is_whole;
    }

    // The same without the lock of the database, by `constants`. Tables note nothing. No codes of its strings are taken
    // back from when it asks whether those of the columns `are_outdated`.
    template <class Outdated>
    bool compute_beside(const std::vector<const int64_t*>& columns, size_t n, Array<int64_t>& found,
                        uint64_t& constants, Outdated are_outdated) {
        Held held = hold_strings();  // first, as those do who note what a table lacks
        if (are_outdated()) return false;
        for (CodeTable* table : program_.tables) held.emplace_back(table->mutex);
        std::shared_lock guard(changing_);
        if (!is_current_ || program_.foreign()) return false;
        constants = constants_;
        std::vector<ExpressionRun> runs(1);
        runs[0].requests = false;
        return compute(columns, n, found, 1, std::max<size_t>(n, 1), runs);
    }

    size_t outputs() const { return program_.outputs(); }

    void withdraw() {
        for (CodeTable* table : program_.tables) table->withdraw();
    }

private:
    using Held = std::vector<std::shared_lock<std::shared_mutex>>;
    static constexpr size_t MANY = 1 << 14;
    static constexpr size_t PIECE = 2 * EXPRESSION_CHUNK;  // rows that take longer than to call for help

    nb::object as_rows(Array<int64_t> found, size_t n) const {
        auto* owned = new Array<int64_t>(std::move(found));
        nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Array<int64_t>*>(p); });
        static int64_t nothing = 0;
        int64_t* data = owned->data() ? owned->data() : &nothing;
        return nb::cast(nb::ndarray<nb::numpy, int64_t>(data, {program_.outputs(), n}, owner));
    }

    bool compute(const std::vector<const int64_t*>& columns, size_t n, Array<int64_t>& found, unsigned threads,
                 size_t piece, std::vector<ExpressionRun>& runs) {
        found.resize(program_.outputs() * n);
        in_parallel(threads, runs.size(), [&](size_t number) {
            size_t first = number * piece;
            for (const int64_t* column : columns) runs[number].columns.push_back(column + first);
            for (size_t i = 0; i < program_.outputs(); ++i) {
                runs[number].outputs.push_back(found.data() + i * n + first);
            }
            program_.run(runs[number], std::min(piece, n - first));
        });
        return std::all_of(runs.begin(), runs.end(), [](const auto& r) { return r.complete && r.doubtful.empty(); });
    }

    // Without the GIL.
    Held hold_strings() const {
        Held held;
        for (const Dictionary* dictionary : program_.dictionaries) held.emplace_back(dictionary->mutex);
        return held;
    }
    // The GIL is released while waiting: the holder of the strings may need it.
    Held hold() const {
        Held held;
        for (const Dictionary* dictionary : program_.dictionaries) {
            std::shared_lock<std::shared_mutex> lock(dictionary->mutex, std::try_to_lock);
            if (!lock.owns_lock()) {
                nb::gil_scoped_release release;
                lock.lock();
            }
            held.push_back(std::move(lock));
        }
        return held;
    }

    ExpressionProgram program_;
    std::shared_mutex changing_;  // the constants
    std::atomic<bool> is_current_ = false;
    std::atomic<uint64_t> constants_ = 0;
    nb::object kept_;
    ExpressionRun one_;
};

}  // namespace ivme
