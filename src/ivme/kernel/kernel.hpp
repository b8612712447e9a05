// A kernel: maps, the triggers that change them, the readers that enumerate them. One writer, many readers.
//
// Everything but the locks themselves is used under a lock: maps, triggers and readers are looked up by number only
// there, so that none can be dropped in between. While a transaction is open, only its own thread gets a lock.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "compile.hpp"
#include "lock.hpp"
#include "machine.hpp"
#include "old_maps.hpp"
#include "schedule.hpp"
#include "team.hpp"
#include "undo.hpp"
#include "union.hpp"

namespace ivme {

class Kernel {
public:
    explicit Kernel(uint64_t seed) : seed_(seed), machine(seed_) {}

    Map& map(size_t id) {
        if (id >= maps_.size() || !maps_[id]) throw std::out_of_range("there is no such map");
        return *maps_[id];
    }
    Trigger& trigger(size_t id) {
        if (id >= triggers_.size() || !triggers_[id]) throw std::out_of_range("there is no such trigger");
        return *triggers_[id];
    }
    std::shared_ptr<Union> reader(size_t id) {
        if (id >= readers_.size() || !readers_[id]) throw std::out_of_range("there is no such reader");
        return readers_[id];
    }

    size_t add_map(unsigned arity, const std::vector<Slot>& slots) {
        maps_.push_back(std::make_unique<Map>(arity, layout_of(slots), seed_));
        return maps_.size() - 1;
    }

    const Seed& seed() const { return seed_; }
    Layout layout_of(const std::vector<Slot>& slots) { return Layout(slots, &floats_); }

    void drop_map(size_t id) {
        if (map(id).users) {
            throw std::invalid_argument("a trigger, a partition, a reader or an open cursor still uses the map");
        }
        if (in_transaction_) throw std::invalid_argument("a map cannot be dropped within a transaction");
        dropped_ += map(id).shrunk();
        maps_[id].reset();
    }

    Heap& heap(size_t id) {
        if (id >= heaps_.size() || !heaps_[id]) throw std::out_of_range("there is no such table");
        return *heaps_[id];
    }
    size_t add_heap(unsigned columns, std::vector<unsigned> key) {
        heaps_.push_back(std::make_unique<Heap>(columns, std::move(key), seed_));
        return heaps_.size() - 1;
    }
    void drop_heap(size_t id) {
        if (heap(id).users) throw std::invalid_argument("a trigger still changes the table");
        if (in_transaction_) throw std::invalid_argument("a table cannot be dropped within a transaction");
        dropped_ += heap(id).marked_size();
        heaps_[id].reset();
    }

    size_t add_trigger(std::unique_ptr<Trigger> trigger) {
        triggers_.push_back(std::move(trigger));
        return triggers_.size() - 1;
    }

    void drop_trigger(size_t id) {
        trigger(id);
        triggers_[id].reset();
    }

    // Hands a trigger over that only reads.
    std::unique_ptr<Trigger> take_probe(size_t id) {
        const Trigger& probe = trigger(id);
        if (!probe.partitions.empty() || !probe.heaps.empty() || !probe.overlays.empty() || probe.emits.size() != 1) {
            throw std::invalid_argument("a probe reads, and emits one delta");
        }
        return std::move(triggers_[id]);
    }

