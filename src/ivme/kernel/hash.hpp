// Seeded hashing of tuples, and the table that finds an id by the hash of its key.
//
// The hash mixes each word into a 128-bit product with secret multipliers, so that keys chosen without knowing the
// seed spread evenly, whatever their low bits. A slot of the table holds the hash's 32 bits and an id: most
// look-ups touch one cache line here and one record, and growing needs no record at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "array.hpp"
#include "errors.hpp"
#include "int128.hpp"
#include "portable.hpp"

namespace ivme {

inline constexpr uint32_t NIL = 0xFFFFFFFFu;

inline uint64_t fold(uint64_t a, uint64_t b) {
    UnsignedWide product = static_cast<UnsignedWide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct Seed {
    uint64_t start = 0;
    uint64_t factor = 0;

    explicit Seed(uint64_t seed) {
        start = fold(seed ^ 0x9E3779B97F4A7C15ull, 0xD6E8FEB86659FD93ull) ^ seed;
        factor = fold(start ^ 0xA0761D6478BD642Full, 0xE7037ED1A0B428DBull) | 1;
    }

    uint64_t hash(const int64_t* words, unsigned n) const {
        return hash_of(n, [words](unsigned i) { return words[i]; });
    }

    // The hash of words that need not lie side by side.
    template <class Word>
    uint64_t hash_of(unsigned n, Word word) const {
        uint64_t h = start;
        for (unsigned i = 0; i < n; ++i) h = fold(h ^ static_cast<uint64_t>(word(i)), factor) + start;
        return fold(h ^ factor, 0x9E3779B97F4A7C15ull);
    }

    uint32_t tag(const int64_t* words, unsigned n) const { return static_cast<uint32_t>(hash(words, n) >> 32); }
    template <class Word>
    uint32_t tag_of(unsigned n, Word word) const {
        return static_cast<uint32_t>(hash_of(n, word) >> 32);
    }
};

// Open addressing with linear probing, kept in the order of home positions (Robin Hood), so that a failing look-up
// stops early and deletes leave no tombstones.
//
// It grows bit by bit: the slots of the smaller table move a few with each insertion, so that none waits for all. Until
// they have moved, an id is in one of the two.
class IdTable {
public:
    uint64_t size() const { return size_; }
    uint64_t capacity() const { return now_.slots.size(); }
    size_t bytes() const { return now_.slots.bytes() + old_.slots.bytes(); }

    void prefetch(uint32_t tag) const {
        if (!size_) return;
        prefetch_line(&now_.slots[now_.home(tag)]);
        if (is_moving()) prefetch_line(&old_.slots[old_.home(tag)]);
    }

    // The first id with this tag near its home, or NIL: a guess that is nearly always right, to prefetch by.
    uint32_t guess(uint32_t tag) const {
        if (!size_) return NIL;
        uint32_t id = now_.guess(tag);
        return id == NIL && is_left(tag) ? old_.guess(tag) : id;
    }

    template <class Equal>
    uint32_t find(uint32_t tag, Equal equal) const {
        if (!size_) return NIL;
        uint32_t id = now_.find(tag, equal);
        return id == NIL && is_left(tag) ? old_.find(tag, equal) : id;
    }

    // Makes room for one more; only this can fail.
    void reserve_one() {
        if (is_moving()) move_some();
        if ((size_ + 1) * 5 > now_.slots.size() * 4) grow();
    }

    void insert(uint32_t tag, uint32_t id) {
        ++size_;
        now_.place(pack(tag, id));
    }

    // Several threads put ids into a table that has room for them, each those whose tags begin with its own bits:
    // within the slots of these tags, or false, and then `place` does it afterwards. `count` counts them all.
    bool place_within(uint32_t tag, uint32_t id, uint64_t part, unsigned bits) {
        return now_.place_before(pack(tag, id), (part + 1) * (now_.slots.size() >> bits));
    }
    void place(uint32_t tag, uint32_t id) { now_.place(pack(tag, id)); }
    void count(uint64_t ids) { size_ += ids; }

    void erase(uint32_t tag, uint32_t id) {
        uint64_t wanted = pack(tag, id);
        if (!now_.erase(tag, wanted)) old_.erase(tag, wanted);
        --size_;
    }

    // Gives what is there another id.
    void renumber(uint32_t tag, uint32_t id, uint32_t fresh) {
        uint64_t wanted = pack(tag, id);
        uint64_t* slot = now_.at(tag, wanted);
        *(slot ? slot : old_.at(tag, wanted)) = pack(tag, fresh);
    }

    void clear() {
        old_ = Slots();
        moved_ = 0;
        if (now_.slots.size() > 1024 && size_ * 16 < now_.slots.size()) {
            now_ = Slots();
        } else if (now_.slots.size()) {
            std::memset(now_.slots.data(), 0, now_.slots.bytes());
        }
        size_ = 0;
    }

    // Visits every tag with its id.
    template <class Visit>
    void each(Visit visit) const {
        for (const Slots* table : {&now_, &old_}) {
            for (size_t i = 0; i < table->slots.size(); ++i) {
                uint64_t slot = table->slots[i];
                if (slot) visit(static_cast<uint32_t>(slot >> 32), static_cast<uint32_t>(slot) - 1);
            }
        }
    }

    // Room for `count` entries, at once if many are to come.
    void reserve(uint64_t count) {
        if (now_.slots.size() > AT_ONCE && count <= size_ + FEW) {
            for (uint64_t more = count - std::min(count, size_); more && is_moving(); --more) move_some();
            if (count * 5 > now_.slots.size() * 4) grow();
            return;
        }
        unsigned bits = 3;
        while ((uint64_t{1} << bits) * 4 < count * 5) ++bits;
        if ((uint64_t{1} << bits) > now_.slots.size()) rehash(bits);
    }

private:
    static constexpr uint64_t FEW = 64;
    static constexpr size_t AT_ONCE = 4096;  // so many slots move together
    static constexpr size_t EACH_TIME = 16;  // and of more, so many with an insertion

    static uint64_t pack(uint32_t tag, uint32_t id) { return static_cast<uint64_t>(tag) << 32 | (id + 1); }

    struct Slots {
        Array<uint64_t> slots;
        uint64_t mask = 0;
        unsigned shift = 29;

        uint64_t home(uint32_t tag) const { return static_cast<uint64_t>(tag) >> shift; }

        uint32_t guess(uint32_t tag) const {
            uint64_t i = home(tag);
            for (int step = 0; step < 8; ++step, i = (i + 1) & mask) {
                uint64_t slot = slots[i];
                if (!slot) return NIL;
                if (static_cast<uint32_t>(slot >> 32) == tag) return static_cast<uint32_t>(slot) - 1;
            }
            return NIL;
        }

        template <class Equal>
        uint32_t find(uint32_t tag, Equal equal) const {
            uint64_t i = home(tag);
            for (uint64_t distance = 0;; ++distance, i = (i + 1) & mask) {
                uint64_t slot = slots[i];
                if (!slot) return NIL;
                uint32_t other = static_cast<uint32_t>(slot >> 32);
                if (other == tag) {
                    uint32_t id = static_cast<uint32_t>(slot) - 1;
                    if (equal(id)) return id;
                } else if (((i - home(other)) & mask) < distance) {
                    return NIL;
                }
            }
        }

        // The slot with this content, or null.
        uint64_t* at(uint32_t tag, uint64_t wanted) {
            if (!slots.size()) return nullptr;
            uint64_t i = home(tag);
            for (uint64_t distance = 0;; ++distance, i = (i + 1) & mask) {
                if (slots[i] == wanted) return &slots[i];
                if (!slots[i] || ((i - home(static_cast<uint32_t>(slots[i] >> 32))) & mask) < distance) return nullptr;
            }
        }

        bool erase(uint32_t tag, uint64_t wanted) {
            uint64_t* slot = at(tag, wanted);
            if (slot) close(static_cast<uint64_t>(slot - slots.data()));
            return slot;
        }

        // Empties a slot, and moves back those behind it that are not at home.
        void close(uint64_t i) {
            for (;;) {
                uint64_t next = (i + 1) & mask;
                uint64_t slot = slots[next];
                if (!slot || home(static_cast<uint32_t>(slot >> 32)) == next) break;
                slots[i] = slot;
                i = next;
            }
            slots[i] = 0;
        }

        // False if no slot is free between the home and the end.
        bool place_before(uint64_t carried, uint64_t end) {
            uint64_t i = home(static_cast<uint32_t>(carried >> 32));
            while (i < end && slots[i]) ++i;
            if (i < end) place(carried);
            return i < end;
        }

        void place(uint64_t carried) {
            uint64_t i = home(static_cast<uint32_t>(carried >> 32));
            for (uint64_t distance = 0;; ++distance, i = (i + 1) & mask) {
                uint64_t slot = slots[i];
                if (!slot) {
                    slots[i] = carried;
                    return;
                }
                uint64_t other = (i - home(static_cast<uint32_t>(slot >> 32))) & mask;
                if (other < distance) {
                    std::swap(slots[i], carried);
                    distance = other;
                }
            }
        }
    };

    bool is_moving() const { return old_.slots.size(); }
    // Whether an id with this tag may not have moved: it is not before its home.
    bool is_left(uint32_t tag) const { return is_moving() && old_.home(tag) < left_; }

    // From the last slot to the first: what is behind a slot has moved, so that emptying it moves none back. The slots
    // that hold what went over the end come first. Memory goes back bit by bit, too.
    void move_some() noexcept {
        for (size_t n = 0; n < EACH_TIME && moved_ < old_.slots.size(); ++n, ++moved_) {
            uint64_t i = (start_ - moved_) & old_.mask;
            if (old_.slots[i]) now_.place(std::exchange(old_.slots[i], 0));
            if (moved_ < wrapped_) continue;
            left_ = i;
            if (i % old_.slots.DROPPED == 0) old_.slots.drop_zeroes(i);
        }
        if (moved_ == old_.slots.size()) old_ = Slots();
    }

    void grow() {
        if (is_moving()) return rehash(33 - now_.shift);
        if (now_.slots.size() <= AT_ONCE) return rehash(now_.slots.size() ? 33 - now_.shift : 3);
        Slots larger = empty(33 - now_.shift);
        old_ = std::exchange(now_, std::move(larger));
        moved_ = 0;
        start_ = old_.mask;
        while (old_.slots[(start_ + 1) & old_.mask]) start_ = (start_ + 1) & old_.mask;
        wrapped_ = (start_ + 1) & old_.mask;
        left_ = old_.slots.size();
    }

    void rehash(unsigned bits) {
        Slots fresh = empty(bits);
        fresh.slots.touch();
        each([&](uint32_t tag, uint32_t id) { fresh.place(pack(tag, id)); });
        bytes_copied += bytes();
        now_ = std::move(fresh);
        old_ = Slots();
    }

    static Slots empty(unsigned bits) {
        if (bits > 32) throw Capacity("a map or an index cannot hold more than 3.4 billion entries");
        Slots made;
        made.slots.zeroed(uint64_t{1} << bits);
        made.mask = made.slots.size() - 1;
        made.shift = 32 - bits;
        return made;
    }

    Slots now_, old_;
    uint64_t size_ = 0;
    size_t moved_ = 0, start_ = 0;
    size_t wrapped_ = 0;  // slots with what went over the end
    uint64_t left_ = 0;   // from here on, all slots have moved
};

}  // namespace ivme
