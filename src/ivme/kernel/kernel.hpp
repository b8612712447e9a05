// A kernel: maps, the triggers that change them, the readers that enumerate them. One writer, many readers.
//
// Everything but the locks themselves is used under a lock: maps, triggers and readers are looked up by number only
// there, so that none can be dropped in between. While a transaction is open, only its own thread gets a lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "compile.hpp"
#include "machine.hpp"
#include "numbered.hpp"
#include "old_maps.hpp"
#include "schedule.hpp"
#include "team.hpp"
#include "transaction_lock.hpp"
#include "undo.hpp"
#include "union.hpp"

namespace ivme {

class Kernel : public TransactionLock {
public:
    explicit Kernel(uint64_t seed) : seed_(seed), machine(seed_) {}

    Map& map(size_t id) { return *maps_[id]; }
    Heap& heap(size_t id) { return *heaps_[id]; }
    Partition& partition(size_t id) { return *partitions_[id]; }
    Trigger& trigger(size_t id) { return *triggers_[id]; }
    std::shared_ptr<Union> reader(size_t id) { return readers_[id]; }

    const Seed& seed() const { return seed_; }
    Layout layout_of(const std::vector<Slot>& slots) { return Layout(slots, &floats_); }

    size_t add_map(unsigned arity, const std::vector<Slot>& slots, const std::vector<unsigned>& key) {
        return maps_.add(std::make_unique<Map>(arity, layout_of(slots), seed_, key));
    }
    size_t add_heap(unsigned columns, std::vector<unsigned> key, bool is_kept) {
        return heaps_.add(std::make_unique<Heap>(columns, std::move(key), seed_, is_kept));
    }
    size_t add_partition(std::unique_ptr<Partition> partition) { return partitions_.add(std::move(partition)); }
    size_t add_trigger(std::unique_ptr<Trigger> trigger) { return triggers_.add(std::move(trigger)); }
    size_t add_reader(std::shared_ptr<Union> reader) { return readers_.add(std::move(reader)); }

    void drop_map(size_t id) {
        if (map(id).users) {
            throw std::invalid_argument("a trigger, a partition, a reader or an open cursor still uses the map");
        }
        refuse_in_transaction("a map cannot be dropped within a transaction");
        dropped_ += map(id).shrunk();
        maps_.take(id);
    }
    void drop_heap(size_t id) {
        if (heap(id).users) throw std::invalid_argument("a trigger still changes the table");
        refuse_in_transaction("a table cannot be dropped within a transaction");
        dropped_ += heap(id).marked_size();
        heaps_.take(id);
    }
    void drop_partition(size_t id) {
        if (partition(id).users) throw std::invalid_argument("a trigger still watches the partition");
        refuse_in_transaction("a partition cannot be dropped within a transaction");
        partitions_.take(id);
    }
    void drop_trigger(size_t id) { triggers_.take(id); }
    void drop_reader(size_t id) { readers_.take(id); }

    // Hands a trigger over that only reads.
    std::unique_ptr<Trigger> take_probe(size_t id) {
        const Trigger& probe = trigger(id);
        if (!probe.partitions.empty() || !probe.heaps.empty() || !probe.overlays.empty() || probe.emits.empty()) {
            throw std::invalid_argument("a probe reads, and emits deltas");
        }
        return triggers_.take(id);
    }

    // Hands over the loops of a reader that has one branch of one segment.
    std::shared_ptr<Reader> take_loops(size_t id) {
        std::shared_ptr<Union> plan = reader(id);
        if (plan->branches.size() != 1 || plan->branches[0].segments.size() != 1) {
            throw std::invalid_argument("a part of a reader has one branch of one segment");
        }
        readers_.take(id);
        return plan->branches[0].segments[0];
    }

    NotedKeys take_noted(size_t id) {
        Partition& watched = partition(id);
        NotedKeys taken(watched.arity());
        undoably([&] { taken = machine.take_noted(watched, log_); });
        return taken;
    }

    int64_t sweep(size_t id, uint64_t position, uint64_t count) {
        int64_t next = -1;
        undoably([&] { next = machine.sweep(partition(id), position, count, log_); });
        return next;
    }

    OldMaps& old_maps() { return old_; }

