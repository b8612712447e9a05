// The views between a table and those that are shown: how the change of each is told, and passed on to the views that
// are built on it, all within the transaction that changes the table.
//
// What the kernel cannot do is declined, and the transaction rolled back: Python then does all of it.
#pragma once

#include <unordered_map>

#include "balance.hpp"
#include "chain_values.hpp"
#include "state_lock.hpp"

namespace ivme {

class ViewChain {
public:
    explicit ViewChain(Kernel& kernel) : kernel_(kernel) {}

    std::vector<ChainView> views;                                   // each behind those that it is built on
    std::unordered_map<size_t, std::vector<size_t>> emits;          // the views of what a trigger emits
    std::unordered_map<size_t, std::vector<ChainBranch>> branches;  // by relation

    void begin() {
        lacking_ = nullptr;
        passed_.clear();
        for (ChainView& view : views) {
            view.emitted.clear(view.width);
            view.is_net = true;
            view.lent = nullptr;
            view.is_changed = false;
            view.told.clear();
        }
    }

    // From now on `tell` is given the changes of views that somebody follows, and returns what is to be settled at the
    // lock once they are committed.
    void set_teller(nb::object lock, nb::object tell) {
        lock_ = &nb::cast<StateLock&>(lock);
        held.append(lock);
        tell_ = std::move(tell);
    }

    // Rows have passed a view with heavy and light parts.
    void pass(Balance* balance, size_t rows) { passed_.emplace_back(balance, rows); }

    // What a trigger that has run emits. It `lends` that if it runs no more before the changes are told.
    void collect(size_t number, const Trigger& trigger, bool lends) {
        auto found = emits.find(number);
        if (found == emits.end()) return;
        for (size_t i = 0; i < trigger.emits.size(); ++i) {
            const Delta& delta = trigger.registers[trigger.emits[i]];
            if (!delta.n) continue;
            ChainView& view = views[found->second[i]];
            if (lends && !view.lent && !view.emitted.n() && is_shown(view, delta)) {
                view.lent = &delta;
                continue;
            }
            if (view.lent) view.emitted.append(*std::exchange(view.lent, nullptr));
            view.is_net = !view.emitted.n() && delta.columns.size() == view.width;
            view.emitted.append(delta);
        }
    }

    // The unions over a relation take its rows, of which the first `width` columns are its own.
    void feed(size_t relation, const std::vector<const int64_t*>& columns, size_t width, size_t n,
              const int64_t* weights, bool has_gil) {
        auto found = branches.find(relation);
        if (found == branches.end()) return;
        for (const ChainBranch& branch : found->second) {
            all_.assign(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(width));
            compute(branch.expressions, all_, n, outputs_, has_gil);
            for (size_t at = 0; at < outputs_.size(); at += n) all_.push_back(outputs_.data() + at);
            take(branch, all_, n, weights);
        }
    }

    // The outputs of expressions, one behind the other.
    void compute(const ChainExpressions& expressions, const std::vector<const int64_t*>& columns, size_t n,
                 Array<int64_t>& outputs, bool has_gil) {
        outputs.clear();
        if (!expressions.program) return;
        bool is_done = has_gil ? compute_rows(*expressions.program, columns, n, outputs)
                               : expressions.program->compute(columns, n, outputs);
        if (is_done) return;
        lacking_ = expressions.prepare;
        lacked_.clear(columns.size());
        for (size_t c = 0; c < columns.size(); ++c) lacked_.columns[c].assign(columns[c], columns[c] + n);
        lacked_.weights.assign(n, 1);
        throw Declined();
    }

    // Does work again where a chain declined it and what expressions lacked could be filled in.
    template <class Work>
    static bool repeatedly(ViewChain* chain, Work work) {
        constexpr int MOST = 8;  // more than a chain has expressions that wait for each other
        for (int left = MOST; !work(); --left) {
            if (!chain || !left || !chain->fill_in()) return false;
        }
        return true;
    }

