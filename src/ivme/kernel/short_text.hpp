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

// The codes of strings that came just before, of which some are forgotten: columns of flags, modes and the like have
// few values, which need not be hashed and looked up again. Of strings that hardly repeat none are kept. The strings
// stay where they are while this is used.
class RecentStrings {
public:
    // A string in a buffer that can be read on up to `end`.
    int64_t find(std::string_view text, const char* end, int64_t absent) {
        if (!is_worth_it_ || text.size() > LONGEST) return absent;
        Ends ends = ends_of(text, end);
        const Known& known = known_[place(ends, text.size())];
        bool is_known = known.ends == ends && known.length == text.size() + 1 &&
                        (text.size() <= 16 || std::memcmp(known.text, text.data(), text.size()) == 0);
        found_ += is_known;
        if (++asked_ % TRIAL == 0) is_worth_it_ = 8 * found_ >= asked_;
        return is_known ? known.code : absent;
    }
    void add(std::string_view text, const char* end, int64_t code) {
        if (!is_worth_it_ || text.size() > LONGEST) return;
        Ends ends = ends_of(text, end);
        known_[place(ends, text.size())] = {ends, text.size() + 1, code, text.data()};
    }

private:
    // The first and the last eight bytes, which may be the same; those of a shorter string are followed by zeroes.
    struct Ends {
        uint64_t first = 0, last = 0;
        bool operator==(const Ends&) const = default;
    };
    struct Known {
        Ends ends;
        uint64_t length = 0;  // one more than that of the string, and 0 if there is none
        int64_t code = 0;
        const char* text = nullptr;
    };
    static constexpr size_t LONGEST = 64, TRIAL = 64;
    static constexpr unsigned BITS = 6;

    static Ends ends_of(std::string_view text, const char* end) {
        size_t n = text.size();
        const char* at = text.data();
        if (n >= 8) return {load_eight(at), load_eight(at + n - 8)};
        uint64_t word = 0;
        if (end - at < 8) {
            std::memcpy(&word, at, n);
        } else {
            word = load_eight(at) & ((uint64_t{1} << 8 * n) - 1);
        }
        return {word, 0};
    }
    static size_t place(const Ends& ends, size_t length) {
        uint64_t mixed = (ends.first ^ length) * 0x9E3779B97F4A7C15ull + ends.last;
        return (mixed * 0xD1B54A32D192ED03ull) >> (64 - BITS);
    }

    Known known_[size_t{1} << BITS];
    size_t asked_ = 0, found_ = 0;
    bool is_worth_it_ = true;
};

}  // namespace ivme
