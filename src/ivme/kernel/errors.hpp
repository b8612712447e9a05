// The failures of a kernel. Each reaches Python as an exception of its own; a run that throws one is rolled back.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ivme {

struct Overflow : std::runtime_error {
    Overflow() : std::runtime_error("a count does not fit 64 bits") {}
};

struct Capacity : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Stale : std::runtime_error {
    Stale() : std::runtime_error("the cursor outlived the state it was opened on; open a new one") {}
};

// An entry's count broke what its map demands; `what()` names the demand. The batch is rolled back.
struct BrokenCheck : std::runtime_error {
    BrokenCheck(const char* check, std::vector<int64_t> row) : std::runtime_error(check), codes(std::move(row)) {}
    std::vector<int64_t> codes;
};

}  // namespace ivme
