// Rows and record batches that nothing but the kernel has to know of: whether that is so, and all of the transaction.
#pragma once

#include <optional>

#include "logged_batch.hpp"
#include "row_path.hpp"
#include "rows_ahead.hpp"
#include "state_lock.hpp"

namespace ivme {

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
          validate_(nb::str("validate")),
          arrow_c_array_(nb::str("__arrow_c_array__")),
          kept_(lock) {}

    void set_path(nb::object table, nb::object path, bool deletes, bool counts) {
        numbers_[table] = entries_.size();
        entries_.push_back({&nb::cast<RowPath&>(path), path, deletes, counts});
    }
    void forget() {
        numbers_.clear();
        entries_.clear();
        ++generation_;
    }

    // A record batch as codes, for `apply_encoded` with a weight of this sign; None if the batch path has to take it.
    nb::object encode(nb::handle table, const nb::tuple& capsules, int64_t weight) {
        nb::object made = nb::none();
        if (!may_take(table)) return made;
        alone([&] {
            PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), table.ptr());
            if (!number) return;
            auto rows = std::make_unique<EncodedRows>();
            rows->entry = PyLong_AsSize_t(number);
            rows->generation = generation_;
            nb::object kept = entries_[rows->entry].kept;
            RowPath& path = nb::cast<RowPath&>(kept);
            if (!path.arrow() || !path.arrow()->encode(capsules, *rows, weight > 0, path.threads())) return;
            made = nb::cast(rows.release(), nb::rv_policy::take_ownership);
        });
        return made;
    }

    // The same for record batches of several tables, each with its weight, begun beside whatever follows; None if that
    // does not pay, or the batch path has to take one of them.
    nb::object encode_ahead(const nb::list& changes) {
        if (!nb::len(changes) || !may_take() || memory_room >= 0 || allocation_budget >= 0) return nb::none();
        auto ahead = std::make_unique<RowsAhead>();
        std::vector<nb::object> given;
        for (nb::handle change : changes) {
            given.push_back(given_arrow(nb::cast<nb::tuple>(change)[1]));
            if (!given.back().is_valid()) return nb::none();
        }
        bool are_all = true;
        alone([&] {
            for (size_t i = 0; i < given.size() && are_all; ++i) {
                are_all = add_ahead(nb::cast<nb::tuple>(changes[i]), given[i], *ahead);
            }
        });
        if (!are_all) return nb::none();
        ahead->begin();
        return nb::cast(ahead.release(), nb::rv_policy::take_ownership);
    }

    // Encoded rows of several tables, each with the weight of all of them, as one transaction; false if the batch path
    // has to take them. `record` is what the log says about them, if they are logged: its text, the bytes behind, their
    // sum.
    bool apply_encoded(const std::vector<std::pair<nb::object, int64_t>>& given, const nb::object& record) {
        if (given.empty() || !may_take()) return false;
        bool done = false;
        alone([&] { done = apply_encoded_locked(given, record); });
        return done;
    }

    // A short list of rows, all or none.
    bool apply(nb::handle table, const nb::list& rows, int64_t weight) {
        size_t n = nb::len(rows);
        if (!n || n > most_rows || !rows_left || !may_take(table)) return false;
        FewRows few;
        bool done = false;
        alone([&] { done = apply_locked(table, rows, weight); });
        return done;
    }

    // A few rows of several tables, each a tuple of its table, itself and its weight, as one transaction, in this
    // order.
    bool apply_rows(const std::vector<std::tuple<nb::object, nb::object, int64_t>>& changes) {
        if (changes.empty() || changes.size() > most_rows || !rows_left || !may_take()) return false;
        FewRows few;
        bool done = false;
        alone([&] { done = apply_rows_locked(changes); });
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

    struct Part {
        RowPath* path;
        nb::object kept;
        EncodedRows* rows;
        int64_t weight;
        Array<int64_t> weights;
    };

    // A record batch that Arrow has validated, as two capsules; no object if it is not valid.
    nb::object given_arrow(nb::handle batch) const {
        try {
            batch.attr(validate_)();
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_ValueError)) throw;  // ArrowInvalid is one
            return {};
        }
        return batch.attr(arrow_c_array_)();
    }
    bool add_ahead(const nb::tuple& change, const nb::object& given, RowsAhead& ahead) {
        PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), nb::handle(change[0]).ptr());
        nb::handle weight = change[2];
        if (!number || !PyLong_CheckExact(weight.ptr())) return false;
        auto entry = PyLong_AsSize_t(number);
        bool is_known = std::any_of(ahead.parts.begin(), ahead.parts.end(),
                                    [&](const auto& part) { return part.rows->entry == entry; });
        int64_t sign = nb::cast<int64_t>(weight);
        const Entry& known = entries_[entry];
        if (is_known || (sign != 1 && sign != -1) || known.path->threads() < 2) return false;
        return ahead.add(known.kept, nb::cast<nb::tuple>(given), sign, entry, generation_);
    }

    // Whether it may be that nothing but the kernel has to know.
    bool may_take() const {
        if (!is_open || lock_.is_taken()) return false;
        nb::object running = running_.attr(name_);
        return !nb::len(running);
    }
    bool may_take(nb::handle table) const { return PyUnicode_CheckExact(table.ptr()) && may_take(); }

    template <class Work>
    void alone(Work work) {
        lock_.enter();
        try {
            work();
        } catch (...) {
            lock_.release();
            throw;
        }
        lock_.release();
    }

    struct EncodedRow {
        nb::object kept;
        RowPath* path;
        int64_t weight;
        std::vector<int64_t> words;
    };

    bool apply_rows_locked(const std::vector<std::tuple<nb::object, nb::object, int64_t>>& changes) {
        std::vector<EncodedRow> rows;
        size_t counted = 0, generation = generation_;  // encoding may call functions of users
        for (const auto& [table, row, weight] : changes) {
            PyObject* number = PyDict_GetItemWithError(numbers_.ptr(), table.ptr());
            if (!number || PyDict_GET_SIZE(open_reads_.ptr())) return false;
            Entry entry = entries_[PyLong_AsSize_t(number)];
            rows.push_back({entry.kept, entry.path, weight, {}});
            if (entry.path->log()) return false;
            if ((weight < 0 && !entry.deletes) || !entry.path->encode_row(row, rows.back().words)) return false;
            counted += entry.counts;
        }
        if (generation != generation_) return false;
        auto run = [&] { return try_run(rows[0].path->kernel(), rows); };
        if (!ViewChain::repeatedly(chain_of(rows), run)) return false;
        rows_left -= std::min(counted, rows_left);
        return true;
    }

    static bool try_run(Kernel& kernel, std::vector<EncodedRow>& rows) {
        auto lock = write_lock(kernel);
        auto strings = kernel.hold_dictionaries();
        ViewChain* chain = chain_of(rows);
        if (chain) chain->begin();
        bool done = succeeds([&] {
            kernel.undoably([&] {
                for (EncodedRow& row : rows) row.path->run(row.words, row.weight);
                if (chain) chain->propagate(true);
                kernel.misfits([](size_t, const int64_t*) { throw Overflow(); });
                if (chain) chain->announce();
            });
        });
        if (done && chain) chain->commit();
        for (EncodedRow& row : rows) {
            if (done) row.path->passed(1);
            row.path->trim();
        }
        return done;
    }

    // Tables that are read by views on views share one chain.
    template <class Parts>
    static ViewChain* chain_of(const Parts& parts) {
        auto found = std::find_if(parts.begin(), parts.end(), [](const auto& part) { return part.path->chain(); });
        return found == parts.end() ? nullptr : found->path->chain();
    }

    // False if a row is refused.
    template <class Work>
    static bool succeeds(Work work) {
        try {
            work();
        } catch (const Overflow&) {
            return false;
        } catch (const BrokenCheck&) {
            return false;
        } catch (const LogFailed&) {
            return false;
        } catch (const Declined&) {
            return false;
        }
        return true;
    }

    // What the log says about encoded rows; false if the log is not there for them all, or has to be looked after
    // first.
    static bool begin_record(const std::vector<Part>& parts, const nb::object& given,
                             std::optional<LoggedBatch>& logged) {
        LogEnd* end = parts[0].path->log();
        bool is_one =
            std::all_of(parts.begin(), parts.end(), [&](const Part& part) { return part.path->log() == end; });
        if (!is_one || (end == nullptr) != given.is_none() || (end && !end->is_ready())) return false;
        if (!end) return true;
        logged.emplace(*end, given);
        for (const Part& part : parts) logged->add_table(part.path->table());
        return true;
    }

    bool apply_encoded_locked(const std::vector<std::pair<nb::object, int64_t>>& given, const nb::object& record) {
        std::vector<Part> parts;
        if (PyDict_GET_SIZE(open_reads_.ptr())) return false;
        for (const auto& [object, weight] : given) {
            auto& rows = nb::cast<EncodedRows&>(object);
            if (rows.generation != generation_ || rows.are_outdated()) return false;
            const Entry& entry = entries_[rows.entry];
            if ((weight < 0 && !entry.deletes) || !entry.path->is_worth_trying()) return false;
            parts.push_back({entry.path, entry.kept, &rows, weight, {}});
        }
        for (size_t i = 0; i < parts.size(); ++i) {
            if (!parts[i].path->compute(given[i].first, *parts[i].rows)) return false;
        }
        std::optional<LoggedBatch> logged;
        if (!begin_record(parts, record, logged)) return false;
        if (!ViewChain::repeatedly(chain_of(parts), [&] { return try_run(parts, logged); })) return false;
        if (logged) logged->committed();
        return true;
    }

    static bool try_run(std::vector<Part>& parts, std::optional<LoggedBatch>& logged) {
        Kernel& kernel = parts[0].path->kernel();
        nb::gil_scoped_release release;
        for (Part& part : parts) {
            part.weights.resize(part.rows->n);
            std::fill_n(part.weights.data(), part.rows->n, part.weight);
        }
        if (logged) logged->frame();
        auto lock = kernel.writing();
        bool compares = std::any_of(parts.begin(), parts.end(),
                                    [](const Part& part) { return part.path->compares_strings(part.weight); });
        auto strings = kernel.hold_dictionaries(compares);
        ViewChain* chain = chain_of(parts);
        if (chain) chain->begin();
        bool done = succeeds([&] {
            kernel.undoably([&] {
                std::vector<Job> jobs;
                for (Part& part : parts) part.path->add_jobs(*part.rows, part.weights.data(), jobs);
                auto propagate = [&] {
                    for (Part& part : parts) part.path->collect(*part.rows, part.weights.data());
                    if (chain) chain->propagate(false);
                };
                // N, which heavy and light parts go by, is known when all rows are stored.
                bool waits =
                    std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.path->has_parts(); });
                kernel.run_jobs(jobs, waits ? std::function<void()>() : propagate);
                if (waits) {
                    for (Part& part : parts) part.path->run_parts(*part.rows, part.weights.data());
                    propagate();
                }
                kernel.misfits([](size_t, const int64_t*) { throw Overflow(); });
                if (chain) chain->announce();
                if (logged) logged->append();
            });
        });
        if (done && chain) chain->commit();
        for (Part& part : parts) {
            if (done) part.path->passed(part.rows->n);
            part.path->trim();
        }
        if (chain) chain->trim();
        strings.clear();
        for (Part& part : parts) {
            if (done && part.weight > 0) part.path->keep_strings(*part.rows);
            part.path->take_back(*part.rows);
        }
        return done;
    }

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
    size_t generation_ = 0;  // of the entries
    nb::object running_, name_, validate_, arrow_c_array_, kept_;
};

}  // namespace ivme
