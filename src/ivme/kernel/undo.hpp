// The undo log of a transaction: for each changed entry its codes and old payload, so that going back restores
// exactly what was there, floats included. It needs no delta and, while the maps are `undoing`, no memory.
//
// Each thread of a transaction writes a log of its own. What they did to one map was done one after the other, and is
// numbered, so that it is undone in that order, backwards.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "array.hpp"
#include "heap.hpp"
#include "map.hpp"
#include "old_maps.hpp"

namespace ivme {

class UndoLog {
public:
    using Turns = std::atomic<int64_t>;

    // With `old`, maps are left to the readers that are open on them before they change. Logs of one transaction share
    // their turns.
    explicit UndoLog(OldMaps* old = nullptr, Turns* turns = nullptr) : old_(old), turns_(turns) {}

    size_t bytes() const { return words_.bytes(); }

    bool empty() const { return touched_.empty() && heaps_.empty(); }
    const std::vector<Map*>& touched() const { return touched_; }

    // A heap knows itself how to undo what is about to be done to it.
    void touch(Heap* heap) {
        if (std::find(heaps_.begin(), heaps_.end(), heap) == heaps_.end()) heaps_.push_back(heap);
    }

    // Where the next rows of this map go; `close` says how many came, and the map by its place in `touched`.
    void open(Map* map, size_t rows) {
        if (old_) old_->leave(*map);
        words_.reserve(words_.size() + rows * (map->arity() + map->layout().words) + TRAILER);
        if (std::find(touched_.begin(), touched_.end(), map) == touched_.end()) touched_.push_back(map);
    }
    int64_t* next() { return words_.data() + words_.size(); }
    void wrote(const Map* map) { words_.resize(words_.size() + map->arity() + map->layout().words); }
    size_t rows() const { return rows_; }
    void close(Map* map, size_t rows) {
        rows_ += rows;
        words_.push(turns_ ? turns_->fetch_add(1) : 0);
        words_.push(std::find(touched_.begin(), touched_.end(), map) - touched_.begin());
        words_.push(static_cast<int64_t>(rows));
    }

    void commit() {
        for (Map* map : touched_) {
            ++map->version;
            map->commit();
        }
        for (Heap* heap : heaps_) heap->commit();
        reset();
    }

    // Undoes what some logs say.
    template <class Logs>
    static void roll_back(const Logs& logs) {
        for (UndoLog* log : logs) {
            for (Heap* heap : log->heaps_) heap->roll_back();
            for (Map* map : log->touched_) map->undoing(true);
        }
        auto last = [](const UndoLog* a, const UndoLog* b) { return a->last_turn() < b->last_turn(); };
        for (;;) {
            UndoLog* log = *std::max_element(logs.begin(), logs.end(), last);
            if (!log->words_.size()) break;
            log->undo_last();
        }
        for (UndoLog* log : logs) {
            for (Map* map : log->touched_) {
                map->undoing(false);
                map->commit();
                ++map->version;
            }
            log->reset();
        }
    }

    // Gives up its buffer, between two transactions.
    void release() noexcept {
        if (empty()) words_.release();
    }

private:
    static constexpr size_t TRAILER = 3;  // behind rows of a map: their turn, their map and their number

    int64_t last_turn() const { return words_.size() ? words_[words_.size() - TRAILER] : -1; }

    void undo_last() {
        size_t end = words_.size();
        size_t rows = static_cast<size_t>(words_[end - 1]);
        Map* map = touched_[static_cast<size_t>(words_[end - 2])];
        end -= TRAILER;
        size_t width = map->arity() + map->layout().words;
        for (; rows; --rows) {
            end -= width;
            map->restore(words_.data() + end, words_.data() + end + map->arity());
        }
        words_.resize(end);
    }

    void reset() {
        words_.trim(size_t{1} << 18);
        rows_ = 0;
        touched_.clear();
        heaps_.clear();
    }

    OldMaps* old_;
    Turns* turns_;
    Array<int64_t> words_;
    size_t rows_ = 0;  // entries that were changed
    std::vector<Map*> touched_;
    std::vector<Heap*> heaps_;
};

}  // namespace ivme
