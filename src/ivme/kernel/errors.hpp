// The failures of a kernel. Each reaches Python as an exception of its own; a run that throws one is rolled back.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ivme {

struct Overflow : std::runtime_error {
    Overflow() : std::runtime_error("a count or a sum left the range of its type; the batch was rolled back") {}
};

struct Capacity : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Stale : std::runtime_error {
    Stale() : std::runtime_error("the cursor outlived the state it was opened on; open a new one") {}
};

// A row left a strict map with a negative count: a delete of something that is not there.
struct Negative : std::runtime_error {
    explicit Negative(std::vector<int64_t> codes)
        : std::runtime_error("a count fell below zero; the batch was rolled back"), codes(std::move(codes)) {}
    std::vector<int64_t> codes;
};


}  // namespace ivme
