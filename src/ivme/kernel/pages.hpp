// Large blocks of memory straight from the system, on huge pages where it has them: random access to maps that
// outgrow the caches otherwise spends much of its time on translating addresses. Growing moves pages, not bytes.
//
// A huge page takes the system a tenth of a millisecond to clear, and where memory is fragmented milliseconds to find.
// Many rows at once are worth that; a single row does not wait for it, but takes small pages, which the system makes
// huge ones of later, by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__linux__) && !defined(IVME_SANITIZE)
#include <sys/mman.h>

#include "page_pool.hpp"
#define IVME_PAGES 1
#endif

namespace ivme {

inline constexpr size_t HUGE_PAGE = size_t{1} << 21;
inline constexpr size_t SMALL_PAGES = size_t{1} << 16;  // a multiple of what any system calls a page

// Blocks of at least this many bytes are made of pages: to copy so many takes some microseconds.
#ifdef IVME_PAGES
inline constexpr size_t PAGED = size_t{1} << 18;
#else
inline constexpr size_t PAGED = ~size_t{0};
#endif

// Whether this thread adds rows one by one, so that none of them may wait for long.
inline thread_local bool adds_few_rows = false;

class FewRows {
public:
    FewRows() : before_(adds_few_rows) { adds_few_rows = true; }
    FewRows(const FewRows&) = delete;
    FewRows& operator=(const FewRows&) = delete;
    ~FewRows() { adds_few_rows = before_; }

private:
    bool before_;
};

#ifdef IVME_PAGES
static_assert(PagePool::UNIT == SMALL_PAGES && PagePool::WHOLE == HUGE_PAGE);
#endif

inline size_t round_to_pages(size_t bytes) {
    size_t unit = bytes < HUGE_PAGE ? SMALL_PAGES : HUGE_PAGE;
    return (bytes + unit - 1) / unit * unit;
}

#ifdef IVME_PAGES

// Address space, null if there is none. That of large blocks starts at a multiple of a huge page.
inline char* reserve_pages(size_t bytes) {
    size_t spare = bytes < HUGE_PAGE ? 0 : HUGE_PAGE, whole = bytes + spare;
    void* space = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(space);
    if (!spare) return start;
    char* aligned = reinterpret_cast<char*>(round_to_pages(reinterpret_cast<uintptr_t>(start)));
    if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
    size_t rest = static_cast<size_t>(start + whole - (aligned + bytes));
    if (rest) munmap(aligned + bytes, rest);
    return aligned;
}

inline void free_pages(void* block, size_t bytes) noexcept {
    size_t held = round_to_pages(bytes);
    if (held < HUGE_PAGE && PagePool::shared().give_back(static_cast<char*>(block), held)) return;
    munmap(block, held);
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

// Of which kind the pages are that have not been touched yet. A batch is about to write all of a small block, and takes
// them in one call.
inline void choose_pages(char* block, size_t bytes) {
    if (bytes) madvise(block, bytes, adds_few_rows ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    if (bytes < HUGE_PAGE && !adds_few_rows) touch_pages(block, bytes);
}

// Moves a block to a larger one, as one mapping: an older system cannot move several at once. What it had has been
// written, and may become huge pages whenever the system finds some; null if there is no address space.
inline char* move_pages(char* old, size_t old_bytes, size_t bytes) {
    char* fresh = reserve_pages(bytes);
    if (!fresh) return nullptr;
    madvise(old, old_bytes, MADV_HUGEPAGE);
    if (mremap(old, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, fresh) != MAP_FAILED) return fresh;
    // The space may be gone or not, and is left alone.
    fresh = reserve_pages(bytes);
    if (!fresh) return nullptr;
    std::memcpy(fresh, old, old_bytes);
    munmap(old, old_bytes);
    return fresh;
}

// A huge page for the pool.
inline char* make_huge_page() noexcept {
    char* fresh = reserve_pages(HUGE_PAGE);
    if (fresh) madvise(fresh, HUGE_PAGE, MADV_HUGEPAGE);
    return fresh;
}

// So many pages, of any contents or of zeroes. Those of a batch come from the pool if they are fewer than a huge one.
inline char* new_pages(size_t bytes, bool zeroed) {
    if (bytes < HUGE_PAGE && !adds_few_rows) {
        auto [start, is_fresh] = PagePool::shared().take(bytes, make_huge_page);
        if (start && is_fresh) touch_pages(start, bytes);
        if (start && !is_fresh && zeroed) std::memset(start, 0, bytes);
        if (start) return start;
    }
    char* fresh = reserve_pages(bytes);
    if (fresh) choose_pages(fresh, bytes);
    return fresh;
}

// A batch copies a block of small pages into a larger one, which is faster than to move them and to bring the rest.
inline void* grow_pages(void* old, size_t old_bytes, size_t bytes) {
    size_t held = old ? round_to_pages(old_bytes) : 0, wanted = round_to_pages(bytes);
    if (held == wanted) return old;
    if (!old) return new_pages(wanted, false);
    auto* block = static_cast<char*>(old);
    if (held < HUGE_PAGE && !adds_few_rows) {
        char* fresh = new_pages(wanted, false);
        if (!fresh) return nullptr;
        std::memcpy(fresh, block, std::min(old_bytes, bytes));
        free_pages(old, old_bytes);
        return fresh;
    }
    if (held < HUGE_PAGE) PagePool::shared().forget(block, held);  // before others can have its addresses
    char* fresh = move_pages(block, held, wanted);
    if (fresh) choose_pages(fresh + held, wanted - held);
    return fresh;
}

inline void* zero_pages(size_t bytes) { return new_pages(round_to_pages(bytes), true); }

// Gives whole huge pages of zeroes back; they are read as zeroes.
inline void drop_pages(void* block, size_t bytes) { madvise(block, bytes, MADV_DONTNEED); }

#else

inline void touch_pages(void*, size_t) {}
inline void drop_pages(void*, size_t) {}
inline void free_pages(void*, size_t) {}
inline void* grow_pages(void*, size_t, size_t) { return nullptr; }
inline void* zero_pages(size_t) { return nullptr; }

#endif

}  // namespace ivme
