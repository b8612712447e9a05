// Maps as a compiler of triggers makes them: from all columns of a key to its aggregates, with an index for each column
// that a trigger slices by. An entry goes when its count is zero.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../maps.hpp"

// How many rows a join has, and a sum over them.
struct Sum {
    double sum = 0;
    int64_t count = 0;

    Sum& operator+=(const Sum& change) {
        sum += change.sum;
        count += change.count;
        return *this;
    }
    friend Sum operator*(const Sum& left, int64_t times) {
        return {left.sum * static_cast<double>(times), left.count * times};
    }
};

inline bool vanished(int64_t count) { return count == 0; }
inline bool vanished(const Sum& sum) { return sum.count == 0; }

inline constexpr uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ull, SALT = 0xA0761D6478BD642Full;

inline uint64_t folded(uint64_t word) {
    auto product = static_cast<unsigned __int128>(word ^ SALT) * MULTIPLIER;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class Word>
uint64_t loaded(const char* from) {
    Word word;
    std::memcpy(&word, from, sizeof(Word));
    return word;
}

// Up to eight bytes as a word.
inline uint64_t last_word(const char* from, size_t size) {
    if (size >= 4) return loaded<uint32_t>(from) << 32 | loaded<uint32_t>(from + size - 4);
    if (size == 0) return 0;
    return loaded<uint8_t>(from) << 16 | loaded<uint8_t>(from + size / 2) << 8 | loaded<uint8_t>(from + size - 1);
}

inline uint64_t word_of(int64_t value) { return static_cast<uint64_t>(value); }
inline uint64_t word_of(double value) { return std::bit_cast<uint64_t>(value + 0.0); }  // no negative zero
inline uint64_t word_of(std::string_view text) {
    const char* from = text.data();
    size_t size = text.size();
    uint64_t hash = size;
    for (; size > 8; from += 8, size -= 8) hash = folded(hash ^ loaded<uint64_t>(from));
    return hash ^ last_word(from, size);
}

template <class... Columns>
uint64_t hash_of(const Columns&... columns) {
    uint64_t hash = 0;
    ((hash = folded(hash ^ word_of(columns))), ...);
    return hash;
}

// Numbers of entries by hash: open addressing, linear probing. Entries are numbered from 1; 0 is an empty slot.
class Index {
public:
    struct Slot {
        uint32_t hash = 0, entry = 0;
    };

    // The slot of the entry that `same` accepts; an empty one if there is none.
    template <class Same>
    Slot& slot(uint32_t hash, Same same) {
        size_t at = hash & mask_;
        while (slots_[at].entry && !(slots_[at].hash == hash && same(slots_[at].entry))) at = (at + 1) & mask_;
        return slots_[at];
    }

    // Makes place for one more, before its slot is looked up.
    void reserve() {
        if ((size_ + 1) * 5 > slots_.size() * 3) grow();
    }

    void fill(Slot& slot, uint32_t hash, uint32_t entry) {
        slot = {hash, entry};
        ++size_;
    }

    void clear(Slot& slot) {
        --size_;
        size_t at = static_cast<size_t>(&slot - slots_.data());
        for (size_t next = (at + 1) & mask_; slots_[next].entry; next = (next + 1) & mask_) {
            if (((next - slots_[next].hash) & mask_) < ((next - at) & mask_)) continue;
            slots_[at] = slots_[next];
            at = next;
        }
        slots_[at] = {};
    }

private:
    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        for (const Slot& each : old) {
            if (each.entry) slot(each.hash, [](uint32_t) { return false; }) = each;
        }
    }

    std::vector<Slot> slots_ = std::vector<Slot>(16);
    size_t size_ = 0, mask_ = 15;
};

// A map whose entries lie in a pool; those with an equal column are linked, from the newest on. A column is a type
// whose `of` takes it from a key.
template <class Key, class Value, class... Columns>
class Map {
public:
    void add(const Key& key, const Value& change) {
        auto hash = static_cast<uint32_t>(hashed(key));
        keys_.reserve();
        Index::Slot& slot = keys_.slot(hash, [&](uint32_t entry) { return entries_[entry].key == key; });
        if (!slot.entry) insert(slot, hash, key);
        Value& value = entries_[slot.entry].value;
        value += change;
        if (vanished(value)) erase(slot);
    }