    // All or nothing: on any failure, `finish` included, every map is as it was when the transaction began, and
    // the transaction is over.
    template <class Finish>
    void run(const std::vector<Job>& jobs, Finish finish) {
        undoably([&] {
            run_jobs(jobs);
            finish();
        });
    }

    // Triggers one after the other or, if they are over many rows, on several threads, to the same effect; within what
    // can be undone.
    // What comes `behind` them, on this thread, may be done while rows are stored in tables.
    void run_jobs(const std::vector<Job>& jobs, const std::function<void()>& behind = {}) {
        team_.run(jobs, machine, behind);
    }

    // Gives back what a large batch needed.
    void trim(Trigger& trigger) {
        trigger.trim();
        machine.trim();
        team_.trim();
    }

    // Gives back the buffers that batches left for the next ones.
    void release_buffers() noexcept {
        triggers_.each([](size_t, Trigger& trigger) { trigger.trim(0); });
        machine.release();
        log_.release();
        team_.release();
    }

    void begin() { open(); }
    void commit() {
        commit_logs();
        close();
    }
    void roll_back() {
        UndoLog::roll_back(team_.logs());
        free_floats();
        close();
    }

    // Visits the entries that the open transaction left with sums beyond their limits.
    template <class Visit>
    void misfits(Visit visit) const {
        for (const UndoLog* log : team_.logs()) {
            for (const Map* map : log->touched()) misfits_of(map, visit);
        }
    }

    void clear_map(size_t id) {
        refuse_in_transaction("a map cannot be cleared within a transaction");
        old_.leave(map(id), true);
        map(id).clear();
        ++map(id).version;
    }

    void load_map(size_t id, const int64_t* records, size_t words) {
        refuse_in_transaction("a map cannot be loaded within a transaction");
        old_.leave(map(id));
        auto strings = hold_dictionaries();
        map(id).load(records, words);
        ++map(id).version;
    }

    // Indexes are ordered by a dictionary's strings; tables compare them, as some are loose.
    void order_by(const Dictionary* dictionary) {
        if (!holds(ordering_, dictionary)) ordering_.push_back(dictionary);
        std::erase(comparing_, dictionary);
    }
    void compare_by(const Dictionary* dictionary) {
        if (!holds(ordering_, dictionary) && !holds(comparing_, dictionary)) comparing_.push_back(dictionary);
    }

    using HeldStrings = std::vector<std::shared_lock<std::shared_mutex>>;
    // Ordered indexes compare strings, so none may be added while they are read.
    HeldStrings hold_ordering() const {
        HeldStrings held;
        for (const Dictionary* dictionary : ordering_) held.emplace_back(dictionary->mutex);
        return held;
    }
    // And none while rows are written, if that `compares` strings of tables.
    HeldStrings hold_dictionaries(bool compares = true) const {
        HeldStrings held = hold_ordering();
        if (!compares) return held;
        for (const Dictionary* dictionary : comparing_) held.emplace_back(dictionary->mutex);
        return held;
    }

    // Whether so many codes may be held no more that a walk over all entries costs little for each of them. Few strings
    // are not worth it.
    bool is_sweep_due(const std::vector<Dictionary*>& dictionaries, uint64_t least) const {
        uint64_t strings = 0, kept = 0, added = 0, entries = 0, shrunk = dropped_;
        for (const Dictionary* each : dictionaries) {
            std::shared_lock held(each->mutex, std::try_to_lock);
            if (!held) return false;  // rows of the next batch are encoded just now
            strings += each->size();
            kept += each->kept();
            added += each->added();
        }
        if (kept + added < least) return false;
        auto count = [&](size_t, const auto& counted) {
            entries += counted.size();
            shrunk += counted.shrunk();
        };
        maps_.each(count);
        heaps_.each([&](size_t id, const Heap& heap) {
            if (heap.is_kept()) count(id, heap);
        });
        uint64_t average = strings ? (kept + added) / strings : 1, gone = average * shrunk;
        return added + gone > (kept - std::min(kept, gone)) / 2 + entries / 4;
    }

    // Takes back the codes that neither an entry nor a word of `held` is. Deltas and the undo log are empty between
    // transactions.
    void sweep_codes(const std::vector<Dictionary*>& dictionaries,
                     const std::vector<std::pair<const int64_t*, size_t>>& held) {
        refuse_in_transaction("codes cannot be taken back within a transaction");
        std::vector<std::unique_lock<std::shared_mutex>> locks;
        for (Dictionary* dictionary : dictionaries) locks.emplace_back(dictionary->mutex);
        try {
            CodeMarks marks(dictionaries);
            for (const auto& [words, n] : held) marks.mark_all(words, n);
            mark_codes(marks);
            marks.sweep();
            dropped_ = 0;
        } catch (const std::bad_alloc&) {
            // It works as well with the codes it has.
        }
    }

