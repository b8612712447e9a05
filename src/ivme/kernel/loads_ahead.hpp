// What triggers load of a batch, found by another thread while the batch before is applied. To load only reads the
// batch, so that it does not matter when it is done. The thread that applies the batch loads what is missing then.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "bound_expressions.hpp"
#include "encoded_rows.hpp"
#include "row_run.hpp"
#include "schedule.hpp"

namespace ivme {

// The loads of all triggers of a path, copied: these may be dropped meanwhile.
class LoadsAhead {
public:
    LoadsAhead(const Seed& seed, Expressions* expressions) : expressions_(expressions), loader_(seed) {}

    void add(const Trigger& trigger, const RowRun& run) {
        Way way{trigger.number, Schedule::may_be_cut(trigger), run.places, {}};
        for (const Step& step : trigger.steps) {
            const auto* load = std::get_if<LoadStep>(&step);
            if (!load || run.balance) continue;
            const Delta& target = trigger.registers[load->target];
            if (target.layout.has_floats) continue;  // which share a pool
            way.loads.push_back({*load, target.layout, count_of(target.columns)});
        }
        ways_.push_back(std::move(way));
    }

    // Computes the expressions over encoded rows, and loads these, as long as nobody `wants` them. Without the GIL.
    void load(EncodedRows& rows, int64_t weight, const std::atomic<bool>& wanted) {
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || wanted) return;
        try {
            compute(rows);
            rows.loaded = spare_.empty() ? std::make_unique<LoadedRows>() : std::move(spare_.back());
            if (!spare_.empty()) spare_.pop_back();
            begin(rows, weight);
            for (size_t way = 0; way < ways_.size(); ++way) {
                if (!load_way(ways_[way], rows, rows.loaded->jobs[way], wanted)) break;
            }
        } catch (...) {
            rows.loaded.reset();  // the thread that applies the rows fails, too, and says so
        }
        loader_.trim();
    }

    // Triggers have taken what was loaded, and left their buffers, which are for the next batch. Who runs them again
    // loads anew.
    void give_back(EncodedRows& rows) {
        std::unique_ptr<LoadedRows> left = std::move(rows.loaded);
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || !left || spare_.size() == MOST_SPARE) return;
        for (LoadedJob& job : left->jobs) job.trim();
        spare_.push_back(std::move(left));
    }

private:
    struct Load {
        LoadStep step;
        Layout layout;
        unsigned arity;
    };
    struct Way {
        uint64_t trigger;
        bool may_be_cut;
        std::vector<unsigned> places;
        std::vector<Load> loads;
    };
    static constexpr size_t MOST_SPARE = 2;  // one is applied, one is loaded

    void compute(EncodedRows& rows) const {
        if (!expressions_) return;
        auto are_outdated = [&] { return rows.are_outdated(); };
        if (!expressions_->compute_beside(rows.places(), rows.n, rows.outputs, rows.constants, are_outdated)) {
            rows.outputs.clear();
        }
    }

    void begin(EncodedRows& rows, int64_t weight) const {
        LoadedRows& loaded = *rows.loaded;
        loaded.weights.resize(rows.n);
        std::fill_n(loaded.weights.data(), rows.n, weight);
        loaded.jobs.resize(ways_.size());
        for (size_t i = 0; i < ways_.size(); ++i) {
            size_t pieces = ways_[i].may_be_cut && weight > 0 ? Schedule::pieces_of(rows.n) : 1;
            loaded.jobs[i].begin(ways_[i].trigger, pieces);
        }
    }

    // False if somebody waits for the rows.
    bool load_way(const Way& way, const EncodedRows& rows, LoadedJob& job, const std::atomic<bool>& wanted) {
        std::vector<const int64_t*> columns = rows.places();
        Input whole{rows.n, {}, rows.loaded->weights.data()};
        for (unsigned place : way.places) {
            if (place >= columns.size()) return true;  // of an expression that is computed later
            whole.columns.push_back(columns[place]);
        }
        for (size_t piece = 0; piece < job.pieces(); ++piece) {
            Input input = whole.piece(piece, job.pieces());
            for (const Load& load : way.loads) {
                if (wanted) return false;
                Delta& target = job.next(piece, load.step.target);
                target.shape(load.arity, load.layout);
                loader_.load(load.step, input, target);
                job.keep(piece);
            }
        }
        return true;
    }

    Expressions* expressions_;
    std::vector<Way> ways_;
    std::mutex mutex_;
    Machine loader_;
    std::vector<std::unique_ptr<LoadedRows>> spare_;
};

}  // namespace ivme