    Partition& partition(size_t id) {
        if (id >= partitions_.size() || !partitions_[id]) throw std::out_of_range("there is no such partition");
        return *partitions_[id];
    }
    size_t add_partition(std::unique_ptr<Partition> partition) {
        partitions_.push_back(std::move(partition));
        return partitions_.size() - 1;
    }
    void drop_partition(size_t id) {
        if (partition(id).users) throw std::invalid_argument("a trigger still watches the partition");
        if (in_transaction_) throw std::invalid_argument("a partition cannot be dropped within a transaction");
        partitions_[id].reset();
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

    size_t add_reader(std::shared_ptr<Union> reader) {
        readers_.push_back(std::move(reader));
        return readers_.size() - 1;
    }
    void drop_reader(size_t id) {
        reader(id);
        readers_[id].reset();
    }

    // Hands over the loops of a reader that has one branch of one segment.
    std::shared_ptr<Reader> take_loops(size_t id) {
        std::shared_ptr<Union> plan = reader(id);
        if (plan->branches.size() != 1 || plan->branches[0].segments.size() != 1) {
            throw std::invalid_argument("a part of a reader has one branch of one segment");
        }
        readers_[id].reset();
        return plan->branches[0].segments[0];
    }

    using Reading = std::shared_lock<TurnLock>;
    using Writing = std::unique_lock<TurnLock>;

    Reading reading() const { return wait<Reading>(); }
    Writing writing() const { return wait<Writing>(); }
    // Without waiting, or for so long; the lock may be empty.
    Reading try_reading(TurnLock::Clock::duration patience = {}) const { return attempt<Reading>(patience); }
    Writing try_writing(TurnLock::Clock::duration patience = {}) const { return attempt<Writing>(patience); }
    // For a cursor that has pinned its maps: what it reads is as it was, also while a transaction is open.
    Reading reading_pinned() const { return Reading(mutex_); }
    TurnLock::Waits waits() const { return mutex_.waits(); }

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
    void run_jobs(const std::vector<Job>& jobs) { team_.run(jobs, machine); }

    // Gives back what a large batch needed.
    void trim(Trigger& trigger) {
        for (Delta& delta : trigger.registers) delta.trim();
        machine.trim();
        team_.trim();
    }

    // Gives back the buffers that batches left for the next ones.
    void release_buffers() noexcept {
        for (const auto& trigger : triggers_) {
            if (!trigger) continue;
            for (Delta& delta : trigger->registers) delta.trim(0);
        }
        machine.release();
        log_.release();
        team_.release();
    }

    void begin() {
        if (in_transaction_) throw std::invalid_argument("a transaction is already open");
        in_transaction_ = true;
        owner_ = std::this_thread::get_id();
    }
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
        if (in_transaction_) throw std::invalid_argument("a map cannot be cleared within a transaction");
        old_.leave(map(id), true);
        map(id).clear();
        ++map(id).version;
    }

    void load_map(size_t id, const int64_t* records, size_t words) {
        if (in_transaction_) throw std::invalid_argument("a map cannot be loaded within a transaction");
        old_.leave(map(id));
        auto strings = hold_dictionaries();
        map(id).load(records, words);
        ++map(id).version;
    }

    void order_by(const Dictionary* dictionary) {
        if (std::find(dictionaries_.begin(), dictionaries_.end(), dictionary) == dictionaries_.end()) {
            dictionaries_.push_back(dictionary);
        }
    }
    bool orders_by_strings() const { return !dictionaries_.empty(); }
    // Ordered indexes compare strings, so no string may be added meanwhile.
    std::vector<std::shared_lock<std::shared_mutex>> hold_dictionaries() const {
        std::vector<std::shared_lock<std::shared_mutex>> locks;
        for (const Dictionary* dictionary : dictionaries_) locks.emplace_back(dictionary->mutex);
        return locks;
    }

    // Whether so many codes may be held no more that a walk over all entries costs little for each of them. Few strings
    // are not worth it.
    bool is_sweep_due(const std::vector<Dictionary*>& dictionaries, uint64_t least) const {
        uint64_t strings = 0, kept = 0, added = 0, entries = 0, shrunk = dropped_;
        for (const Dictionary* each : dictionaries) {
            strings += each->size();
            kept += each->kept();
            added += each->added();
        }
        if (kept + added < least) return false;
        for (const auto& map : maps_) {
            if (!map) continue;
            entries += map->size();
            shrunk += map->shrunk();
        }
        for (const auto& heap : heaps_) {
            if (!heap) continue;
            entries += heap->size();
            shrunk += heap->shrunk();
        }
        uint64_t average = strings ? (kept + added) / strings : 1;
        return added + average * shrunk > kept / 2 + entries / 4;
    }

    // Takes back the codes that neither an entry nor a word of `held` is. Deltas and the undo log are empty between
    // transactions.
    void sweep_codes(const std::vector<Dictionary*>& dictionaries,
                     const std::vector<std::pair<const int64_t*, size_t>>& held) {
        if (in_transaction_) throw std::invalid_argument("codes cannot be taken back within a transaction");
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
        for (const auto& map : maps_) total += map ? map->bytes() : 0;
        for (const auto& heap : heaps_) total += heap ? heap->bytes() : 0;
        for (const auto& partition : partitions_) total += partition ? partition->bytes() : 0;
        for (const auto& trigger : triggers_) {
            if (!trigger) continue;
            for (const Delta& delta : trigger->registers) total += delta.bytes();
            for (const Overlay& overlay : trigger->overlays) total += overlay.map->bytes();
        }
        return total;
    }

