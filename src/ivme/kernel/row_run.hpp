// A trigger that rows go through, and the places of the codes that it wants.
#pragma once

#include <memory>
#include <vector>

#include "balance.hpp"

namespace ivme {

struct RowRun {
    size_t trigger;
    std::vector<unsigned> places;
    std::shared_ptr<const RowRun> light;  // does the same in fewer steps while some maps are empty
    Balance* balance = nullptr;           // of a view with heavy and light parts, which takes many rows in pieces
};

}  // namespace ivme
