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

// The codes of strings of at most eight bytes that came before, of which some are forgotten: columns of flags and the
// like have few values, which need not be hashed again.
class ShortStrings {
public:
    // The code of a string, or `absent`.
    int64_t find(std::string_view text, int64_t absent) const {
        if (text.size() > 8) return absent;
        uint64_t word = last_word(text);
        const Known& known = known_[place(word)];
        return known.word == word && known.length == text.size() + 1 ? known.code : absent;
    }
    void add(std::string_view text, int64_t code) {
        if (text.size() > 8) return;
        uint64_t word = last_word(text);
        known_[place(word)] = {word, text.size() + 1, code};
    }

private:
    struct Known {
        uint64_t word = 0, length = 0;  // the length is one more than that of the string, and 0 if there is none
        int64_t code = 0;
    };
    static constexpr unsigned BITS = 5;
    static size_t place(uint64_t word) { return (word * 0x9E3779B97F4A7C15ull) >> (64 - BITS); }

    Known known_[size_t{1} << BITS];
};

}  // namespace ivme
