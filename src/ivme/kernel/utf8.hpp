// Whether bytes are valid UTF-8, as Arrow has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ivme {

inline bool is_ascii(const char* text, size_t n) {
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        std::memcpy(&word, text + i, 8);
        seen |= word;
    }
    for (; i < n; ++i) seen |= static_cast<uint8_t>(text[i]);
    return !(seen & 0x8080808080808080ull);
}

// The length of the character that begins here, 0 if it is none.
inline size_t utf8_length(const uint8_t* at, size_t left) {
    auto follows = [&](size_t i, uint8_t least = 0x80, uint8_t most = 0xBF) {
        return i < left && at[i] >= least && at[i] <= most;
    };
    uint8_t first = at[0];
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return follows(1) ? 2 : 0;
    if (first < 0xF0) {
        bool second = follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
        return second && follows(2) ? 3 : 0;
    }
    if (first > 0xF4) return 0;
    bool second = follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && follows(2) && follows(3) ? 4 : 0;
}

inline bool is_utf8(std::string_view text) {
    if (is_ascii(text.data(), text.size())) return true;
    auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    for (size_t i = 0, length; i < text.size(); i += length) {
        length = utf8_length(bytes + i, text.size() - i);
        if (!length) return false;
    }
    return true;
}

}  // namespace ivme
