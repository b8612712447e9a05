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
#include "slots.hpp"

namespace ivme {

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

// Ids by the tags of their keys.
//
// It grows bit by bit: the slots of the smaller table move a few with each insertion, so that none waits for all. Until
// they have moved, an id is in one of the two.
class IdTable {
public:
    uint64_t size() const { return size_; }
    uint64_t capacity() const { return now_.size(); }
    size_t bytes() const { return now_.bytes() + old_.bytes(); }

    void prefetch(uint32_t tag) const {
        if (!size_) return;
        prefetch_line(now_.address(tag));
        if (is_moving()) prefetch_line(old_.address(tag));
    }

    // The first id with this tag at home, or NIL: a guess that is nearly always right, to prefetch by.
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
        if ((size_ + 1) * 5 > now_.size() * 4) grow();
    }

    void insert(uint32_t tag, uint32_t id) {
        ++size_;
        now_.place(Slots::pack(tag, id));
    }

    // Several threads put ids into a table that has room for them, each those whose tags begin with its own bits:
    // within the slots of these tags, or false, and then `place` does it afterwards. `count` counts them all.
    bool place_within(uint32_t tag, uint32_t id, uint64_t part, unsigned bits) {
        uint64_t each = now_.size() >> bits;
        return each >= Slots::BUCKET && now_.place_before(Slots::pack(tag, id), (part + 1) * each);
    }
    void place(uint32_t tag, uint32_t id) { now_.place(Slots::pack(tag, id)); }
    void count(uint64_t ids) { size_ += ids; }

    void erase(uint32_t tag, uint32_t id) {
        uint64_t wanted = Slots::pack(tag, id);
        if (!now_.erase(wanted)) old_.erase(wanted);
        --size_;
    }

    // Gives what is there another id.
    void renumber(uint32_t tag, uint32_t id, uint32_t fresh) {
        uint64_t wanted = Slots::pack(tag, id);
        uint64_t* slot = now_.at(wanted);
        *(slot ? slot : old_.at(wanted)) = Slots::pack(tag, fresh);
    }

    void clear() {
        old_ = Slots();
        moved_ = 0;
        if (now_.size() > 1024 && size_ * 16 < now_.size()) {
            now_ = Slots();
        } else if (now_.size()) {
            std::memset(now_.array().data(), 0, now_.bytes());
        }
        size_ = 0;
    }

    // Visits every tag with its id.
    template <class Visit>
    void each(Visit visit) const {
        for (const Slots* slots : {&now_, &old_}) {
            for (uint64_t i = 0; i < slots->size(); ++i) {
                uint64_t slot = (*slots)[i];
                if (slot) visit(Slots::tag_of(slot), Slots::id_of(slot));
            }
        }
    }

    // Room for `count` entries, at once if many are to come.
    void reserve(uint64_t count) {
        if (now_.size() > AT_ONCE && count <= size_ + FEW) {
            for (uint64_t more = count - std::min(count, size_); more && is_moving(); --more) move_some();
            if (count * 5 > now_.size() * 4) grow();
            return;
        }
        unsigned bits = 3;
        while ((uint64_t{1} << bits) * 4 < count * 5) ++bits;
        if ((uint64_t{1} << bits) > now_.size()) rehash(bits);
    }

private:
    static constexpr uint64_t FEW = 64;
    static constexpr size_t AT_ONCE = 4096;  // so many slots move together
    static constexpr size_t EACH_TIME = 16;  // and of more, so many with an insertion

    bool is_moving() const { return old_.size(); }
    // Whether an id with this tag may not have moved: it is not before its home.
    bool is_left(uint32_t tag) const { return is_moving() && old_.home(tag) < left_; }

    // From the last slot to the first: what is behind a bucket has moved, so that emptying it moves none back. The
    // buckets that hold what went over the end come first. Memory goes back bit by bit, too.
    void move_some() noexcept {
        for (size_t n = 0; n < EACH_TIME && moved_ < old_.size(); ++n, ++moved_) {
            uint64_t i = (start_ - moved_) & (old_.size() - 1);
            if (uint64_t slot = old_.take(i)) now_.place(slot);
            if (moved_ < wrapped_ || i % Slots::BUCKET) continue;
            left_ = i;
            if (i % old_.array().DROPPED == 0) old_.array().drop_zeroes(i);
        }
        if (moved_ == old_.size()) old_ = Slots();
    }

    void grow() {
        if (is_moving()) return rehash(now_.bits() + 1);
        if (now_.size() <= AT_ONCE) return rehash(now_.size() ? now_.bits() + 1 : 3);
        Slots larger(now_.bits() + 1);
        old_ = std::exchange(now_, std::move(larger));
        moved_ = 0;
        uint64_t bucket = 0;
        while (old_.is_full(bucket)) bucket += Slots::BUCKET;
        wrapped_ = bucket + Slots::BUCKET;
        start_ = wrapped_ - 1;
        left_ = old_.size();
    }

    void rehash(unsigned bits) {
        Slots fresh(bits);
        fresh.array().touch();
        Slots::Filling filling(fresh);
        each([&](uint32_t tag, uint32_t id) { filling.place(Slots::pack(tag, id)); });
        bytes_copied += bytes();
        now_ = std::move(fresh);
        old_ = Slots();
    }

    Slots now_, old_;
    uint64_t size_ = 0;
    size_t moved_ = 0, start_ = 0;
    size_t wrapped_ = 0;  // slots with what went over the end
    uint64_t left_ = 0;   // from here on, all slots have moved
};

}  // namespace ivme