    uint64_t digest() const {
        uint64_t total = 0;
        for (size_t i = 0; i < maps_.size(); ++i) total += maps_[i] ? maps_[i]->digest(i + 1) : 0;
        for (size_t i = 0; i < heaps_.size(); ++i) total += heaps_[i] ? heaps_[i]->digest(~i) : 0;
        return total;
    }

    void verify() const {
        for (const auto& map : maps_) {
            if (map) map->verify();
        }
        for (const auto& heap : heaps_) {
            if (heap) heap->verify();
        }
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
        if (!in_transaction_) commit_logs();
    }

    // Frees the long floats that no map has, if there may be many. Deltas and the undo log are empty between
    // transactions.
    void free_floats() noexcept {
        if (!floats_.is_crowded()) return;
        size_t entries = 0;
        for (const auto& map : maps_) {
            if (!map || !map->layout().has_floats) continue;
            map->mark_floats();
            entries += map->size();
        }
        old_.each([&](const Map& map) {
            map.mark_floats();
            entries += map.size();
        });
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

    // Also for a transaction of another thread, whose end an exception may have kept it from.
    Writing ending() const { return Writing(mutex_); }
    Writing try_ending(TurnLock::Clock::duration patience) const {
        return Writing(mutex_, TurnLock::Clock::now() + patience);
    }

    // The numbers of what is there: maps, partitions, triggers, readers, tables.
    std::array<std::vector<size_t>, 5> alive() const {
        return {numbers_of(maps_), numbers_of(partitions_), numbers_of(triggers_), numbers_of(readers_),
                numbers_of(heaps_)};
    }

private:
    template <class Visit>
    void misfits_of(const Map* map, Visit visit) const {
        map->misfits([&](const int64_t* row) {
            auto is_it = [&](const auto& other) { return other.get() == map; };
            auto place = std::find_if(maps_.begin(), maps_.end(), is_it);
            if (place != maps_.end()) visit(static_cast<size_t>(place - maps_.begin()), row);
        });
    }

    void commit_logs() {
        for (UndoLog* log : team_.logs()) log->commit();
        free_floats();
    }

    template <class Owned>
    static std::vector<size_t> numbers_of(const std::vector<Owned>& all) {
        std::vector<size_t> numbers;
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i]) numbers.push_back(i);
        }
        return numbers;
    }

    void mark_codes(CodeMarks& marks) {
        old_.each([&](const Map& map) { map.mark_entries(marks); });
        for (const auto& map : maps_) {
            if (map) map->mark_codes(marks);
        }
        for (const auto& heap : heaps_) {
            if (heap) heap->mark_codes(marks);
        }
        for (const auto& partition : partitions_) {
            if (!partition) continue;
            partition->rising.mark_codes(marks);
            partition->falling.mark_codes(marks);
        }
    }

    bool is_foreign() const { return in_transaction_ && owner_ != std::this_thread::get_id(); }

    template <class Lock>
    Lock attempt(TurnLock::Clock::duration patience) const {
        Lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock() && patience.count()) lock = Lock(mutex_, TurnLock::Clock::now() + patience);
        if (lock.owns_lock() && is_foreign()) lock.unlock();
        return lock;
    }

    template <class Lock>
    Lock wait() const {
        Lock lock(mutex_);
        if (is_foreign()) closed_.wait(lock, [&] { return !is_foreign(); });
        return lock;
    }

    void close() {
        if (!in_transaction_) return;
        in_transaction_ = false;
        closed_.notify_all();
    }

    Seed seed_;
    FloatPool floats_;
    std::vector<std::unique_ptr<Map>> maps_;
    std::vector<std::unique_ptr<Heap>> heaps_;
    std::vector<std::unique_ptr<Partition>> partitions_;
    std::vector<std::unique_ptr<Trigger>> triggers_;
    std::vector<std::shared_ptr<Union>> readers_;
    std::vector<const Dictionary*> dictionaries_;
    OldMaps old_;
    UndoLog::Turns turns_ = 0;
    UndoLog log_{&old_, &turns_};
    Team team_{seed_, &log_, &old_, &turns_};
    mutable TurnLock mutex_;
    mutable std::condition_variable_any closed_;
    bool in_transaction_ = false;
    uint64_t dropped_ = 0;  // entries with codes of maps that were dropped since codes were last taken back
    std::thread::id owner_;

public:
    Machine machine;
    std::atomic<uint64_t> read_operations = 0;
};

}  // namespace ivme
