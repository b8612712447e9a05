// Rows in one call: encoded, computed and taken through all triggers, where nothing but the kernel has to know of them.
#pragma once

#include "bound_expressions.hpp"
#include "row_encoder.hpp"
#include "state_lock.hpp"

namespace ivme {

struct RowRun {
    size_t trigger;
    std::vector<unsigned> places;
};

// The way of one row of a table: its codes, the expressions over them, and the triggers that it goes through, each with
// the places of the codes that it wants.
class RowPath {
public:
    // `compute` takes a row's codes where the expressions turn back, and returns all codes, or None.
    RowPath(Kernel& kernel, const nb::list& columns, const nb::object& expressions, nb::object compute,
            const nb::list& runs)
        : kernel_(kernel), encoder_(columns), compute_(std::move(compute)), kept_(expressions) {
        if (!expressions.is_none()) expressions_ = &nb::cast<Expressions&>(expressions);
        for (nb::handle run : runs) {
            auto [trigger, places] = nb::cast<std::pair<size_t, std::vector<unsigned>>>(run);
            for (unsigned place : places) {
                if (place >= width()) throw std::invalid_argument("a row lacks codes");
            }
            runs_.push_back({trigger, std::move(places)});
        }
    }

    size_t width() const { return encoder_.arity() + (expressions_ ? expressions_->outputs() : 0); }

    // The codes of a row and of the expressions over it, for `run`; None if the batch path has to take it.
    nb::object encode(nb::handle row) {
        Words words;
        return encoded(row, words) ? tuple_of(words) : nb::none();
    }

    // All triggers or none, and none if a stored sum would not fit its type.
    void run(nb::handle codes, int64_t weight) {
        Words words;
        read(codes, words);
        run_columns(words.data(), 1, &weight);
    }

    // A row as a transaction of its own; false if the batch path has to take it, which knows why.
    bool apply(nb::handle row, int64_t weight) {
        Words words;
        return encoded(row, words) && try_run(words.data(), 1, &weight);
    }

    // The rows of a list as one transaction, each with this weight; false as before.
    bool apply_all(const nb::list& rows, int64_t weight) {
        size_t n = nb::len(rows);
        Words words, columns(width() * n);
        for (size_t row = 0; row < n; ++row) {
            // Encoding may call functions of users, who may have changed the list.
            if (row >= nb::len(rows) || !encoded(nb::object(rows[row]), words)) return false;
            for (size_t i = 0; i < words.size(); ++i) columns[i * n + row] = words[i];
        }
        return nb::len(rows) == n && try_run(columns.data(), n, Words(n, weight).data());
    }

private:
    using Words = std::vector<int64_t>;

    bool encoded(nb::handle row, Words& words) {
        std::vector<PyObject*> values;
        std::vector<nb::object> owned;
        words.resize(width());
        if (!encoder_.values(row, values, owned) || !encoder_.encode(values, words.data())) return false;
        if (!expressions_ || expressions_->complete(words.data(), encoder_.arity())) return true;
        nb::object all = compute_(tuple_of({words.begin(), words.begin() + static_cast<ptrdiff_t>(encoder_.arity())}));
        if (all.is_none()) return false;
        read(all, words);
        return true;
    }

    void read(nb::handle codes, Words& words) const {
        if (!PyTuple_Check(codes.ptr())) throw nb::type_error("the codes of a row are a tuple");
        words.resize(static_cast<size_t>(PyTuple_GET_SIZE(codes.ptr())));
        if (words.size() != width()) throw std::invalid_argument("a row lacks codes");
        for (size_t i = 0; i < words.size(); ++i) {
            words[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(codes.ptr(), static_cast<Py_ssize_t>(i)));
            if (words[i] == -1 && PyErr_Occurred()) throw nb::python_error();
        }
    }

    bool try_run(const int64_t* columns, size_t n, const int64_t* weights) {
        try {
            run_columns(columns, n, weights);
        } catch (const Overflow&) {
            return false;
        } catch (const BrokenCheck&) {
            return false;
        }
        return true;
    }

