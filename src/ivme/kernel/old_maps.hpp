// Maps as they were, for readers that began before they changed.
//
// A cursor reads block by block. Before a map changes, its entries are handed over to the cursors that are open on it,
// and the map goes on with a copy: one copy for all of them, made once, however long they read. What cursors hold of a
// map, pointers and ids, stays as it is. A change costs this copy, some nanoseconds an entry, only for maps that are
// being read, and only the first change since a cursor was opened.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "map.hpp"

namespace ivme {

// A reader of maps that goes on with what they were.
class MapReader {
public:
    MapReader() = default;
    MapReader(const MapReader&) = delete;
    MapReader& operator=(const MapReader&) = delete;
    virtual ~MapReader() = default;
    // The entries of a map that is about to change are in `old` from now on.
    virtual void go_on_with(const Map& changed, const std::shared_ptr<const Map>& old) = 0;
    // They are nowhere: there is no memory for them.
    virtual void give_up() noexcept = 0;
    // Marks codes that it holds itself, and no map.
    virtual void mark_codes(CodeMarks&) const {}
};

class OldMaps {
public:
    // All old maps together take no more than this; readers of others give up.
    std::atomic<size_t> most_bytes = size_t{1} << 28;

    // The reader sees these maps as they are now. Its caller has the kernel's lock, of either kind.
    void pin(const std::vector<const Map*>& maps, MapReader* reader) {
        std::lock_guard guard(mutex_);
        for (const Map* map : maps) readers_[map].push_back(reader);
        pinned_ = !readers_.empty();
    }

    // The reader has codes of its own until it is unpinned.
    void hold(const MapReader* reader) {
        std::lock_guard guard(mutex_);
        holders_.push_back(reader);
    }

    void mark_codes(CodeMarks& marks) const {
        std::lock_guard guard(mutex_);
        visit_all([&](const Map& map) { map.mark_entries(marks); });
        for (const MapReader* reader : holders_) reader->mark_codes(marks);
    }

    // Needs no lock: readers may go at any time.
    void unpin(const MapReader* reader) noexcept {
        std::lock_guard guard(mutex_);
        std::erase(holders_, reader);
        for (auto each = readers_.begin(); each != readers_.end();) {
            std::erase(each->second, reader);
            each = each->second.empty() ? readers_.erase(each) : std::next(each);
        }
        pinned_ = !readers_.empty();
    }

    // To be called before a map changes, or is `emptied`, under the writer's lock.
    void leave(Map& map, bool emptied = false) {
        if (!pinned_) return;
        std::lock_guard guard(mutex_);
        auto found = readers_.find(&map);
        if (found == readers_.end()) return;
        std::shared_ptr<const Map> old = handed_over(map, emptied);
        for (MapReader* reader : found->second) tell(*reader, map, old);
        readers_.erase(found);
        pinned_ = !readers_.empty();
    }

    // How many maps have readers.
    size_t pinned() const {
        std::lock_guard guard(mutex_);
        return readers_.size();
    }

    size_t bytes() const {
        size_t total = 0;
        each([&](const Map& map) { total += map.bytes(); });
        return total;
    }

    template <class Visit>
    void each(Visit visit) const {
        std::lock_guard guard(mutex_);
        visit_all(visit);
    }

private:
    template <class Visit>
    void visit_all(Visit visit) const {
        for (const auto& known : old_) {
            if (auto map = known.lock()) visit(*map);
        }
    }

    // Null if there is no room for it; then the map is as it was.
    std::shared_ptr<const Map> handed_over(Map& map, bool emptied) noexcept {
        try {
            std::erase_if(old_, [](const auto& known) { return known.expired(); });
            size_t total = map.bytes();
            visit_all([&](const Map& each) { total += each.bytes(); });
            if (total > most_bytes) return nullptr;
            old_.reserve(old_.size() + 1);
            std::shared_ptr<const Map> old = map.hand_over(!emptied);
            old_.push_back(old);
            return old;
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    static void tell(MapReader& reader, const Map& map, const std::shared_ptr<const Map>& old) noexcept {
        if (!old) return reader.give_up();
        try {
            reader.go_on_with(map, old);
        } catch (const std::bad_alloc&) {
            reader.give_up();
        }
    }

    mutable std::mutex mutex_;
    std::atomic<bool> pinned_ = false;  // whether there is a reader at all
    std::unordered_map<const Map*, std::vector<MapReader*>> readers_;
    std::vector<const MapReader*> holders_;
    std::vector<std::weak_ptr<const Map>> old_;
};

}  // namespace ivme
