// The order of strings by their codes: that of their bytes, which for UTF-8 is the order of code points, as in Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "dictionary.hpp"

namespace ivme {

// Codes that are no strings of the dictionary sort by value, after none and before all of its strings.
inline bool is_less(const Dictionary& strings, int64_t a, int64_t b) {
    bool left = strings.holds(a), right = strings.holds(b);
    if (left && right) return strings.text(a) < strings.text(b);
    if (left == right || a == NULL_CODE || b == NULL_CODE) return a < b;
    if (!strings.has_numbers()) return !left;
    auto is_negative = [&](int64_t code) { return static_cast<unsigned char>(strings.text(code)[0]) < 0x80; };
    return left ? is_negative(a) : !is_negative(b);
}

// A number that is never greater than that of a code which is not less: the first bytes of its string behind those that
// many strings begin with. Strings that do not begin so are all before them, or all behind them.
inline uint64_t prefix_of(const Dictionary& strings, int64_t code, std::string_view shared) {
    constexpr uint64_t MIDDLE = uint64_t{1} << 63;
    if (!strings.holds(code)) return !strings.has_numbers() ? 0 : code < 0 ? MIDDLE - 1 : MIDDLE;
    std::string_view string = strings.text(code);
    if (!string.starts_with(shared)) return string < shared ? 0 : ~uint64_t{0};
    string.remove_prefix(shared.size());
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; ++i) bytes = bytes << 8 | (i < string.size() ? static_cast<uint8_t>(string[i]) : 0);
    return bytes;
}

// What the strings of some codes begin with, all of them; nothing for those of numbers.
inline std::string_view shared_start(const Dictionary& strings, const int64_t* codes, size_t n) {
    std::string_view shared;
    bool is_first = true;
    for (size_t i = 0; i < n && !strings.has_numbers(); ++i) {
        if (!strings.holds(codes[i])) continue;
        std::string_view string = strings.text(codes[i]);
        if (is_first) shared = string;
        is_first = false;
        size_t same = 0;
        while (same < std::min(shared.size(), string.size()) && shared[same] == string[same]) ++same;
        shared = shared.substr(0, same);
    }
    return shared;
}

}  // namespace ivme
