// Strings and byte strings as codes. A string keeps its code for as long as something holds it: `sweep` takes back the
// codes that have no mark (codes.hpp), and they are given again.
//
// Loose strings are not in the table: each has a code of its own, even if another string is equal to it. That is for
// columns that nobody compares (decision 0590); `enter` gives a loose string the code that all equal ones have.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <shared_mutex>
#include <string_view>

#include "array.hpp"
#include "hash.hpp"
#include "short_text.hpp"
#include "stored_text.hpp"

namespace ivme {

inline constexpr int64_t NULL_CODE = std::numeric_limits<int64_t>::min();

class Dictionary {
public:
    // With `numbers`, strings are big-endian numbers without a sign whose first bit is set in all that are not below
    // zero, and codes that are no strings are smaller numbers.
    Dictionary(uint64_t seed, int64_t base, bool numbers = false) : seed_(seed), base_(base), numbers_(numbers) {}

    size_t size() const { return table_.size() + loose_; }
    // Behind the last code that a string has or had.
    uint32_t high() const { return static_cast<uint32_t>(starts_.size()); }
    int64_t base() const { return base_; }
    bool has_numbers() const { return numbers_; }
    size_t bytes() const { return starts_.bytes() + text_.bytes() + table_.bytes(); }

    // What the strings weigh that the last sweep kept, and those that came since: long ones weigh more, and half where
    // that sweep found all of them held, as the next is likely to.
    uint64_t kept() const { return kept_ + known_held(); }
    uint64_t added() const {
        uint64_t added = added_ - known_held();
        return all_held_ ? added / 2 : added;
    }
    static uint64_t weight(size_t length) { return 1 + length / 64; }
    // What all strings weigh that ever came; under the lock, so that one can tell what came in between.
    uint64_t ever_added() const { return ever_added_; }
    // Strings of this weight that came since the last sweep are held: rows that are stored have them. Without the lock.
    void keep(uint64_t weight) { known_held_ += weight; }
    // How often codes were taken back; without the lock. Codes of rows that are not stored may be others' from then on.
    uint64_t sweeps() const { return sweeps_; }

    bool holds(int64_t code) const { return place(code) < high() && !is_free(static_cast<uint32_t>(place(code))); }

    std::string_view text(int64_t code) const { return text_at(starts_[place(code)]); }

    bool is_loose(int64_t code) const {
        return place(code) < high() && (starts_[place(code)] & (FREE | LOOSE)) == LOOSE;
    }
    // The code that all strings have that are equal to a loose one: its own, if there are no others.
    int64_t enter(int64_t code) {
        auto own = static_cast<uint32_t>(place(code));
        uint32_t hashed = tag(text(code)), id = look_up(text(code), hashed);
        if (id != NIL) return base_ + id;
        table_.reserve_one();
        table_.insert(hashed, own);
        starts_[own] &= ~LOOSE;
        --loose_;
        return code;
    }
    // What is the same for equal strings, whatever their codes are, and for codes that are no strings.
    uint64_t digest(int64_t code) const { return holds(code) ? tag(text(code)) : static_cast<uint64_t>(code); }
    bool are_equal(int64_t a, int64_t b) const {
        return a == b || ((is_loose(a) || is_loose(b)) && holds(a) && holds(b) && is_same(text(a), text(b)));
    }

    // The code of a string, or false if it has none.
    bool find(std::string_view text, int64_t* code) const {
        uint32_t id = look_up(text, tag(text));
        if (id != NIL) *code = base_ + id;
        return id != NIL;
    }

    int64_t encode(std::string_view text) { return encode(text, tag(text)); }

    // Strings that lie one behind the other, as in Arrow: hashed by the block, so that the misses of a block overlap.
    template <class Offsets, class Valid>
    void encode_all(const char* text, Offsets at, size_t n, Valid valid, int64_t* codes) {
        uint32_t tags[BLOCK_OF_STRINGS];
        uint8_t others[BLOCK_OF_STRINGS];
        RecentStrings known;
        const char* end = text + at[n];
        for (size_t start = 0; start < n; start += BLOCK_OF_STRINGS) {
            size_t stop = std::min(start + BLOCK_OF_STRINGS, n);
            size_t count = hash_block(text, at, start, stop, end, known, valid, codes, others, tags);
            for (size_t other = 0; other < count; ++other) {
                size_t i = start + others[other];
                codes[i] = encode(string_at(text, at, i), tags[others[other]]);
                known.add(string_at(text, at, i), end, codes[i]);
            }
        }
    }