    // Fills in what expressions lacked when it declined; whether it may be tried again. With the GIL, and without the
    // kernel's lock.
    bool fill_in() {
        PyObject* prepare = std::exchange(lacking_, nullptr);
        if (!prepare) return false;
        nb::list columns;
        for (const auto& column : lacked_.columns) columns.append(array_of(column));
        return nb::cast<bool>(nb::borrow(prepare)(columns, lacked_.n()));
    }

    // Tells the changes of all views, one after the other.
    void propagate(bool has_gil) {
        for (ChainView& view : views) {
            if (!view.emitted.n() && !view.lent) continue;
            see_change(view);
            check_numbers(view);
            if (view.is_told && view.seen.n) note(view);
            if (view.readers && view.seen.n) view.readers->take(view.seen, has_gil);
        }
    }

    // Prepares what those who follow views get if this is committed.
    void announce() {
        if (!lock_ || std::all_of(views.begin(), views.end(), [](const ChainView& view) { return view.told.empty(); }))
            return;
        nb::gil_scoped_acquire acquire;
        nb::list told;
        for (size_t number = 0; number < views.size(); ++number) {
            std::vector<Array<int64_t>>& columns = views[number].told;
            if (columns.empty()) continue;
            size_t n = columns.back().size();
            nb::list shown;
            for (Array<int64_t>& column : columns) shown.append(to_numpy(std::move(column), n));
            told.append(nb::make_tuple(number, shown));
            columns.clear();
        }
        announced_ = tell_(told);
    }

    // Rows with aggregates are kept as they are now. No code of Python runs before what is announced is noted.
    void commit() noexcept {
        if (announced_.is_valid()) {
            nb::gil_scoped_acquire acquire;
            lock_->pending = std::exchange(announced_, nb::object());
        }
        for (ChainView& view : views) {
            if (view.is_changed) view.kept->put(view.now);
        }
        for (const auto& [balance, rows] : passed_) balance->passed(rows);
    }

    void trim() {
        outputs_.trim(size_t{1} << 12);
        for (ChainView& view : views) {
            for (ChangedRows* rows : {&view.emitted, &view.netted, &view.rows, &view.shown}) rows->trim();
            if (view.readers) view.readers->trim();
        }
    }

    bool is_worth_trying() const { return are_worth_trying(balances); }

    std::vector<Balance*> balances;  // of views in it that have heavy and light parts
    nb::list held;                   // what must last as long as it does

private:
    // Whether a delta is the change of a view as it is: no row that comes and goes.
    static bool is_shown(const ChainView& view, const Delta& delta) {
        if (!view.shows_deltas() || !delta.layout.plain() || delta.columns.size() != view.width) return false;
        return std::find(delta.payloads.data(), delta.payloads.data() + delta.n, 0) == delta.payloads.data() + delta.n;
    }

    void see_change(ChainView& view) {
        if (!view.lent) {
            const ChangedRows& changed = view.is_union      ? view.emitted
                                         : view.kept        ? regrouped(view)
                                         : view.is_distinct ? told_apart(view)
                                                            : summed(view);
            return changed.see(view.seen);
        }
        view.seen.columns.clear();
        for (unsigned place : view.places) view.seen.columns.push_back(view.lent->columns[place].data());
        view.seen.weights = view.lent->payloads.data();
        view.seen.n = view.lent->n;
    }

    static void note(ChainView& view) {
        const RowsSeen& seen = view.seen;
        view.told.resize(seen.columns.size() + 1);
        for (size_t c = 0; c < view.told.size(); ++c) {
            view.told[c].resize(seen.n);
            std::copy_n(c < seen.columns.size() ? seen.columns[c] : seen.weights, seen.n, view.told[c].data());
        }
    }

