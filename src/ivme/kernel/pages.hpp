// Large blocks of memory straight from the system, on huge pages where it has them: random access to maps that
// outgrow the caches otherwise spends much of its time on translating addresses. Growing moves pages, not bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__linux__) && !defined(IVME_SANITIZE)
#include <sys/mman.h>
#define IVME_PAGES 1
#endif

namespace ivme {

inline constexpr size_t HUGE_PAGE = size_t{1} << 21;

// Blocks of at least this many bytes are made of pages.
#ifdef IVME_PAGES
inline constexpr size_t PAGED = size_t{1} << 21;
#else
inline constexpr size_t PAGED = ~size_t{0};
#endif

inline size_t round_to_pages(size_t bytes) { return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

#ifdef IVME_PAGES

// Address space whose start is a multiple of a huge page; null if there is none.
inline char* reserve_pages(size_t bytes) {
    size_t whole = bytes + HUGE_PAGE;
    void* space = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(space);
    char* aligned = reinterpret_cast<char*>(round_to_pages(reinterpret_cast<uintptr_t>(start)));
    if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
    size_t rest = static_cast<size_t>(start + whole - (aligned + bytes));
    if (rest) munmap(aligned + bytes, rest);
    madvise(aligned, bytes, MADV_HUGEPAGE);
    return aligned;
}

inline void free_pages(void* block, size_t bytes) { munmap(block, round_to_pages(bytes)); }

inline void* grow_pages(void* old, size_t old_bytes, size_t bytes) {
    char* fresh = reserve_pages(round_to_pages(bytes));
    if (!fresh || !old) return fresh;
    void* moved =
        mremap(old, round_to_pages(old_bytes), round_to_pages(old_bytes), MREMAP_MAYMOVE | MREMAP_FIXED, fresh);
    if (moved == MAP_FAILED) {
        free_pages(fresh, bytes);
        return nullptr;
    }
    return fresh;
}

// Without it, a page that is read first is one of zeroes that all share, and is exchanged, alone, when it is written.
// An older system does not know how, and does that.
inline void touch_pages(void* block, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
    madvise(block, bytes, MADV_POPULATE_WRITE);
#else
    (void)block, (void)bytes;
#endif
}

#else

inline void touch_pages(void*, size_t) {}
inline void free_pages(void*, size_t) {}
inline void* grow_pages(void*, size_t, size_t) { return nullptr; }

#endif

}  // namespace ivme