    const Value* find(const Key& key) {
        auto hash = static_cast<uint32_t>(hashed(key));
        uint32_t found = keys_.slot(hash, [&](uint32_t entry) { return entries_[entry].key == key; }).entry;
        return found ? &entries_[found].value : nullptr;
    }

    // The entries whose column has a value.
    template <class Column, class Visit>
    void each(int64_t value, Visit visit) {
        uint32_t entry = head<Column>(value).entry;
        for (; entry; entry = entries_[entry].links[place_of<Column>()].next) {
            visit(entries_[entry].key, entries_[entry].value);
        }
    }

private:
    struct Link {
        uint32_t next = 0, previous = 0;
    };
    struct Entry {
        Key key{};
        Value value{};
        std::array<Link, sizeof...(Columns)> links{};
    };

    template <class Column>
    static constexpr size_t place_of() {
        size_t place = 0;
        (void)((std::is_same_v<Column, Columns> || (++place, false)) || ...);
        return place;
    }

    static uint32_t hash_of_column(int64_t value) { return static_cast<uint32_t>(hashed(value)); }

    void insert(Index::Slot& slot, uint32_t hash, const Key& key) {
        uint32_t entry = fresh();
        entries_[entry].key = key;
        keys_.fill(slot, hash, entry);
        (link<Columns>(entry), ...);
    }

    uint32_t fresh() {
        if (free_.empty()) {
            entries_.emplace_back();
            return static_cast<uint32_t>(entries_.size() - 1);
        }
        uint32_t entry = free_.back();
        free_.pop_back();
        return entry;
    }

    void erase(Index::Slot& slot) {
        uint32_t entry = slot.entry;
        (unlink<Columns>(entry), ...);
        keys_.clear(slot);
        entries_[entry].value = {};
        free_.push_back(entry);
    }

    template <class Column>
    Index::Slot& head(int64_t value) {
        return slices_[place_of<Column>()].slot(
            hash_of_column(value), [&](uint32_t entry) { return Column::of(entries_[entry].key) == value; });
    }

    template <class Column>
    void link(uint32_t entry) {
        constexpr size_t place = place_of<Column>();
        slices_[place].reserve();
        int64_t value = Column::of(entries_[entry].key);
        Index::Slot& slot = head<Column>(value);
        entries_[entry].links[place] = {slot.entry, 0};
        if (slot.entry) {
            entries_[slot.entry].links[place].previous = entry;
            slot.entry = entry;
        } else {
            slices_[place].fill(slot, hash_of_column(value), entry);
        }
    }

    template <class Column>
    void unlink(uint32_t entry) {
        constexpr size_t place = place_of<Column>();
        auto [next, previous] = entries_[entry].links[place];
        if (next) entries_[next].links[place].previous = previous;
        if (previous) {
            entries_[previous].links[place].next = next;
            return;
        }
        Index::Slot& slot = head<Column>(Column::of(entries_[entry].key));
        slot.entry = next;
        if (!next) slices_[place].clear(slot);
    }

    std::vector<Entry> entries_ = std::vector<Entry>(1);
    std::vector<uint32_t> free_;
    Index keys_;
    std::array<Index, sizeof...(Columns)> slices_;
};

// A map that is read by its whole key only has its entries in the table.
template <class Key, class Value>
class Map<Key, Value> {
public:
    // What there is of the key after the change.
    Value add(const Key& key, const Value& change) {
        Value& value = entries_[key];
        value += change;
        Value after = value;
        if (vanished(after)) entries_.erase(key);
        return after;
    }

    const Value* find(const Key& key) { return entries_.find(key); }

    template <class Visit>
    void each(Visit visit) {
        entries_.each(visit);
    }

private:
    FlatMap<Key, Value> entries_;
};
