// A trigger that rows go through, and the places of the codes that it wants.
#pragma once

#include <memory>
#include <vector>

#include "balance.hpp"

namespace ivme {

struct RowRun {
    size_t trigger;
    std::vector<unsigned> places;
    std::vector<size_t> empty;  // while these maps are, `light` does the same in fewer steps
    std::shared_ptr<const RowRun> light;
    Balance* balance = nullptr;  // of a view with heavy and light parts, which takes many rows in pieces
};

}  // namespace ivme