    // How many of some strings are known, and of how many: each `SAMPLED`th is encoded to find out.
    static constexpr size_t SAMPLED = 32;
    struct Sample {
        size_t known = 0, all = 0;
    };
    template <class Offsets, class Valid>
    Sample sample(const char* text, Offsets at, size_t n, Valid valid, int64_t* codes) {
        uint32_t tags[BLOCK_OF_STRINGS];
        Sample sample;
        constexpr size_t STEP = SAMPLED * BLOCK_OF_STRINGS;
        for (size_t start = 0; start < n; start += STEP) {
            size_t stop = std::min(start + STEP, n);
            for (size_t i = start; i < stop; i += SAMPLED) {
                tags[(i - start) / SAMPLED] = tag(string_at(text, at, i));
                table_.prefetch(tags[(i - start) / SAMPLED]);
            }
            for (size_t i = start; i < stop; i += SAMPLED) {
                if (!valid(i)) continue;
                size_t before = size();
                codes[i] = encode(string_at(text, at, i), tags[(i - start) / SAMPLED]);
                sample.known += size() == before;
                ++sample.all;
            }
        }
        return sample;
    }
    // Room for so many strings that are encoded loosely next, which take so many bytes.
    void reserve_loose(size_t strings, size_t bytes) {
        check_room(strings, bytes);
        starts_.reserve(starts_.size() + strings);
        text_.reserve(text_.size() + bytes);
    }
    // What strings that lie one behind the other may take at most if they are encoded loosely.
    static size_t most_loose_bytes(size_t bytes) { return bytes + bytes / StoredText::LONG * 8; }
    // Gives strings that were mostly new codes of their own, but for those that were sampled. There is room, so that
    // nothing moves that others read meanwhile. All are copied at once, the few that were sampled with them.
    template <class Offsets, class Valid>
    void encode_loosely(const char* text, Offsets at, size_t n, Valid valid, int64_t* codes, bool were_sampled) {
        size_t begin = text_.size(), bytes = static_cast<size_t>(at[n] - at[0]);
        bool are_short = true;
        for (size_t i = 0; i < n && bytes >= StoredText::LONG; ++i) {
            are_short &= string_at(text, at, i).size() < StoredText::LONG;
        }
        if (are_short) {
            text_.resize(begin + bytes);
            if (bytes) std::memcpy(text_.data() + begin, text + at[0], bytes);
        }
        bool all_valid = true;
        for (size_t i = 0; i < n; ++i) all_valid &= valid(i);
        if (are_short && all_valid && !were_sampled && free_ == NIL) return number_loosely(at, n, begin, codes);
        for (size_t i = 0; i < n; ++i) {
            if (!valid(i)) {
                codes[i] = NULL_CODE;
            } else if (!were_sampled || i % SAMPLED) {
                std::string_view string = string_at(text, at, i);
                uint64_t word = are_short ? StoredText::word(begin + static_cast<size_t>(at[i] - at[0]), string.size())
                                          : StoredText::append(text_, string);
                codes[i] = base_ + take_id(word | LOOSE);
                count_added(weight(string.size()));
                ++loose_;
            }
        }
    }

    // The first half of `encode_all`, which changes nothing, so that several threads may take a part each: the codes of
    // strings that have one, and the hashes of all others. The second, ParallelEntry, gives codes to these.
    template <class Offsets, class Valid>
    void find_all(const char* text, Offsets at, size_t first, size_t end, Valid valid, int64_t* codes,
                  uint32_t* tags) const {
        uint8_t others[BLOCK_OF_STRINGS];
        RecentStrings known;
        for (size_t start = first; start < end; start += BLOCK_OF_STRINGS) {
            size_t stop = std::min(start + BLOCK_OF_STRINGS, end);
            size_t count =
                hash_block(text, at, start, stop, text + at[end], known, valid, codes, others, tags + (start - first));
            for (size_t other = 0; other < count; ++other) {
                size_t i = start + others[other];
                uint32_t id = look_up(string_at(text, at, i), tags[i - first]);
                if (id == NIL) continue;
                codes[i] = base_ + id;
                known.add(string_at(text, at, i), text + at[end], codes[i]);
            }
        }
    }

