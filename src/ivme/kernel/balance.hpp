// Whether a view with heavy and light parts stays as it is after rows came or went, or Python has to rebalance it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel.hpp"

namespace ivme {

// N, the tuples of the measured maps and tables, is at least `least` and below `most`, and no partition has noted a key
// that has to change sides. Until limits are set, nothing holds.
class Balance {
public:
    Balance(Kernel& kernel, std::vector<size_t> partitions, std::vector<size_t> maps, std::vector<size_t> heaps)
        : kernel_(kernel), partitions_(std::move(partitions)), maps_(std::move(maps)), heaps_(std::move(heaps)) {}

    void set_limits(uint64_t least, uint64_t most, uint64_t often) {
        least_ = least;
        most_ = most;
        often_ = often;
    }

    // The caller has the kernel's lock.
    bool holds() const {
        uint64_t size = 0;
        for (size_t id : maps_) size += kernel_.map(id).size();
        for (size_t id : heaps_) size += kernel_.heap(id).size();
        if (size < least_ || size >= most_) return false;
        return std::all_of(partitions_.begin(), partitions_.end(), [&](size_t id) {
            const Partition& partition = kernel_.partition(id);
            return !partition.rising.size() && !partition.falling.size();
        });
    }

    // Where the piece ends that begins at a row: none has more rows than a quarter of M, nor a value more often than
    // M^ε, as `Rebalancer.pieces` has it. `wish` is how many rows the last one had at most.
    size_t end_of_piece(const std::vector<const int64_t*>& columns, size_t begin, size_t end, size_t& wish) const {
        size_t size = std::min<size_t>(end - begin, std::max<size_t>(often_, std::min<size_t>(wish, least_)));
        while (size > often_ && !are_rare(columns, begin, size)) wish = size = std::max<size_t>(often_, size / 2);
        return begin + size;
    }

    // A batch after which it does not hold is taken twice, by the kernel in vain. So of those that follow, each time it
    // happens, more are left to Python at once.
    bool is_worth_trying() {
        if (!left_) return true;
        --left_;
        return false;
    }
    void failed() { left_ = skipped_ = std::min(2 * skipped_ + 1, MOST_SKIPPED); }
    void passed(size_t n) {
        rows += n;
        skipped_ = 0;
    }

    const Kernel& kernel() const { return kernel_; }

    uint64_t rows = 0;  // that came or went without Python

private:
    static constexpr unsigned MOST_SKIPPED = 15;

    // Whether no value comes more often in these rows, nor do all values together that share their low bits.
    bool are_rare(const std::vector<const int64_t*>& columns, size_t begin, size_t size) const {
        uint64_t mask = (uint64_t{1} << std::bit_width(8 * size / often_)) - 1;
        for (const int64_t* column : columns) {
            std::vector<uint32_t> counts(mask + 1);
            for (size_t row = begin; row < begin + size; ++row) {
                if (++counts[static_cast<uint64_t>(column[row]) & mask] > often_) return false;
            }
        }
        return true;
    }

    Kernel& kernel_;
    std::vector<size_t> partitions_, maps_, heaps_;
    uint64_t least_ = 1, most_ = 0, often_ = 1;
    unsigned skipped_ = 0, left_ = 0;
};

inline bool are_worth_trying(const std::vector<Balance*>& balances) {
    return std::all_of(balances.begin(), balances.end(), [](Balance* each) { return each->is_worth_trying(); });
}

}  // namespace ivme
