// How strings lie in memory: one after the other, each behind its length, which is a byte, or nine if it is long.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "array.hpp"

namespace ivme {

class StoredText {
public:
    // What a string of this length takes.
    static size_t bytes(size_t length) { return head(length) + length; }

    static void write(char* at, std::string_view text) {
        uint64_t length = text.size();
        *at = static_cast<char>(length < LONG ? length : LONG);
        if (length >= LONG) std::memcpy(at + 1, &length, 8);
        if (length) std::memcpy(at + head(length), text.data(), length);
    }
    static std::string_view read(const char* at) {
        uint64_t length = static_cast<unsigned char>(*at);
        if (length < LONG) return {at + 1, length};
        std::memcpy(&length, at + 1, 8);
        return {at + 9, length};
    }

    // Adds a string, and says where it starts.
    static size_t append(Array<char>& all, std::string_view text) {
        size_t start = all.size();
        all.resize(start + bytes(text.size()));
        write(all.data() + start, text);
        return start;
    }

private:
    static constexpr unsigned char LONG = 255;  // in place of a length: eight bytes behind it are the length
    static size_t head(size_t length) { return length < LONG ? 1 : 9; }
};

}  // namespace ivme
