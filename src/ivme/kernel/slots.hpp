// The slots of a hash table: each holds the 32 bits of a hash, which are a tag, and an id. Eight of them are a bucket,
// which is a cache line where the table is large, and are compared at once: there is nothing to guess for the processor
// but whether a bucket is full.
//
// An id is in the bucket at home, or, if that was full, in the first behind it that was not. So a bucket with an empty
// slot ends every search, and deleting from a full one moves an id from behind into the empty slot: no slot is marked
// as deleted.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "array.hpp"
#include "errors.hpp"

#if (defined(__SSE2__) || defined(_M_X64)) && !defined(IVME_NO_SSE2)
#include <emmintrin.h>
#define IVME_SSE2 1
#endif

namespace ivme {

inline constexpr uint32_t NIL = 0xFFFFFFFFu;

class Slots {
public:
    static constexpr uint64_t BUCKET = 8;

    Slots() = default;
    explicit Slots(unsigned bits) : shift_(32 - bits) {
        if (bits > 32) throw Capacity("a map or an index cannot hold more than 3.4 billion entries");
        slots_.zeroed(uint64_t{1} << bits);
    }
    Slots(Slots&&) = default;
    Slots& operator=(Slots&&) = default;
    explicit Slots(const Slots& other) : slots_(other.slots_), shift_(other.shift_) {}
    Slots& operator=(const Slots&) = delete;
    ~Slots() = default;

    uint64_t size() const { return slots_.size(); }
    size_t bytes() const { return slots_.bytes(); }
    unsigned bits() const { return 32 - shift_; }
    Array<uint64_t>& array() { return slots_; }

    static uint64_t pack(uint32_t tag, uint32_t id) { return static_cast<uint64_t>(tag) << 32 | (id + 1); }
    static uint32_t tag_of(uint64_t slot) { return static_cast<uint32_t>(slot >> 32); }
    static uint32_t id_of(uint64_t slot) { return static_cast<uint32_t>(slot) - 1; }
    uint64_t operator[](uint64_t i) const { return slots_[i]; }

    // The first slot of the bucket at home.
    uint64_t home(uint32_t tag) const { return static_cast<uint64_t>(tag) >> shift_ & ~(BUCKET - 1); }
    const uint64_t* address(uint32_t tag) const { return slots_.data() + home(tag); }
    // The bucket behind one.
    uint64_t next(uint64_t bucket) const { return (bucket + BUCKET) & (size() - 1); }

    uint32_t guess(uint32_t tag) const {
        uint64_t bucket = home(tag);
        unsigned same = look(bucket, tag).same;
        return same ? id_of(slots_[bucket + first(same)]) : NIL;
    }

    template <class Equal>
    uint32_t find(uint32_t tag, Equal equal) const {
        for (uint64_t bucket = home(tag);; bucket = next(bucket)) {
            auto [same, empty] = look(bucket, tag);
            for (; same; same &= same - 1) {
                uint32_t id = id_of(slots_[bucket + first(same)]);
                if (equal(id)) return id;
            }
            if (empty) return NIL;
        }
    }

    // The slot with this content, or null.
    uint64_t* at(uint64_t content) {
        if (!size()) return nullptr;
        for (uint64_t bucket = home(tag_of(content));; bucket = next(bucket)) {
            auto [same, empty] = look(bucket, tag_of(content));
            for (; same; same &= same - 1) {
                uint64_t& slot = slots_[bucket + first(same)];
                if (slot == content) return &slot;
            }
            if (empty) return nullptr;
        }
    }

    void place(uint64_t content) {
        for (uint64_t bucket = home(tag_of(content));; bucket = next(bucket)) {
            unsigned empty = empties(bucket);
            if (!empty) continue;
            slots_[bucket + first(empty)] = content;
            return;
        }
    }
    // The same before that slot, the first of a bucket; false if there is no room.
    bool place_before(uint64_t content, uint64_t end) {
        for (uint64_t bucket = home(tag_of(content)); bucket < end; bucket += BUCKET) {
            unsigned empty = empties(bucket);
            if (!empty) continue;
            slots_[bucket + first(empty)] = content;
            return true;
        }
        return false;
    }

