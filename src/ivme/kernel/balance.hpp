// Whether a view with heavy and light parts stays as it is after rows came or went, or Python has to rebalance it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel.hpp"

namespace ivme {

// N, the tuples of the measured maps, is at least `least` and below `most`, and no partition has noted a key that has
// to change sides. Until limits are set, nothing holds.
class Balance {
public:
    Balance(Kernel& kernel, std::vector<size_t> partitions, std::vector<size_t> measured)
        : kernel_(kernel), partitions_(std::move(partitions)), measured_(std::move(measured)) {}

    void set_limits(uint64_t least, uint64_t most) {
        least_ = least;
        most_ = most;
    }

    // The caller has the kernel's lock.
    bool holds() const {
        uint64_t size = 0;
        for (size_t id : measured_) size += kernel_.map(id).size();
        if (size < least_ || size >= most_) return false;
        for (size_t id : partitions_) {
            const Partition& partition = kernel_.partition(id);
            if (partition.rising.size() || partition.falling.size()) return false;
        }
        return true;
    }

    uint64_t rows = 0;  // that came or went without Python

private:
    Kernel& kernel_;
    std::vector<size_t> partitions_, measured_;
    uint64_t least_ = 1, most_ = 0;
};

}  // namespace ivme
