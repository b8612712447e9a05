// Where a string lies among others: one word with its first byte and its length, so that strings of different lengths
// are told apart without a look at them. One that is too long for that has its length in front, in eight bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "array.hpp"

namespace ivme {

class StoredText {
public:
    // Words take so many bits; what is above is the owner's.
    static constexpr unsigned BITS = 62;
    // Where the last string begins at most.
    static constexpr uint64_t END = uint64_t{1} << 40;
    // Strings of at least this length have it in front.
    static constexpr uint64_t LONG = (uint64_t{1} << (BITS - 40)) - 1;

    // What a string of this length takes.
    static size_t bytes(size_t length) { return head(length) + length; }

    static uint64_t word(size_t start, size_t length) { return start | (length < LONG ? length : LONG) << 40; }

    static void write(char* at, std::string_view text) {
        uint64_t length = text.size();
        if (length >= LONG) std::memcpy(at, &length, 8);
        if (length) std::memcpy(at + head(length), text.data(), length);
    }
    static std::string_view read(const char* all, uint64_t word) {
        const char* at = all + (word & (END - 1));
        uint64_t length = word >> 40 & LONG;
        if (length < LONG) return {at, length};
        std::memcpy(&length, at, 8);
        return {at + 8, length};
    }

    // Adds a string; its word.
    static uint64_t append(Array<char>& all, std::string_view text) {
        size_t start = all.size();
        all.resize(start + bytes(text.size()));
        write(all.data() + start, text);
        return word(start, text.size());
    }

private:
    static size_t head(size_t length) { return length < LONG ? 0 : 8; }
};

}  // namespace ivme