    bool erase(uint64_t content) {
        uint64_t* slot = at(content);
        if (slot) close(static_cast<uint64_t>(slot - slots_.data()));
        return slot;
    }

    uint64_t take(uint64_t i) { return std::exchange(slots_[i], 0); }
    bool is_full(uint64_t bucket) const { return !empties(bucket); }

    // Fills empty slots with many ids. It counts what is in the buckets, as their slots were written just before, and a
    // processor waits to read several of them at once.
    class Filling {
    public:
        explicit Filling(Slots& slots) : slots_(slots) { used_.zeroed(slots.size() / BUCKET); }

        void place(uint64_t content) {
            uint64_t bucket = slots_.home(tag_of(content)) / BUCKET;
            while (used_[bucket] == BUCKET) bucket = (bucket + 1) & (used_.size() - 1);
            slots_.slots_[bucket * BUCKET + used_[bucket]++] = content;
        }

    private:
        Slots& slots_;
        Array<uint8_t> used_;
    };

private:
    // Of a bucket's slots, a bit for each that has a tag, or is empty.
    struct Seen {
        unsigned same, empty;
    };

    static unsigned first(unsigned bits) { return static_cast<unsigned>(std::countr_zero(bits)); }

    // Empties a slot. If its bucket was full, ids behind it may have been meant for it, or for one before it.
    void close(uint64_t hole) {
        uint64_t bucket = hole & ~(BUCKET - 1), mask = size() - 1;
        bool was_full = is_full(bucket);
        slots_[hole] = 0;
        for (uint64_t other = next(bucket); was_full; other = next(other)) {
            bool is_last = !is_full(other);
            for (uint64_t i = other; i < other + BUCKET; ++i) {
                uint64_t slot = slots_[i];
                if (!slot || ((other - home(tag_of(slot))) & mask) < ((other - bucket) & mask)) continue;
                slots_[hole] = slot;
                slots_[i] = 0;
                hole = i;
                bucket = other;
                break;
            }
            was_full = !is_last;
        }
    }

#ifdef IVME_SSE2
    // Ids and tags of four slots.
    struct Four {
        __m128i ids, tags;
    };
    static Four four(const uint64_t* at) {
        auto low = _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
        auto high = _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 2)));
        return {_mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)), _mm_castps_si128(_mm_shuffle_ps(low, high, 0xDD))};
    }
    Seen look(uint64_t bucket, uint32_t tag) const {
        Four a = four(slots_.data() + bucket), b = four(slots_.data() + bucket + 4);
        __m128i wanted = _mm_set1_epi32(static_cast<int>(tag)), zero = _mm_setzero_si128();
        unsigned empty = bits_of(a.ids, b.ids, zero);
        return {bits_of(a.tags, b.tags, wanted) & ~empty, empty};
    }
    unsigned empties(uint64_t bucket) const {
        Four a = four(slots_.data() + bucket), b = four(slots_.data() + bucket + 4);
        return bits_of(a.ids, b.ids, _mm_setzero_si128());
    }
    static unsigned bits_of(__m128i a, __m128i b, __m128i wanted) {
        __m128i same = _mm_packs_epi32(_mm_cmpeq_epi32(a, wanted), _mm_cmpeq_epi32(b, wanted));
        return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(same, _mm_setzero_si128())));
    }
#else
    Seen look(uint64_t bucket, uint32_t tag) const {
        unsigned same = 0, empty = 0;
        for (unsigned i = 0; i < BUCKET; ++i) {
            uint64_t slot = slots_[bucket + i];
            empty |= static_cast<unsigned>(!slot) << i;
            same |= static_cast<unsigned>(slot && tag_of(slot) == tag) << i;
        }
        return {same, empty};
    }
    unsigned empties(uint64_t bucket) const { return look(bucket, 0).empty; }
#endif

    Array<uint64_t> slots_;
    unsigned shift_ = 29;
};

}  // namespace ivme
