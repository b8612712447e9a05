// Counts and sums as Python shows them: numbers, lists and arrays.
#pragma once

#include "bind.hpp"

namespace ivme {

// The sums of floats in some payloads, taken out of them while their kernel is locked: rounded, or as they are.
struct ShownFloats {
    ShownFloats() = default;
    ShownFloats(const Layout& layout, const int64_t* payloads, size_t n, bool exact);

    bool exact = false;
    std::vector<Array<double>> rounded;  // by slot; empty for those of other kinds
    std::vector<std::vector<FullFloat>> full;

    nb::object value(size_t slot, size_t row) const;
};

// The counts and the slots of row-major payloads, each as an array of its own; of exact floats, as a list.
nb::tuple payload_arrays(const Layout& layout, Array<int64_t> payloads, size_t n, ShownFloats floats);

// The slots, each as a list of numbers.
nb::list slot_lists(const Layout& layout, const Array<int64_t>& payloads, size_t n, const ShownFloats& floats);

// One payload: its count, and a number for each slot.
nb::object payload_object(const Layout& layout, const int64_t* payload, const ShownFloats& floats);

}  // namespace ivme