    // The columns lie one behind the other. The GIL stays, as the work is below a switch.
    void run_columns(const int64_t* columns, size_t n, const int64_t* weights) {
        auto lock = write_lock(kernel_);
        auto strings = kernel_.hold_dictionaries();
        inputs_[0].n = n;
        inputs_[0].weights = weights;
        kernel_.undoably([&] {
            for (const RowRun& run : runs_) {
                Trigger& trigger = kernel_.trigger(run.trigger);
                pick(run, trigger, columns, n);
                kernel_.machine.run(trigger, inputs_, kernel_.log());
            }
            kernel_.misfits([](size_t, const int64_t*) { throw Overflow(); });
        });
        for (const RowRun& run : runs_) kernel_.trim(kernel_.trigger(run.trigger));
    }

    void pick(const RowRun& run, const Trigger& trigger, const int64_t* words, size_t n) {
        auto& columns = inputs_[0].columns;
        columns.clear();
        for (unsigned place : run.places) columns.push_back(words + place * n);
        if (trigger.input_widths.size() != 1 || columns.size() < trigger.input_widths[0]) {
            throw std::invalid_argument("an input lacks columns");
        }
    }

    Kernel& kernel_;
    RowEncoder encoder_;
    Expressions* expressions_ = nullptr;
    nb::object compute_, kept_;
    std::vector<RowRun> runs_;
    std::vector<Input> inputs_{1};
};

// The whole of an insert or delete of a few rows, where nothing but the kernel has to know of it. It declines whatever
// is not of that kind, and each row that comes when `rows_left` have been taken: Python has work to do then.
class RowGate {
public:
    // `rows_left` may be taken until Python says so again; `running` has an attribute `name` that is not empty while
    // this thread is in a function of a user.
    RowGate(const nb::object& lock, nb::dict open_reads, nb::object running, size_t rows)
        : rows_left(rows),
          lock_(nb::cast<StateLock&>(lock)),
          open_reads_(std::move(open_reads)),
          running_(std::move(running)),
          name_(nb::str("name")),
          kept_(lock) {}

    void set_path(nb::object table, nb::object path, bool deletes, bool counts) {
        numbers_[table] = entries_.size();
        entries_.push_back({&nb::cast<RowPath&>(path), path, deletes, counts});
    }
    void forget() {
        numbers_.clear();
        entries_.clear();
    }

    // A short list of rows, all or none.
    bool apply(nb::handle table, const nb::list& rows, int64_t weight) {
        size_t n = nb::len(rows);
        if (!is_open || !n || n > most_rows || !rows_left || lock_.is_taken()) return false;
        if (!PyUnicode_CheckExact(table.ptr())) return false;
        nb::object running = running_.attr(name_);
        if (nb::len(running)) return false;
        lock_.enter();
        bool done;
        try {
            done = apply_locked(table, rows, weight);
        } catch (...) {
            lock_.release();
            throw;
        }
        lock_.release();
        return done;
    }

    bool is_open = true;
    size_t rows_left;

private:
    struct Entry {
        RowPath* path;
        nb::object kept;
        bool deletes;  // rows may be deleted
        bool counts;   // a row may bring along codes that are to be taken back one day
    };

    // More rows are for a batch, which lets other threads go on meanwhile.
    static constexpr size_t most_rows = 64;

    bool apply_locked(nb::handle table, const nb::list& rows, int64_t weight) {
        PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), table.ptr());
        if (!number || PyDict_GET_SIZE(open_reads_.ptr())) return false;
        Entry entry = entries_[PyLong_AsSize_t(number)];
        size_t n = nb::len(rows);
        if (weight < 0 && !entry.deletes) return false;
        if (!(n == 1 ? entry.path->apply(nb::object(rows[0]), weight) : entry.path->apply_all(rows, weight))) {
            return false;
        }
        if (entry.counts) rows_left -= std::min(n, rows_left);
        return true;
    }

    StateLock& lock_;
    nb::dict numbers_, open_reads_;
    std::vector<Entry> entries_;
    nb::object running_, name_, kept_;
};

}  // namespace ivme