    // Gives strings the codes from the base on; those that are not valid are codes that no string has. False if the
    // dictionary was not empty, or a string is there twice.
    template <class Offset, class Valid>
    bool load(const char* text, const Offset* at, size_t n, Valid valid) {
        if (high()) return false;
        for (size_t i = 0; i < n; ++i) {
            if (!valid(i)) {
                starts_.push(FREE | NIL);
                continue;
            }
            std::string_view string(text + at[i], static_cast<size_t>(at[i + 1] - at[i]));
            uint32_t hashed = tag(string);
            if (look_up(string, hashed) != NIL) return false;
            append(string, hashed);
        }
        free_ = link_free(starts_);
        kept_ = added_;
        added_ = 0;
        return true;
    }

    // Takes back the codes without a mark, of which there is a bit for each. Throws before it has changed anything.
    void sweep(const uint64_t* marks) {
        auto is_kept = [&](uint32_t id) { return marks[id / 64] >> (id % 64) & 1 && !is_free(id); };
        all_held_ = are_all(is_kept);
        known_held_ = 0;
        if (all_held_) {
            kept_ += std::exchange(added_, 0);
            return;
        }
        uint64_t kept = 0, strings = 0, bytes = 0;
        uint32_t end = 0;
        for (uint32_t id = 0; id < high(); ++id) {
            if (!is_kept(id)) continue;
            size_t length = text_at(starts_[id]).size();
            kept += weight(length);
            bytes += StoredText::bytes(length);
            ++strings;
            end = id + 1;
        }
        ++sweeps_;
        if (strings < size()) rebuild(is_kept, strings, bytes, end);
        kept_ = kept;
        added_ = 0;
    }

    // Whether a code that `find_all` wrote is that of a string without one.
    bool is_absent(int64_t code) const { return code == absent(); }

    mutable std::shared_mutex mutex;

private:
    friend class ParallelEntry;

    // In place of a string's word: the code has none, and the rest is the next code of that kind.
    static constexpr uint64_t FREE = uint64_t{1} << 63;
    // Beside a string's word: it is not in the table.
    static constexpr uint64_t LOOSE = uint64_t{1} << StoredText::BITS;
    static constexpr size_t BLOCK_OF_STRINGS = RecentStrings::BLOCK;

    uint64_t known_held() const { return std::min(known_held_.load(), added_); }

    // What no string's code is.
    int64_t absent() const { return base_ - 1; }

    template <class Offsets>
    static std::string_view string_at(const char* text, const Offsets& at, size_t i) {
        return {text + at[i], static_cast<size_t>(at[i + 1] - at[i])};
    }
    // The codes of strings that came just before, and of NULLs; the others are absent, and their places and hashes,
    // from `start` on, are written down. How many these are.
    template <class Offsets, class Valid>
    size_t hash_block(const char* text, const Offsets& at, size_t start, size_t stop, const char* end,
                      RecentStrings& known, Valid valid, int64_t* codes, uint8_t* others, uint32_t* tags) const {
        size_t count = known.find(text, at, start, stop, end, codes, others), left = 0;
        for (size_t i = start; i < stop; ++i) {
            if (!valid(i)) codes[i] = NULL_CODE;
        }
        for (size_t other = 0; other < count; ++other) {
            uint8_t behind = others[other];
            if (!valid(start + behind)) continue;
            codes[start + behind] = absent();
            tags[behind] = tag(string_at(text, at, start + behind));
            table_.prefetch(tags[behind]);
            others[left++] = behind;
        }
        return left;
    }

    int64_t encode(std::string_view text, uint32_t hashed) {
        uint32_t id = look_up(text, hashed);
        return base_ + (id != NIL ? id : append(text, hashed));
    }

    // Room for everything comes first, so that a failure changes nothing.
    uint32_t append(std::string_view text, uint32_t hashed) {
        check_room(free_ == NIL, StoredText::bytes(text.size()));
        table_.reserve_one();
        starts_.reserve(starts_.size() + 1);
        uint32_t id = take_id(StoredText::append(text_, text));
        table_.insert(hashed, id);
        count_added(weight(text.size()));
        return id;
    }

    void check_room(size_t strings, size_t bytes) const {
        if (high() + strings >= NIL - 2) throw Capacity("a dictionary cannot hold more than 4 billion strings");
        if (text_.size() + bytes >= StoredText::END) throw Capacity("a dictionary cannot hold more than a terabyte");
    }