    bool compute_rows(Expressions& program, const std::vector<const int64_t*>& columns, size_t n,
                      Array<int64_t>& outputs) {
        outputs.resize(program.outputs() * n);
        words_.resize(columns.size() + program.outputs());
        for (size_t row = 0; row < n; ++row) {
            for (size_t c = 0; c < columns.size(); ++c) words_[c] = columns[c][row];
            if (!program.complete(words_.data(), columns.size())) return false;
            for (size_t i = 0; i < program.outputs(); ++i) outputs[i * n + row] = words_[columns.size() + i];
        }
        return true;
    }

    void take(const ChainBranch& branch, const std::vector<const int64_t*>& columns, size_t n, const int64_t* weights) {
        ChangedRows& to = views[branch.view].emitted;
        for (size_t row = 0; row < n; ++row) {
            if (branch.test >= 0 && columns[static_cast<size_t>(branch.test)][row] != 1) continue;
            int64_t weight = weights[row];
            if (branch.factor >= 0) {
                int64_t factor = columns[static_cast<size_t>(branch.factor)][row];
                if (factor == NULL_CODE) factor = 0;
                if (multiply_overflows(weight, factor, &weight)) throw Declined();
            }
            if (!weight) continue;
            for (size_t c = 0; c < branch.columns.size(); ++c) to.columns[c].push_back(columns[branch.columns[c]][row]);
            to.weights.push_back(weight);
        }
    }

    // Rows with equal codes as one, without those whose weights sum to zero.
    const ChangedRows& net(ChainView& view, ChangedRows& rows, ChangedRows& to) {
        if (rows.n() == 1 && rows.weights[0]) return rows;
        view.sums.shape(count_of(rows.columns), Layout());
        kernel_.machine.net(rows.places(), rows.weights.data(), rows.n(), view.sums);
        copy(view.sums, to);
        return to;
    }

    static void copy(const Delta& from, ChangedRows& to) {
        to.clear(from.columns.size());
        for (size_t c = 0; c < to.columns.size(); ++c) {
            to.columns[c].assign(from.columns[c].data(), from.columns[c].data() + from.n);
        }
        to.weights.assign(from.payloads.data(), from.payloads.data() + from.n);
    }

    // A row comes when it is there for the first time, and goes when it is there no more.
    const ChangedRows& told_apart(ChainView& view) {
        const ChangedRows& changed = view.is_net ? view.emitted : net(view, view.emitted, view.rows);
        Block block;
        std::shared_ptr<Union> reader = read_points(view, changed, block);
        std::vector<int64_t> now(changed.n());
        for (size_t row = 0; row < block.n; ++row) {
            now[static_cast<size_t>(block.requests[row])] = block.payloads[row * reader->layout.words];
        }
        view.netted.clear(count_of(changed.columns));
        for (size_t row = 0; row < changed.n(); ++row) {
            int weight = int{now[row] != 0} - int{now[row] != changed.weights[row]};
            if (!weight) continue;
            for (size_t c = 0; c < changed.columns.size(); ++c)
                view.netted.columns[c].push_back(changed.columns[c][row]);
            view.netted.weights.push_back(weight);
        }
        return picked(view, &view.netted);
    }

    const ChangedRows& summed(ChainView& view) {
        const auto& weights = view.emitted.weights;
        bool is_net = view.is_net && std::find(weights.begin(), weights.end(), 0) == weights.end();
        return picked(view, is_net ? &view.emitted : &net(view, view.emitted, view.rows));
    }

    static bool shows_all(const ChainView& view, const ChangedRows& rows) {
        if (view.hides || view.places.size() != rows.columns.size()) return false;
        for (unsigned i = 0; i < view.places.size(); ++i) {
            if (view.places[i] != i) return false;
        }
        return true;
    }

    // The columns that a view shows of some of its rows, which last as long as the view.
    const ChangedRows& picked(ChainView& view, const ChangedRows* rows) {
        if (shows_all(view, *rows)) return *rows;
        view.shown.columns.resize(view.places.size());
        for (size_t i = 0; i < view.places.size(); ++i) view.shown.columns[i] = rows->columns[view.places[i]];
        view.shown.weights = rows->weights;
        if (!view.hides) return view.shown;
        return net(view, view.shown, view.netted);
    }

