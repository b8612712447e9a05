// Seeded hashing of tuples, and the table that finds an id by the hash of its key.
//
// The hash mixes each word into a 128-bit product with secret multipliers, so that keys chosen without knowing the
// seed spread evenly, whatever their low bits. A slot of the table holds the hash's 32 bits and an id: most
// look-ups touch one cache line here and one record, and growing needs no record at all.
#pragma once

#include <cstdint>

#include "array.hpp"
#include "errors.hpp"
#include "int128.hpp"

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
class IdTable {
public:
    uint64_t size() const { return size_; }
    uint64_t capacity() const { return slots_.size(); }
    size_t bytes() const { return slots_.bytes(); }

    void prefetch(uint32_t tag) const {
        if (size_) __builtin_prefetch(&slots_[home(tag)]);
    }

    // The first id with this tag near its home, or NIL: a guess that is nearly always right, to prefetch by.
    uint32_t guess(uint32_t tag) const {
        if (!size_) return NIL;
        uint64_t i = home(tag);
        for (int step = 0; step < 8; ++step, i = (i + 1) & mask_) {
            uint64_t slot = slots_[i];
            if (!slot) return NIL;
            if (static_cast<uint32_t>(slot >> 32) == tag) return static_cast<uint32_t>(slot) - 1;
        }
        return NIL;
    }

    template <class Equal>
    uint32_t find(uint32_t tag, Equal equal) const {
        if (!size_) return NIL;
        uint64_t i = home(tag);
        for (uint64_t distance = 0;; ++distance, i = (i + 1) & mask_) {
            uint64_t slot = slots_[i];
            if (!slot) return NIL;
            uint32_t other = static_cast<uint32_t>(slot >> 32);
            if (other == tag) {
                uint32_t id = static_cast<uint32_t>(slot) - 1;
                if (equal(id)) return id;
            } else if (((i - home(other)) & mask_) < distance) {
                return NIL;
            }
        }
    }

    // Makes room for one more; only this can fail.
    void reserve_one() {
        if ((size_ + 1) * 5 > slots_.size() * 4) grow();
    }

    void insert(uint32_t tag, uint32_t id) {
        ++size_;
        place(slots_, tag, id);
    }

    void erase(uint32_t tag, uint32_t id) {
        uint64_t i = home(tag);
        uint64_t wanted = pack(tag, id);
        while (slots_[i] != wanted) i = (i + 1) & mask_;
        for (;;) {
            uint64_t next = (i + 1) & mask_;
            uint64_t slot = slots_[next];
            if (!slot || home(static_cast<uint32_t>(slot >> 32)) == next) break;
            slots_[i] = slot;
            i = next;
        }
        slots_[i] = 0;
        --size_;
    }

    // Gives what is there another id.
    void renumber(uint32_t tag, uint32_t id, uint32_t fresh) {
        uint64_t i = home(tag);
        uint64_t wanted = pack(tag, id);
        while (slots_[i] != wanted) i = (i + 1) & mask_;
        slots_[i] = pack(tag, fresh);
    }

    void clear() {
        if (slots_.size() > 1024 && size_ * 16 < slots_.size()) {
            slots_.release();
            mask_ = 0;
        } else if (slots_.size()) {
            std::memset(slots_.data(), 0, slots_.bytes());
        }
        size_ = 0;
    }

    // Visits every tag with its id.
    template <class Visit>
    void each(Visit visit) const {
        for (size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i]) visit(static_cast<uint32_t>(slots_[i] >> 32), static_cast<uint32_t>(slots_[i]) - 1);
        }
    }

    // Room for `count` entries at once, for rebuilding.
    void reserve(uint64_t count) {
        unsigned bits = 3;
        while ((uint64_t{1} << bits) * 4 < count * 5) ++bits;
        if ((uint64_t{1} << bits) > slots_.size()) rehash(bits);
    }

private:
    static uint64_t pack(uint32_t tag, uint32_t id) { return static_cast<uint64_t>(tag) << 32 | (id + 1); }
    uint64_t home(uint32_t tag) const { return static_cast<uint64_t>(tag) >> shift_; }

    void grow() { rehash(slots_.size() ? 33 - shift_ : 3); }

    void rehash(unsigned bits) {
        if (bits > 32) throw Capacity("a map or an index cannot hold more than 3.4 billion entries");
        Array<uint64_t> fresh;
        fresh.zeroed(uint64_t{1} << bits);
        slots_.swap(fresh);
        mask_ = slots_.size() - 1;
        shift_ = 32 - bits;
        for (size_t i = 0; i < fresh.size(); ++i) {
            if (fresh[i]) place(slots_, static_cast<uint32_t>(fresh[i] >> 32), static_cast<uint32_t>(fresh[i]) - 1);
        }
    }

    void place(Array<uint64_t>& slots, uint32_t tag, uint32_t id) {
        uint64_t carried = pack(tag, id);
        uint64_t i = home(tag);
        for (uint64_t distance = 0;; ++distance, i = (i + 1) & mask_) {
            uint64_t slot = slots[i];
            if (!slot) {
                slots[i] = carried;
                return;
            }
            uint64_t other = (i - home(static_cast<uint32_t>(slot >> 32))) & mask_;
            if (other < distance) {
                std::swap(slots[i], carried);
                distance = other;
            }
        }
    }

    Array<uint64_t> slots_;
    uint64_t size_ = 0;
    uint64_t mask_ = 0;
    unsigned shift_ = 29;
};

}  // namespace ivme