    // A code for the string of a word, one that was taken back before a new one. There is room.
    uint32_t take_id(uint64_t word) {
        uint32_t id = free_;
        if (id == NIL) {
            id = high();
            starts_.push(word);
        } else {
            free_ = static_cast<uint32_t>(starts_[id]);
            starts_[id] = word;
        }
        return id;
    }

    // The same for short strings that were copied to one place, with codes that none had before.
    template <class Offsets>
    void number_loosely(Offsets at, size_t n, size_t begin, int64_t* codes) {
        size_t first = starts_.size();
        starts_.resize(first + n);
        uint64_t* words = starts_.data() + first;
        uint64_t added = 0;
        for (size_t i = 0; i < n; ++i) {
            auto length = static_cast<size_t>(at[i + 1] - at[i]);
            words[i] = StoredText::word(begin + static_cast<size_t>(at[i] - at[0]), length) | LOOSE;
            codes[i] = base_ + static_cast<int64_t>(first + i);
            added += weight(length);
        }
        count_added(added);
        loose_ += n;
    }

    void count_added(uint64_t weight) {
        added_ += weight;
        ever_added_ += weight;
    }

    // Whether all strings are kept, as where rows only come; their lengths need not be looked at then.
    template <class Kept>
    bool are_all(Kept is_kept) const {
        for (uint32_t id = 0; id < high(); ++id) {
            if (!is_free(id) && !is_kept(id)) return false;
        }
        return true;
    }

    template <class Kept>
    void rebuild(Kept is_kept, uint64_t strings, uint64_t bytes, uint32_t end) {
        IdTable table;
        if (strings) table.reserve(strings);
        table_.each([&](uint32_t tag, uint32_t id) {
            if (is_kept(id)) table.insert(tag, id);
        });
        Array<uint64_t> starts;
        if (end) starts.resize(end);
        Array<char> text;
        bool moves = bytes <= text_.size() / 2;
        if (moves && bytes) text.reserve(bytes);
        for (uint32_t id = 0; id < end; ++id) {
            starts[id] = is_kept(id) ? starts_[id] : FREE;
            if (!moves || !is_kept(id)) continue;
            starts[id] = StoredText::append(text, text_at(starts_[id])) | (starts_[id] & LOOSE);
        }
        free_ = link_free(starts);
        loose_ = strings - table.size();
        std::swap(table_, table);
        starts_.swap(starts);
        if (moves) text_.swap(text);
    }

    // Links the codes without a string, the least first: those that are given again come before new ones.
    static uint32_t link_free(Array<uint64_t>& starts) {
        uint32_t next = NIL;
        for (uint32_t id = static_cast<uint32_t>(starts.size()); id-- > 0;) {
            if (!(starts[id] & FREE)) continue;
            starts[id] = FREE | next;
            next = id;
        }
        return next;
    }

    std::string_view text_at(uint64_t word) const { return StoredText::read(text_.data(), word); }

    bool is_free(uint32_t id) const { return starts_[id] & FREE; }

    // The base may be far below zero, so the distance is taken without a sign.
    uint64_t place(int64_t code) const { return static_cast<uint64_t>(code) - static_cast<uint64_t>(base_); }

    uint32_t tag(std::string_view text) const {
        uint64_t h = seed_.start ^ text.size();
        for (size_t i = 0; i + 8 < text.size(); i += 8) {
            h = fold(h ^ load_eight(text.data() + i), seed_.factor) + seed_.start;
        }
        h = fold(h ^ last_word(text), seed_.factor) + seed_.start;
        return static_cast<uint32_t>(fold(h ^ seed_.factor, 0x9E3779B97F4A7C15ull) >> 32);
    }

    uint32_t look_up(std::string_view wanted, uint32_t hashed) const {
        return table_.find(hashed, [&](uint32_t id) { return is_same(text_at(starts_[id]), wanted); });
    }

    Seed seed_;
    int64_t base_;
    bool numbers_;
    IdTable table_;
    Array<uint64_t> starts_;  // by code, the string's word
    Array<char> text_;
    uint32_t free_ = NIL;
    size_t loose_ = 0;
    uint64_t kept_ = 0, added_ = 0, ever_added_ = 0;
    std::atomic<uint64_t> known_held_ = 0;  // of what was added
    std::atomic<uint64_t> sweeps_ = 0;
    bool all_held_ = false;
};

}  // namespace ivme
