// Strings and byte strings as codes. A code never changes; strings are kept once, one after the other.
//
// The order of strings is that of their bytes, which for UTF-8 is the order of code points, as in Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <shared_mutex>
#include <string_view>

#include "array.hpp"
#include "hash.hpp"

namespace ivme {

inline constexpr int64_t NULL_CODE = std::numeric_limits<int64_t>::min();

class Dictionary {
public:
    // With `numbers`, strings are big-endian numbers without a sign whose first bit is set in all that are not below
    // zero, and codes that are no strings are smaller numbers.
    Dictionary(uint64_t seed, int64_t base, bool numbers = false) : seed_(seed), base_(base), numbers_(numbers) {
        offsets_.push(0);
    }

    size_t size() const { return offsets_.size() - 1; }
    int64_t base() const { return base_; }
    size_t bytes() const { return offsets_.bytes() + text_.bytes() + table_.bytes(); }

    bool holds(int64_t code) const { return code >= base_ && place(code) < size(); }

    std::string_view text(int64_t code) const {
        uint64_t id = place(code);
        return {text_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]};
    }

    // The code of a string, or false if it has none.
    bool find(std::string_view text, int64_t* code) const {
        uint32_t id = look_up(text, tag(text));
        if (id != NIL) *code = base_ + id;
        return id != NIL;
    }

    int64_t encode(std::string_view text) { return encode(text, tag(text)); }

    // Strings that lie one behind the other, as in Arrow: hashed by the block, so that the misses of a block overlap.
    template <class Offset, class Valid>
    void encode_all(const char* text, const Offset* at, size_t n, Valid valid, int64_t* codes) {
        constexpr size_t MOST = 32;
        uint32_t tags[MOST];
        auto string = [&](size_t i) { return std::string_view(text + at[i], static_cast<size_t>(at[i + 1] - at[i])); };
        for (size_t start = 0; start < n; start += MOST) {
            size_t count = std::min(MOST, n - start);
            for (size_t i = 0; i < count; ++i) {
                tags[i] = tag(string(start + i));
                table_.prefetch(tags[i]);
            }
            for (size_t i = 0; i < count; ++i) {
                codes[start + i] = valid(start + i) ? encode(string(start + i), tags[i]) : NULL_CODE;
            }
        }
    }

    // Codes that are no strings of this dictionary sort by value, after none and before all of its strings.
    bool less(int64_t a, int64_t b) const {
        bool left = holds(a), right = holds(b);
        if (left && right) return text(a) < text(b);
        if (left == right || a == NULL_CODE || b == NULL_CODE) return a < b;
        if (!numbers_) return !left;
        return left ? is_negative(a) : !is_negative(b);
    }

    mutable std::shared_mutex mutex;

private:
    int64_t encode(std::string_view text, uint32_t hashed) {
        uint32_t id = look_up(text, hashed);
        if (id != NIL) return base_ + id;
        if (size() >= NIL - 2) throw Capacity("a dictionary cannot hold more than 4 billion strings");
        table_.reserve_one();
        offsets_.reserve(offsets_.size() + 1);
        size_t start = text_.size();
        text_.resize(start + text.size());
        if (!text.empty()) std::memcpy(text_.data() + start, text.data(), text.size());
        id = static_cast<uint32_t>(size());
        offsets_.push(text_.size());
        table_.insert(hashed, id);
        return base_ + id;
    }

    // The base may be far below zero, so the distance is taken without a sign.
    uint64_t place(int64_t code) const { return static_cast<uint64_t>(code) - static_cast<uint64_t>(base_); }

    bool is_negative(int64_t code) const { return static_cast<unsigned char>(text(code)[0]) < 0x80; }

    uint32_t tag(std::string_view text) const {
        uint64_t h = seed_.start ^ text.size();
        size_t i = 0;
        for (; i + 8 <= text.size(); i += 8) {
            uint64_t word;
            std::memcpy(&word, text.data() + i, 8);
            h = fold(h ^ word, seed_.factor) + seed_.start;
        }
        uint64_t rest = 0;
        if (i < text.size()) std::memcpy(&rest, text.data() + i, text.size() - i);
        h = fold(h ^ rest, seed_.factor) + seed_.start;
        return static_cast<uint32_t>(fold(h ^ seed_.factor, 0x9E3779B97F4A7C15ull) >> 32);
    }

    uint32_t look_up(std::string_view wanted, uint32_t hashed) const {
        return table_.find(hashed, [&](uint32_t id) { return text(base_ + id) == wanted; });
    }

    Seed seed_;
    int64_t base_;
    bool numbers_;
    IdTable table_;
    Array<uint64_t> offsets_;
    Array<char> text_;
};

}  // namespace ivme
