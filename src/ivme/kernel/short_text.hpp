// Hashes and comparisons of strings that are mostly short: whole words, and no call for the bytes that are left.
#pragma once

#include <algorithm>
#include <cstddef>
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
//
// Strings of up to 32 bytes are compared by up to four words, which overlap in shorter ones: there is nothing that a
// processor would have to guess, as lengths are as random as the strings.
class RecentStrings {
public:
    static constexpr size_t BLOCK = 32;

    // Writes the codes of the strings from `start` up to `stop` that are known, and the places behind `start` of the
    // others, how many of which there are. The buffer can be read on up to `end`.
    template <class Offsets>
    size_t find(const char* text, const Offsets& at, size_t start, size_t stop, const char* end, int64_t* codes,
                uint8_t* others) {
        size_t count = 0;
        if (!is_worth_it_) {
            for (; count < stop - start; ++count) others[count] = static_cast<uint8_t>(count);
            return count;
        }
        size_t longest = 0;
        for (size_t i = start; i < stop; ++i) longest = std::max(longest, length_of(at, i));
        bool is_roomy = end - (text + at[stop - 1]) >= 8;
        if (is_roomy && longest <= 8) {
            count = find_by_words<1>(text, at, start, stop, end, codes, others);
        } else if (is_roomy && longest <= 16) {
            count = find_by_words<2>(text, at, start, stop, end, codes, others);
        } else {
            count = find_by_words<4>(text, at, start, stop, end, codes, others);
        }
        asked_ += stop - start;
        found_ += stop - start - count;
        if (asked_ >= TRIAL) is_worth_it_ = 8 * found_ >= asked_;
        return count;
    }
    void add(std::string_view text, const char* end, int64_t code) {
        if (!is_worth_it_ || text.size() > LONGEST) return;
        Words words = words_of<4>(text.data(), text.size(), end);
        known_[place(words, text.size())] = {words, text.size() + 1, code, text.data()};
    }

private:
    // The first two and the last two words of eight bytes, which may be the same; those of a string of fewer bytes are
    // followed by zeroes.
    struct Words {
        uint64_t first = 0, second = 0, third = 0, last = 0;

        template <unsigned WORDS>
        bool are(const Words& other) const {
            uint64_t differs = first ^ other.first;
            if (WORDS > 1) differs |= last ^ other.last;
            if (WORDS > 2) differs |= (second ^ other.second) | (third ^ other.third);
            return !differs;
        }
    };
    struct Known {
        Words words;
        uint64_t length = 0;  // one more than that of the string, and 0 if there is none
        int64_t code = 0;
        const char* text = nullptr;
    };
    static constexpr size_t LONGEST = 64, TRIAL = 64;
    static constexpr unsigned BITS = 6;

    template <class Offsets>
    static size_t length_of(const Offsets& at, size_t i) {
        return static_cast<size_t>(at[i + 1] - at[i]);
    }

    // The strings have at most 8 bytes with one word, and 16 with two; with four they may have any number of them.
    template <unsigned WORDS, class Offsets>
    size_t find_by_words(const char* text, const Offsets& at, size_t start, size_t stop, const char* end,
                         int64_t* codes, uint8_t* others) const {
        size_t count = 0;
        for (size_t i = start; i < stop; ++i) {
            const char* from = text + at[i];
            size_t length = length_of(at, i);
            others[count] = static_cast<uint8_t>(i - start);
            if (WORDS == 4 && length > LONGEST) {
                ++count;
                continue;
            }
            Words words = words_of<WORDS>(from, length, end);
            const Known& known = known_[place(words, length)];
            bool is_known = (known.length == length + 1) & known.words.template are<WORDS>(words);
            if (WORDS == 4 && length > 32) is_known = is_known && std::memcmp(known.text, from, length) == 0;
            codes[i] = known.code;
            count += !is_known;
        }
        return count;
    }

    // With one or two words, the other ones are left out.
    template <unsigned WORDS>
    static Words words_of(const char* at, size_t length, const char* end) {
        if (WORDS == 4 && end - at < 8) {
            uint64_t word = 0;
            std::memcpy(&word, at, length);
            return {word, word, word, word};
        }
        size_t whole = length < 8 ? length : 8, behind = length - whole;
        uint64_t mask = whole ? ~uint64_t{0} >> (64 - 8 * whole) : 0;
        uint64_t first = load_eight(at) & mask;
        if (WORDS == 1) return {first, 0, 0, first};
        uint64_t last = load_eight(at + behind) & mask;
        if (WORDS == 2) return {first, 0, 0, last};
        return {first, load_eight(at + (behind < 8 ? behind : 8)) & mask,
                load_eight(at + (length < 16 ? 0 : length - 16)) & mask, last};
    }
    static size_t place(const Words& words, size_t length) {
        uint64_t mixed = (words.first ^ length) * 0x9E3779B97F4A7C15ull + words.last;
        return (mixed * 0xD1B54A32D192ED03ull) >> (64 - BITS);
    }

    Known known_[size_t{1} << BITS];
    size_t asked_ = 0, found_ = 0;
    bool is_worth_it_ = true;
};

}  // namespace ivme
