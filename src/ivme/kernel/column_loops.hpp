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

}  // namespace ivme
