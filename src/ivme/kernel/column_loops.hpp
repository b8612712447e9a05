// Loops over whole columns that a processor takes four or eight codes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dictionary.hpp"

namespace ivme {

// The least and the largest of some codes; NULL counts for neither, and if there is no other, the least is the larger.
struct CodeRange {
    int64_t least, most;
};
CodeRange range_of(const int64_t* codes, size_t n);

// Codes as distances from a base.
void narrow(const int64_t* codes, size_t n, int64_t base, uint8_t* to);
void narrow(const int64_t* codes, size_t n, int64_t base, uint16_t* to);
void narrow(const int64_t* codes, size_t n, int64_t base, uint32_t* to);

// Whether all are from `least` to `most`.
bool are_within(const int64_t* codes, size_t n, int64_t least, int64_t most);

// Whether each code is below the next one of the column; where they are equal, what was there stays.
void compare_with_next(const int64_t* codes, size_t n, bool* is_below);

// What follows reads numbers that may lie anywhere.

// Integers of 32 bits as codes; whether all are from `least` to `most`.
bool widen(const void* numbers, size_t n, int64_t least, int64_t most, int64_t* codes);
// The low ones of pairs of words; whether all pairs are numbers from -`most` to `most`.
bool take_low_words(const void* words, size_t n, int64_t most, int64_t* codes);
// The same without taking them.
bool are_narrow_within(const void* numbers, size_t n, int64_t least, int64_t most);
bool are_low_words(const void* words, size_t n, int64_t most);
// Whether of `n` + 1 offsets none is below the one before it.
bool go_forward(const void* offsets, size_t n);
// Whether no byte has its first bit set.
bool are_ascii(const char* text, size_t n);

}  // namespace ivme
