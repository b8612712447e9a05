// A set of nodes: a sorted array while it is small, a bitset once that takes less memory.
//
// So a row takes at most min(4 bytes a member, one bit a node), and the union of two large rows goes 64 nodes at a
// time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "array.hpp"

namespace ivme {

class Row {
public:
    size_t size() const { return size_; }
    size_t bytes() const { return sizeof(Row) + few_.capacity() * 4 + bits_.capacity() * 8; }

    bool test(uint32_t node) const {
        if (dense_) return node / 64 < bits_.size() && (bits_[node / 64] >> (node % 64) & 1);
        return std::binary_search(few_.begin(), few_.end(), node);
    }

    void set(uint32_t node) {
        if (dense_) {
            grow(node / 64 + 1);
            uint64_t bit = uint64_t{1} << (node % 64);
            size_ += !(bits_[node / 64] & bit);
            bits_[node / 64] |= bit;
            return;
        }
        auto place = std::lower_bound(few_.begin(), few_.end(), node);
        if (place != few_.end() && *place == node) return;
        few_.insert(place, node);
        settle();
    }

    // Adds all members of another row, and those of this one stay.
    void unite(const Row& other) {
        if (&other == this || !other.size_) return;
        if (!other.dense_ && !dense_) {
            std::vector<uint32_t> both;
            both.reserve(few_.size() + other.few_.size());
            std::set_union(few_.begin(), few_.end(), other.few_.begin(), other.few_.end(), std::back_inserter(both));
            few_.swap(both);
            settle();
            return;
        }
        if (!dense_) widen();
        if (!other.dense_) {
            for (uint32_t node : other.few_) set(node);
            return;
        }
        grow(other.bits_.size());
        size_t total = 0;
        for (size_t i = 0; i < other.bits_.size(); ++i) {
            bits_[i] |= other.bits_[i];
            total += static_cast<size_t>(std::popcount(bits_[i]));
        }
        for (size_t i = other.bits_.size(); i < bits_.size(); ++i)
            total += static_cast<size_t>(std::popcount(bits_[i]));
        size_ = total;
    }

    template <class Visit>
    void each(Visit visit) const {
        if (!dense_) {
            for (uint32_t node : few_) visit(node);
            return;
        }
        for (size_t i = 0; i < bits_.size(); ++i) {
            for (uint64_t word = bits_[i]; word; word &= word - 1) {
                visit(static_cast<uint32_t>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
            }
        }
    }

    // The members that the other row has not; 64 at a time where both are bitsets.
    template <class Visit>
    void each_not_in(const Row& other, Visit visit) const {
        if (!dense_ || !other.dense_) {
            each([&](uint32_t node) {
                if (!other.test(node)) visit(node);
            });
            return;
        }
        for (size_t i = 0; i < bits_.size(); ++i) {
            uint64_t word = bits_[i] & ~(i < other.bits_.size() ? other.bits_[i] : 0);
            for (; word; word &= word - 1) {
                visit(static_cast<uint32_t>(i * 64 + static_cast<size_t>(std::countr_zero(word))));
            }
        }
    }

    bool equals(const Row& other) const {
        if (size_ != other.size_) return false;
        bool same = true;
        each_not_in(other, [&](uint32_t) { same = false; });
        return same;
    }

private:
    // A bitset over the nodes up to the largest member, once it is smaller than the array.
    void settle() {
        size_ = few_.size();
        if (size_ > 16 && size_ * 32 > few_.back()) widen();
    }

    void widen() {
        spend_allocation();
        std::vector<uint64_t> bits(few_.empty() ? 0 : few_.back() / 64 + 1);
        for (uint32_t node : few_) bits[node / 64] |= uint64_t{1} << (node % 64);
        bits_.swap(bits);
        few_ = {};
        dense_ = true;
    }

    void grow(size_t words) {
        if (words > bits_.size()) bits_.resize(words);
    }

    std::vector<uint32_t> few_;
    std::vector<uint64_t> bits_;
    size_t size_ = 0;
    bool dense_ = false;
};

}  // namespace ivme