    // The rows of groups that changed: as they were, less, and as they are, more.
    const ChangedRows& regrouped(ChainView& view) {
        ChangedRows& emitted = view.emitted;
        std::fill(emitted.weights.begin(), emitted.weights.end(), 1);
        if (view.width && !view.is_net && &net(view, emitted, view.netted) != &emitted) std::swap(emitted, view.netted);
        size_t groups = view.width ? emitted.n() : 1;
        Block block;
        finish(view, *read_points(view, emitted, block), block);
        set_now(view, groups, block);
        view.kept->reserve(groups);
        view.compared.shape(view.kept->width(), Layout());
        view.compared.clear();
        view.kept->compare(view.now, view.compared);
        view.is_changed = true;
        copy(view.compared, view.rows);
        return picked(view, &view.rows);
    }

    // What is there now of rows, or of the only group of all.
    std::shared_ptr<Union> read_points(const ChainView& view, const ChangedRows& asked, Block& block) {
        std::shared_ptr<Union> reader = kernel_.reader(view.reader);
        if (reader->inputs != view.width) throw Declined();
        reader->shape(block);
        block.numbered = true;
        uint64_t operations = 0;
        UnionCursor rows(*reader);
        rows.open(asked.places(), view.width ? asked.n() : 1);
        rows.read_all(block, operations);
        kernel_.read_operations += operations;
        return reader;
    }

    // The codes of what a block's rows show.
    void finish(const ChainView& view, const Union& reader, const Block& block) {
        for (const ChainValue& value : view.values) {
            bool fits = value.kind == 'x'
                            ? value.place < block.extremes.size()
                            : std::max(value.place + value.words, value.present + 1) <= reader.layout.words;
            if (!fits) throw std::logic_error("a view has no such sums");
        }
        finished_.resize(view.values.size());
        for (auto& column : finished_) column.clear();
        for (size_t row = 0; row < block.n; ++row) {
            const int64_t* payload = block.payloads.data() + row * reader.layout.words;
            for (size_t i = 0; i < view.values.size(); ++i) {
                finished_[i].push_back(finished(view.values[i], payload, block, row));
            }
        }
    }

    void set_now(ChainView& view, size_t groups, const Block& block) {
        NewRows& now = view.now;
        now.rows.resize(groups);
        for (size_t i = 0; i < groups; ++i) now.rows[i] = NIL;
        for (size_t row = 0; row < block.n; ++row) {
            auto group = static_cast<size_t>(block.requests[row]);
            now.rows[group] = static_cast<uint32_t>(row);
        }
        view.codes.swap(finished_);
        if (!block.n && !view.nothing.empty()) {
            for (size_t i = 0; i < view.nothing.size(); ++i) view.codes[i].assign(1, view.nothing[i]);
            now.rows[0] = 0;
        }
        view.emitted.place(now.keys);
        now.values.clear();
        for (const auto& column : view.codes) now.values.push_back(column.data());
    }

    static void check_numbers(const ChainView& view) {
        for (unsigned column : view.numbers) {
            const int64_t *codes = view.seen.columns[column], *end = codes + view.seen.n;
            if (std::find(codes, end, NAN_VALUE) != end) throw Declined();
        }
    }

    Kernel& kernel_;
    StateLock* lock_ = nullptr;
    nb::object tell_, announced_;
    std::vector<std::vector<int64_t>> finished_;
    std::vector<const int64_t*> all_;
    std::vector<int64_t> words_;
    Array<int64_t> outputs_;
    std::vector<std::pair<Balance*, size_t>> passed_;
    PyObject* lacking_ = nullptr;  // what fills in for the expressions that turned back
    ChangedRows lacked_;           // and over which rows they did
};

}  // namespace ivme
