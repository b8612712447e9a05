// Arrays of plain values. Large ones live on pages of their own and grow by a quarter, so that a map's memory stays
// near what it holds; smaller ones, which are copied as they grow, by more. Every allocation passes `allocate`, which
// tests can make fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "pages.hpp"

namespace ivme {

// Allocations that may still succeed on this thread; negative means no limit.
inline thread_local int64_t allocation_budget = -1;

// Bytes that arrays and tables of this thread have copied as they grew: what a single row may have to wait for.
inline thread_local uint64_t bytes_copied = 0;

inline void spend_allocation() {
    if (allocation_budget < 0) return;
    if (allocation_budget == 0) throw std::bad_alloc();
    --allocation_budget;
}

// A count of columns, slots or steps, which is small.
unsigned count_of(const auto& items) { return static_cast<unsigned>(items.size()); }

inline bool has_place(const std::vector<unsigned>& places, unsigned place) {
    return std::find(places.begin(), places.end(), place) != places.end();
}

// A failure like that of an allocation: the memory limit is reached.
struct MemoryLimit : std::bad_alloc {
    const char* what() const noexcept override { return "beyond the memory limit"; }
};

// Bytes by which the arrays of this thread may still grow; negative means no limit. What they give back counts.
inline thread_local int64_t memory_room = -1;

inline void spend_memory(size_t more, size_t less) {
    if (memory_room < 0) return;
    int64_t left = memory_room - static_cast<int64_t>(more) + static_cast<int64_t>(less);
    if (left < 0) throw MemoryLimit();
    memory_room = left;
}

inline void give_memory(size_t bytes) noexcept {
    if (memory_room >= 0) memory_room += static_cast<int64_t>(bytes);
}

template <class T>
class Array {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Array() = default;
    // A copy with as much room; never made by accident.
    explicit Array(const Array& other) {
        if (!other.capacity_) return;
        reallocate(other.capacity_);
        size_ = other.size_;
        if (size_) std::memcpy(data_, other.data_, size_ * sizeof(T));
    }
    Array& operator=(const Array&) = delete;
    Array(Array&& other) noexcept { swap(other); }
    Array& operator=(Array&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Array() { discard(data_, capacity_ * sizeof(T)); }

    void swap(Array& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    size_t bytes() const { return capacity_ * sizeof(T); }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

    void reserve(size_t wanted) {
        if (wanted <= capacity_) return;
        size_t held = capacity_ * sizeof(T);
        size_t grown = capacity_ + (held < SMALL_PAGES ? capacity_ : held < HUGE_PAGE ? capacity_ / 2 : capacity_ / 4);
        if (memory_room >= 0) grown = std::min(grown, capacity_ + static_cast<size_t>(memory_room) / sizeof(T));
        reallocate(wanted > grown ? wanted : grown);
    }

    // New elements have any value.
    void resize(size_t size) {
        reserve(size);
        size_ = size;
    }

    void push(T value) {
        if (size_ == capacity_) reserve(size_ + 1);
        data_[size_++] = value;
    }

    void clear() { size_ = 0; }

    void release() noexcept {
        discard(data_, capacity_ * sizeof(T));
        data_ = nullptr;
        size_ = capacity_ = 0;
    }

    // Contents of zeroes.
    void zeroed(size_t size) {
        spend_allocation();
        size_t wanted = (size ? size : 1) * sizeof(T);
        spend_memory(size * sizeof(T), 0);
        T* fresh = static_cast<T*>(wanted < PAGED ? std::calloc(1, wanted) : zero_pages(wanted));
        if (!fresh) refuse(size * sizeof(T));
        discard(data_, capacity_ * sizeof(T));
        data_ = fresh;
        size_ = capacity_ = size;
    }

    // Has the system bring all pages of a large block at once: most of it is about to be written.
    void touch() noexcept {
        if (bytes() >= PAGED) touch_pages(data_, bytes());
    }

    // Gives back the memory of elements that are zero, so many that they fill a huge page.
    static constexpr size_t DROPPED = HUGE_PAGE / sizeof(T);
    void drop_zeroes(size_t first) noexcept {
        if (bytes() >= PAGED && first + DROPPED <= capacity_) drop_pages(data_ + first, HUGE_PAGE);
    }

    // Gives up a buffer that one large batch left behind, so that it does not stay for good.
    void trim(size_t keep) noexcept {
        if (capacity_ > keep) release();
        size_ = 0;
    }

private:
    void reallocate(size_t capacity) {
        spend_allocation();
        size_t held = capacity_ * sizeof(T), wanted = (capacity ? capacity : 1) * sizeof(T);
        spend_memory(capacity * sizeof(T), held);
        void* grown;
        if (held < PAGED) bytes_copied += held;
        if (wanted < PAGED) {
            grown = std::realloc(data_, wanted);
        } else {
            bool paged = held >= PAGED;
            grown = grow_pages(paged ? data_ : nullptr, held, wanted);
            if (grown && !paged && data_) {
                std::memcpy(grown, data_, held);
                std::free(data_);
            }
        }
        if (!grown) refuse(capacity * sizeof(T) - held);
        data_ = static_cast<T*>(grown);
        capacity_ = capacity;
    }

    [[noreturn]] static void refuse(size_t bytes) {
        give_memory(bytes);
        throw std::bad_alloc();
    }

    static void discard(T* data, size_t bytes) noexcept {
        give_memory(bytes);
        if (bytes < PAGED) {
            std::free(data);
        } else {
            free_pages(data, bytes);
        }
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

}  // namespace ivme