    size_t bytes() const {
        size_t total = log_.bytes() + machine.bytes() + team_.bytes() + floats_.bytes() + old_.bytes();
        auto add = [&](size_t, const auto& each) { total += each.bytes(); };
        maps_.each(add);
        heaps_.each(add);
        partitions_.each(add);
        triggers_.each(add);
        return total;
    }

    uint64_t digest() const {
        uint64_t total = 0;
        maps_.each([&](size_t number, const Map& map) { total += map.digest(number + 1); });
        heaps_.each([&](size_t number, const Heap& heap) { total += heap.digest(~number); });
        return total;
    }

    void verify() const {
        maps_.each([](size_t, const Map& map) { map.verify(); });
        heaps_.each([](size_t, const Heap& heap) { heap.verify(); });
    }

    // Work that logs its changes: all of it or nothing, and a transaction of its own if none is open.
    template <class Work>
    void undoably(Work work) {
        try {
            work();
        } catch (...) {
            roll_back();
            throw;
        }
        if (!in_transaction()) commit_logs();
    }

    // Frees the long floats that no map has, if there may be many. Deltas and the undo log are empty between
    // transactions.
    void free_floats() noexcept {
        if (!floats_.is_crowded()) return;
        size_t entries = 0;
        auto mark = [&](const Map& map) {
            map.mark_floats();
            entries += map.size();
        };
        maps_.each([&](size_t, const Map& map) {
            if (map.layout().has_floats) mark(map);
        });
        old_.each(mark);
        floats_.sweep(entries);
    }
    UndoLog& log() { return log_; }
    Team& team() { return team_; }
    // How many entries the open transaction has changed.
    size_t rows_changed() const {
        size_t total = 0;
        for (const UndoLog* log : team_.logs()) total += log->rows();
        return total;
    }

    // The numbers of what is there: maps, partitions, triggers, readers, tables.
    std::array<std::vector<size_t>, 5> alive() const {
        return {maps_.numbers(), partitions_.numbers(), triggers_.numbers(), readers_.numbers(), heaps_.numbers()};
    }

private:
    static bool holds(const std::vector<const Dictionary*>& dictionaries, const Dictionary* wanted) {
        return std::find(dictionaries.begin(), dictionaries.end(), wanted) != dictionaries.end();
    }

    template <class Visit>
    void misfits_of(const Map* map, Visit visit) const {
        if (!map->has_suspects()) return;
        maps_.each([&](size_t number, const Map& each) {
            if (&each == map) map->misfits([&](const int64_t* row) { visit(number, row); });
        });
    }

    void commit_logs() {
        for (UndoLog* log : team_.logs()) log->commit();
        free_floats();
    }

    void mark_codes(CodeMarks& marks) {
        old_.mark_codes(marks);
        auto mark = [&](size_t, auto& marked) { marked.mark_codes(marks); };
        maps_.each(mark);
        heaps_.each(mark);
        partitions_.each([&](size_t, Partition& partition) {
            partition.rising.mark_codes(marks);
            partition.falling.mark_codes(marks);
        });
    }

    Seed seed_;
    FloatPool floats_;
    Numbered<std::unique_ptr<Map>> maps_{"map"};
    Numbered<std::unique_ptr<Heap>> heaps_{"table"};
    Numbered<std::unique_ptr<Partition>> partitions_{"partition"};
    Numbered<std::unique_ptr<Trigger>> triggers_{"trigger"};
    Numbered<std::shared_ptr<Union>> readers_{"reader"};
    std::vector<const Dictionary*> ordering_, comparing_;  // each in one of them
    OldMaps old_;
    UndoLog::Turns turns_ = 0;
    UndoLog log_{&old_, &turns_};
    Team team_{seed_, &log_, &old_, &turns_};
    uint64_t dropped_ = 0;  // entries with codes of maps that were dropped since codes were last taken back

public:
    Machine machine;
    std::atomic<uint64_t> read_operations = 0;
};

}  // namespace ivme
