// A column of codes in 1, 2, 4 or 8 bytes each, whichever the codes need: as distances from the least of them, NULL
// being the largest number of the width. Most columns of a table take half or a quarter of a word, and so do the pages
// that fresh rows touch first.
//
// A code that does not fit makes the column wider, at most three times in its life, with room on both sides.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "array.hpp"
#include "column_loops.hpp"
#include "portable.hpp"

namespace ivme {

class NarrowColumn {
    template <class Work>
    auto typed(Work work) const {
        const uint8_t* cells = cells_.data();
        if (width_ == 1) return work(cells);
        if (width_ == 2) return work(reinterpret_cast<const uint16_t*>(cells));
        if (width_ == 4) return work(reinterpret_cast<const uint32_t*>(cells));
        return work(reinterpret_cast<const uint64_t*>(cells));
    }
    template <class Work>
    auto typed(Work work) {
        uint8_t* cells = cells_.data();
        if (width_ == 1) return work(cells);
        if (width_ == 2) return work(reinterpret_cast<uint16_t*>(cells));
        if (width_ == 4) return work(reinterpret_cast<uint32_t*>(cells));
        return work(reinterpret_cast<uint64_t*>(cells));
    }

public:
    NarrowColumn() = default;
    // Without negative codes at first.
    struct FromZero {};
    explicit NarrowColumn(FromZero) : is_based_(true) {}

    size_t size() const { return size_; }
    size_t bytes() const { return cells_.bytes(); }
    unsigned width() const { return width_; }
    // No code but NULL is below or above these.
    int64_t least() const { return width_ == 8 ? NULL_CODE : base_; }
    int64_t most() const {
        constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();
        if (width_ == 8 || distance(base_, LARGEST) < null_of(width_)) return LARGEST;
        return base_ + static_cast<int64_t>(null_of(width_));
    }

    int64_t operator[](size_t row) const {
        return typed([&](const auto* cells) { return value(cells[row]); });
    }
    void prefetch(size_t row) const { prefetch_line(cells_.data() + row * width_); }

    // Rows from `first` on, as words.
    void copy(size_t first, size_t n, int64_t* to) const {
        typed([&](const auto* cells) {
            for (size_t i = 0; i < n; ++i) to[i] = value(cells[first + i]);
        });
    }

    // Calls `visit` with the place and the code of each row.
    template <class Visit>
    void each(Visit visit) const {
        typed([&](const auto* cells) {
            for (size_t row = 0; row < size_; ++row) visit(row, value(cells[row]));
        });
    }

    // Makes room for these codes behind those that are there; only this can fail, and changes no code.
    void prepare(const int64_t* codes, size_t n) {
        if (width_ < 8) {
            auto [least, most] = range_of(codes, n);
            if (least <= most && !fits(least, most)) widen(least, most);
        }
        cells_.reserve((size_ + n) * width_);
    }

    // Codes that were prepared.
    void append(const int64_t* codes, size_t n) {
        cells_.resize((size_ + n) * width_);
        typed([&](auto* cells) {
            if constexpr (sizeof(*cells) == 8) {
                if (n) std::memcpy(cells + size_, codes, n * sizeof(int64_t));
            } else {
                narrow(codes, n, base_, cells + size_);
            }
        });
        size_ += n;
    }

    // Puts a code that was prepared, or that the column has had, into the place of a row's.
    void set(size_t row, int64_t code) noexcept {
        typed([&](auto* cells) { put(cells[row], code); });
    }

    void cut(size_t size) noexcept {
        cells_.resize(size * width_);
        size_ = size;
    }
    // Puts the code of one row into the place of another.
    void move(size_t from, size_t to) noexcept {
        std::memcpy(cells_.data() + to * width_, cells_.data() + from * width_, width_);
    }
    // Gives back the room for more rows.
    void fit() {
        Array<uint8_t> fresh;
        fresh.resize(cells_.size());
        std::copy_n(cells_.data(), cells_.size(), fresh.data());
        cells_.swap(fresh);
    }

private:
    // The largest distance, which stands for NULL; words are as they are.
    static uint64_t null_of(unsigned width) { return width == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * width) - 1; }

    template <class Cell>
    int64_t value(Cell cell) const {
        if constexpr (sizeof(Cell) == 8) return static_cast<int64_t>(cell);
        return cell == static_cast<Cell>(~Cell{0}) ? NULL_CODE
                                                   : static_cast<int64_t>(static_cast<uint64_t>(base_) + cell);
    }
    template <class Cell>
    void put(Cell& cell, int64_t code) const {
        if constexpr (sizeof(Cell) == 8) {
            cell = static_cast<uint64_t>(code);
        } else {
            auto distance = static_cast<Cell>(static_cast<uint64_t>(code) - static_cast<uint64_t>(base_));
            cell = code == NULL_CODE ? static_cast<Cell>(~Cell{0}) : distance;
        }
    }

    bool fits(int64_t least, int64_t most) const {
        if (width_ == 8) return true;
        return is_based_ && least >= base_ && distance(base_, most) < null_of(width_);
    }
    static uint64_t distance(int64_t from, int64_t to) {
        return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    }

    // Another width, or the first base, for the codes that are there and those from `least` to `most`.
    void widen(int64_t least, int64_t most) {
        bool is_first = !is_based_;
        each([&](size_t, int64_t code) {
            if (code == NULL_CODE) return;
            least = std::min(least, code);
            most = std::max(most, code);
        });
        uint64_t range = distance(least, most);
        unsigned width = is_first ? 1 : width_ * 2;
        while (width < 8 && range >= null_of(width) / (is_first ? 1 : 2)) width *= 2;
        NarrowColumn wider;
        wider.width_ = width;
        wider.is_based_ = true;
        wider.base_ = width == 8 ? 0 : centred(least, is_first ? 0 : (null_of(width) - range) / 2);
        wider.cells_.resize(size_ * width);
        wider.size_ = size_;
        wider.typed([&](auto* cells) { each([&](size_t row, int64_t code) { wider.put(cells[row], code); }); });
        *this = std::move(wider);
    }
    // A base that leaves room below; no code is NULL's.
    static int64_t centred(int64_t least, uint64_t room) {
        uint64_t below = distance(NULL_CODE + 1, least);
        return static_cast<int64_t>(static_cast<uint64_t>(least) - std::min(room, below));
    }

    Array<uint8_t> cells_;
    size_t size_ = 0;
    unsigned width_ = 1;
    bool is_based_ = false;  // whether there was a code but NULL
    int64_t base_ = 0;
};

}  // namespace ivme
