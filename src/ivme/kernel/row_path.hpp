// Rows in one call: encoded, computed and taken through all triggers, where nothing but the kernel has to know of them.
#pragma once

#include "arrow_path.hpp"
#include "row_encoder.hpp"
#include "row_log.hpp"
#include "state_lock.hpp"
#include "view_chain.hpp"

namespace ivme {

// The way of one row of a table: its codes, the expressions over them, and the triggers that it goes through, each with
// the places of the codes that it wants.
class RowPath : public RowTaker {
public:
    // `compute` takes a row's codes where the expressions turn back, and returns all codes, or None.
    RowPath(Kernel& kernel, const nb::list& columns, const nb::object& expressions, nb::object compute,
            const nb::list& runs)
        : kernel_(kernel), encoder_(columns), log_(columns), compute_(std::move(compute)), kept_(expressions) {
        if (!expressions.is_none()) expressions_ = &nb::cast<Expressions&>(expressions);
        for (nb::handle run : runs) {
            auto [trigger, places] = nb::cast<std::pair<size_t, std::vector<unsigned>>>(run);
            check(places);
            runs_.push_back({trigger, std::move(places), nullptr, nullptr});
        }
    }

    // As long as these maps are empty, another trigger takes the place of the one of that number.
    void set_light(size_t number, size_t trigger, std::vector<unsigned> places, const std::vector<size_t>& empty) {
        check(places);
        Trigger& light = kernel_.trigger(trigger);
        for (size_t map : empty) light.empty.add(&kernel_.map(map));
        runs_.at(number).light = std::make_shared<const RowRun>(RowRun{trigger, std::move(places), nullptr, nullptr});
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
        run_columns(words.data(), 1, &weight, false, [] {});
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

    // From now on rows are left to the batch path after which the view of the trigger of that number is not balanced.
    void set_balance(size_t number, const nb::object& balance) {
        runs_.at(number).balance = &nb::cast<Balance&>(balance);
        balances_.push_back(runs_[number].balance);
        held_.append(balance);
    }
    // From now on a chain takes what views emit further; here it is the relation of that number.
    void set_chain(const nb::object& chain, size_t relation) {
        join(nb::cast<ViewChain&>(chain), relation, prepare_);
        chain_kept_ = chain;
    }
    // The same for one that the chain keeps; `prepare` as for `take_arrow`.
    void join(ViewChain& chain, size_t relation, nb::object prepare) {
        chain_ = &chain;
        relation_ = relation;
        prepare_ = std::move(prepare);
    }
    ViewChain* chain() const { return chain_; }
    // Rows of a view, for those that are built on it.
    void take(const RowsSeen& rows, bool has_gil) override {
        places_ = rows.columns;
        chain_->compute({expressions_, prepare_.ptr()}, places_, rows.n, outputs_, has_gil);
        for (size_t at = 0; at < outputs_.size(); at += rows.n) places_.push_back(outputs_.data() + at);
        run_places(places_, rows.n, rows.weights, true);
        feed_chain(places_, rows.n, rows.weights, has_gil);
        for (Balance* balance : balances_) chain_->pass(balance, rows.n);
    }
    // Tells the chain what encoded rows brought about, once the triggers have run.
    void collect(const EncodedRows& rows, const int64_t* weights) const {
        if (!chain_) return;
        for (const RowRun& run : runs_) {
            if (!run.balance) chain_->collect(run.trigger, kernel_.trigger(run.trigger), true);
        }
        feed_chain(rows.places(), rows.n, weights, false);
    }

    // Whether views that many rows may unbalance are likely to stay as they are.
    bool is_worth_trying() const { return are_worth_trying(balances_) && (!chain_ || chain_->is_worth_trying()); }
    const std::vector<Balance*>& balances() const { return balances_; }
    // Whether views over it, or further on, have heavy and light parts.
    bool has_parts() const { return !balances_.empty() || (chain_ && !chain_->balances.empty()); }
    // Rows came or went, and all is balanced.
    void passed(size_t n) const {
        for (Balance* balance : balances_) balance->passed(n);
    }

    // From now on rows are written to a log, too, if they can be; see `RowLog`.
    bool set_log(nb::object end, nb::object table, const std::string& name) {
        return log_.set(std::move(end), std::move(table), name);
    }
    LogEnd* log() const { return log_.end(); }
    const nb::object& table() const { return log_.table(); }

    // Record batches may come, too. `prepare` fills in what expressions lack over columns, and says whether they turn
    // back no more.
    void take_arrow(const nb::object& columns, std::vector<unsigned> key, nb::object prepare,
                    std::vector<unsigned> loose, std::vector<unsigned> unread) {
        kept_ = nb::make_tuple(kept_, columns);
        prepare_ = std::move(prepare);
        auto loads = std::make_unique<LoadsAhead>(kernel_.seed(), expressions_);
        for (const RowRun& run : runs_) loads->add(kernel_.trigger(run.trigger), run);
        arrow_ = std::make_unique<ArrowPath>(nb::cast<ArrowColumns&>(columns), std::move(key), std::move(loose),
                                             std::move(unread), std::move(loads));
    }
    // Whether rows have come that were not kept: no view can begin to read what they had.
    bool has_passed_rows() const {
        return std::any_of(runs_.begin(), runs_.end(), [&](const RowRun& run) {
            const auto& heaps = kernel_.trigger(run.trigger).heaps;
            return std::any_of(heaps.begin(), heaps.end(),
                               [](const Heap* heap) { return !heap->is_kept() && heap->size() > 0; });
        });
    }
    // Null if none may come.
    const ArrowPath* arrow() const { return arrow_.get(); }

    // Computes the expressions over encoded rows; false if the batch path has to.
    bool compute(const nb::object& object, EncodedRows& rows) const {
        if (!expressions_) return true;
        if (rows.outputs.size()) {
            if (rows.constants == expressions_->constants()) return true;
            rows.loaded.reset();
        }
        return computes(rows) || (nb::cast<bool>(prepare_(rows.views(object), rows.n)) && computes(rows));
    }

    // Whether storing such rows compares strings of tables.
    bool compares_strings(int64_t weight) const {
        return weight < 0 || std::any_of(
                                 runs_.begin(), runs_.end(),
                                 [&](const RowRun& run) {
                                     const auto& heaps = kernel_.trigger(run.trigger).heaps;
                                     return std::any_of(heaps.begin(), heaps.end(),
                                                        [](const Heap* heap) { return heap->compares_strings(); });
                                 });
    }

    // The triggers that encoded rows go through, but for those of views with heavy and light parts.
    void add_jobs(const EncodedRows& rows, const int64_t* weights, std::vector<Job>& jobs) const {
        std::vector<const int64_t*> columns = rows.places();
        for (size_t i = 0; i < runs_.size(); ++i) {
            const RowRun& run = runs_[i];
            if (run.balance) continue;
            Trigger& trigger = kernel_.trigger(run.trigger);
            Job& job = jobs.emplace_back(Job{&trigger, {{rows.n, {}, weights}}});
            for (unsigned place : run.places) job.inputs[0].columns.push_back(columns[place]);
            check_width(trigger, job.inputs);
            if (rows.loaded && rows.loaded->jobs[i].is_of(trigger.number)) job.loaded = &rows.loaded->jobs[i];
        }
    }
    // And these, behind all others.
    void run_parts(const EncodedRows& rows, const int64_t* weights) {
        if (!balances_.empty()) run_parts(rows.places(), rows.n, weights);
    }
    // Triggers have run over encoded rows. Without the GIL.
    void take_back(EncodedRows& rows) const { arrow_->loads().give_back(rows); }
    // Encoded rows that came are stored by now, if the table is, so that their strings are held. Without the GIL.
    void keep_strings(const EncodedRows& rows) const {
        for (const RowRun& run : runs_) {
            for (Heap* heap : kernel_.trigger(run.trigger).heaps) rows.keep_strings(*heap);
        }
    }
    // All triggers for codes of a row that `encode_row` gave. The GIL stays.
    void run(const std::vector<int64_t>& words, int64_t weight) { run_within(words.data(), 1, &weight, true); }
    bool encode_row(nb::handle row, std::vector<int64_t>& words) { return encoded(row, words); }
    void trim() override {
        outputs_.trim(size_t{1} << 12);
        for (const RowRun& run : runs_) kernel_.trim(kernel_.trigger(run.trigger));
    }
    Kernel& kernel() { return kernel_; }
    unsigned threads() const { return kernel_.team().threads; }

private:
    using Words = std::vector<int64_t>;
    static constexpr uint64_t few_operations = 4096;

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

    bool computes(EncodedRows& rows) const {
        rows.outputs.clear();
        std::vector<const int64_t*> columns = rows.places();
        nb::gil_scoped_release release;
        unsigned threads = memory_room < 0 && allocation_budget < 0 ? kernel_.team().threads : 1;
        return expressions_->compute(columns, rows.n, rows.outputs, threads);
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
        return ViewChain::repeatedly(chain_, [&] { return try_once(columns, n, weights); });
    }

    bool try_once(const int64_t* columns, size_t n, const int64_t* weights) {
        if (!log_.begin(columns, n, weights)) return false;
        try {
            run_columns(columns, n, weights, true, [&] { log_.append(); });
        } catch (const Overflow&) {
            return false;
        } catch (const LogFailed&) {
            return false;
        } catch (const Declined&) {
            return false;
        } catch (const BrokenCheck&) {
            return false;
        }
        passed(n);
        log_.committed();
        return true;
    }

    // The columns lie one behind the other. The GIL stays, as the work is below a switch. If `check` throws, nothing
    // has changed, and neither has it if views are to be `balanced` at the end and are not.
    template <class Check>
    void run_columns(const int64_t* columns, size_t n, const int64_t* weights, bool balanced, Check check) {
        auto lock = write_lock(kernel_);
        auto strings = kernel_.hold_dictionaries();
        FewRows few;
        uint64_t before = kernel_.machine.operations;
        if (chain_) chain_->begin();
        kernel_.undoably([&] {
            run_within(columns, n, weights, balanced);
            if (chain_) chain_->propagate(true);
            kernel_.misfits([](size_t, const int64_t*) { throw Overflow(); });
            if (chain_) chain_->announce();
            check();
        });
        if (chain_) chain_->commit();
        if (kernel_.machine.operations - before < few_operations) return;  // nothing has grown much
        trim();
        if (chain_) chain_->trim();
    }

    void run_within(const int64_t* columns, size_t n, const int64_t* weights, bool balanced) {
        places_.clear();
        for (size_t i = 0; i < width(); ++i) places_.push_back(columns + i * n);
        run_places(places_, n, weights, balanced);
        if (chain_) feed_chain(places_, n, weights, true);
    }

    void run_places(const std::vector<const int64_t*>& columns, size_t n, const int64_t* weights, bool balanced) {
        for (const RowRun& run : runs_) {
            if (run.balance && balanced) continue;
            const RowRun& taken = *chosen(&run);
            pick(taken, columns, n, weights);
            run_picked(taken);
        }
        if (balanced) run_parts(columns, n, weights);
    }
    // Views with heavy and light parts come behind all others, which N may be the size of.
    void run_parts(const std::vector<const int64_t*>& columns, size_t n, const int64_t* weights) {
        for (const RowRun& run : runs_) {
            if (run.balance) run_in_pieces(run, columns, n, weights);
        }
    }

    // The unions over the relation take its rows.
    void feed_chain(const std::vector<const int64_t*>& columns, size_t n, const int64_t* weights, bool has_gil) const {
        chain_->feed(relation_, columns, encoder_.arity(), n, weights, has_gil);
    }

    // Pieces are of rows that differ. A view that is to be rebalanced after one of them is left to Python.
    void run_in_pieces(const RowRun& run, const std::vector<const int64_t*>& columns, size_t n,
                       const int64_t* weights) {
        const RowRun& taken = *chosen(&run);
        pick(taken, columns, n, weights);
        Balance& balance = *run.balance;
        size_t wish = n;
        if (balance.end_of_piece(inputs_[0].columns, 0, n, wish) == n) return run_piece(taken, balance);
        Delta netted;
        netted.shape(count_of(inputs_[0].columns), Layout());
        kernel_.machine.net(inputs_[0].columns, weights, n, netted);
        std::vector<const int64_t*> all;
        for (const auto& column : netted.columns) all.push_back(column.data());
        wish = netted.n;
        for (size_t begin = 0, end = 0; begin < netted.n; begin = end) {
            end = balance.end_of_piece(all, begin, netted.n, wish);
            for (size_t c = 0; c < all.size(); ++c) inputs_[0].columns[c] = all[c] + begin;
            inputs_[0].n = end - begin;
            inputs_[0].weights = netted.payloads.data() + begin;
            run_piece(taken, balance);
        }
    }
    void run_piece(const RowRun& taken, Balance& balance) {
        run_picked(taken);
        if (balance.holds()) return;
        balance.failed();
        throw Declined();
    }

    // The run itself, or the one without heavy parts while these are empty.
    const RowRun* chosen(const RowRun* run) const {
        if (!run->light) return run;
        const Uses<Map>& empty = kernel_.trigger(run->light->trigger).empty;
        bool is_light = std::none_of(empty.begin(), empty.end(), [](const Map* map) { return map->size() != 0; });
        return is_light ? run->light.get() : run;
    }

    void pick(const RowRun& run, const std::vector<const int64_t*>& given, size_t n, const int64_t* weights) {
        auto& columns = inputs_[0].columns;
        columns.clear();
        for (unsigned place : run.places) columns.push_back(given[place]);
        inputs_[0].n = n;
        inputs_[0].weights = weights;
        check_width(kernel_.trigger(run.trigger), inputs_);
    }
    void run_picked(const RowRun& run) {
        Trigger& trigger = kernel_.trigger(run.trigger);
        kernel_.machine.run(trigger, inputs_, kernel_.log());
        if (chain_) chain_->collect(run.trigger, trigger, false);
    }

    void check(const std::vector<unsigned>& places) const {
        bool lacks = std::any_of(places.begin(), places.end(), [&](unsigned place) { return place >= width(); });
        if (lacks) throw std::invalid_argument("a row lacks codes");
    }
    static void check_width(const Trigger& trigger, const std::vector<Input>& inputs) {
        if (trigger.input_widths.size() != 1 || inputs[0].columns.size() < trigger.input_widths[0]) {
            throw std::invalid_argument("an input lacks columns");
        }
    }

    Kernel& kernel_;
    RowEncoder encoder_;
    RowLog log_;
    Expressions* expressions_ = nullptr;
    std::unique_ptr<ArrowPath> arrow_;
    nb::object compute_, prepare_, kept_;
    std::vector<RowRun> runs_;
    std::vector<Balance*> balances_;
    nb::list held_;
    ViewChain* chain_ = nullptr;
    nb::object chain_kept_;
    size_t relation_ = 0;
    std::vector<const int64_t*> places_;
    Array<int64_t> outputs_;
    std::vector<Input> inputs_{1};
};

}  // namespace ivme
