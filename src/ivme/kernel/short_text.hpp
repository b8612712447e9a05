// Hashes and comparisons of strings that are mostly short: whole words, and no call for the bytes that are left.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ivme {

inline uint64_t load_eight(const char* at) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
}

inline uint64_t load_four(const char* at) {
    uint32_t word;
    std::memcpy(&word, at, 4);
    return word;
}

// A word of the last bytes of a string: all of one of at most eight, which has no other with this word and its length.
inline uint64_t last_word(std::string_view text) {
    size_t n = text.size();
    const char* at = text.data();
    if (n >= 8) return load_eight(at + n - 8);
    if (n >= 4) return load_four(at) | load_four(at + n - 4) << 32;
    if (!n) return 0;
    auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(at[i])); };
    return byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
}

inline bool is_same(std::string_view one, std::string_view other) {
    if (one.size() != other.size() || last_word(one) != last_word(other)) return false;
    for (size_t i = 0; i + 8 < one.size(); i += 8) {
        if (load_eight(one.data() + i) != load_eight(other.data() + i)) return false;
    }
    return true;
}

}  // namespace ivme
