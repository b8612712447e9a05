#include "column_loops.hpp"

#include <cstring>
#include <limits>

#include "portable.hpp"

namespace ivme {

namespace {

// Least and most start at the other end, so that no code but NULL keeps them there.
template <bool HAS_NULL>
inline CodeRange range_of_all(const int64_t* codes, size_t n) {
    int64_t least = std::numeric_limits<int64_t>::max(), most = NULL_CODE;
    for (size_t i = 0; i < n; ++i) {
        int64_t low = HAS_NULL && codes[i] == NULL_CODE ? std::numeric_limits<int64_t>::max() : codes[i];
        least = low < least ? low : least;
        most = codes[i] > most ? codes[i] : most;
    }
    return {least, most};
}

template <class Cell>
inline void narrow_all(const int64_t* codes, size_t n, int64_t base, Cell* to) {
    for (size_t i = 0; i < n; ++i) {
        auto distance = static_cast<Cell>(static_cast<uint64_t>(codes[i]) - static_cast<uint64_t>(base));
        to[i] = codes[i] == NULL_CODE ? static_cast<Cell>(~Cell{0}) : distance;
    }
}

template <class Number>
inline Number number_at(const void* numbers, size_t i) {
    Number number;
    std::memcpy(&number, static_cast<const char*>(numbers) + i * sizeof(Number), sizeof(Number));
    return number;
}

}  // namespace

// NULL is the least of all codes: where it is not among them, nothing has to be looked at twice.
IVME_CLONES CodeRange range_of(const int64_t* codes, size_t n) {
    CodeRange found = range_of_all<false>(codes, n);
    return n && found.least == NULL_CODE ? range_of_all<true>(codes, n) : found;
}

IVME_CLONES bool are_within(const int64_t* codes, size_t n, int64_t least, int64_t most) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) outside |= (codes[i] < least) | (codes[i] > most);
    return !outside;
}

IVME_CLONES void compare_with_next(const int64_t* codes, size_t n, bool* is_below) {
    for (size_t i = 0; i < n; ++i) is_below[i] = (codes[i] < codes[i + 1]) | ((codes[i] == codes[i + 1]) & is_below[i]);
}

IVME_CLONES bool widen(const void* numbers, size_t n, int64_t least, int64_t most, int64_t* codes) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) {
        int64_t code = number_at<int32_t>(numbers, i);
        codes[i] = code;
        outside |= (code < least) | (code > most);
    }
    return !outside;
}

IVME_CLONES bool take_low_words(const void* words, size_t n, int64_t most, int64_t* codes) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) {
        int64_t low = number_at<int64_t>(words, 2 * i), high = number_at<int64_t>(words, 2 * i + 1);
        codes[i] = low;
        outside |= (low < -most) | (low > most) | (high != low >> 63);
    }
    return !outside;
}

IVME_CLONES bool are_narrow_within(const void* numbers, size_t n, int64_t least, int64_t most) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) {
        int64_t code = number_at<int32_t>(numbers, i);
        outside |= (code < least) | (code > most);
    }
    return !outside;
}

IVME_CLONES bool are_low_words(const void* words, size_t n, int64_t most) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) {
        int64_t low = number_at<int64_t>(words, 2 * i), high = number_at<int64_t>(words, 2 * i + 1);
        outside |= (low < -most) | (low > most) | (high != low >> 63);
    }
    return !outside;
}

IVME_CLONES bool go_forward(const void* offsets, size_t n) {
    bool goes_back = false;
    for (size_t i = 0; i < n; ++i) goes_back |= number_at<int32_t>(offsets, i + 1) < number_at<int32_t>(offsets, i);
    return !goes_back;
}

IVME_CLONES bool are_ascii(const char* text, size_t n) {
    uint8_t seen = 0;
    for (size_t i = 0; i < n; ++i) seen |= static_cast<uint8_t>(text[i]);
    return seen < 0x80;
}

IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint8_t* to) { narrow_all(codes, n, base, to); }
IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint16_t* to) { narrow_all(codes, n, base, to); }
IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint32_t* to) { narrow_all(codes, n, base, to); }

}  // namespace ivme
