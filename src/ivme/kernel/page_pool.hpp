// Blocks of less than a huge page, cut out of huge pages. Small pages take the system five times as long to clear, and
// columns, tables and results of medium size would otherwise be made of them, anew each time they grow or are read: a
// block that is given back is given out again as it is.
//
// Blocks that do not come from here lie beside those that do, and may lie where a block of the pool was before it was
// moved away. A caller that gives a block back does not say which it is: the pool finds out.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

namespace ivme {

class PagePool {
public:
    static constexpr size_t UNIT = size_t{1} << 16;
    static constexpr size_t WHOLE = UNIT * 32;

    static PagePool& shared() {
        static auto* pool = new PagePool();  // blocks are given back until the process ends
        return *pool;
    }

    struct Taken {
        char* start = nullptr;
        bool is_fresh = false;  // all of it is zero, and no page of it has been touched
    };
    // A block of so many bytes, a multiple of a unit and less than all of a huge page; `make` maps another huge page,
    // or is null if it cannot. Null if there is none.
    template <class Make>
    Taken take(size_t bytes, Make make) noexcept {
        std::lock_guard lock(mutex_);
        auto units = static_cast<unsigned>(bytes / UNIT);
        for (Chunk& chunk : chunks_) {
            if (char* found = chunk.take(units)) return {found, chunk.was_fresh(found, units)};
        }
        try {
            chunks_.reserve(chunks_.size() + 1);
        } catch (const std::bad_alloc&) {
            return {};
        }
        char* start = make();
        if (!start) return {};
        chunks_.push_back({start});
        return {chunks_.back().take(units), chunks_.back().was_fresh(start, units)};
    }

    // Takes a block back; false if it is not of the pool.
    bool give_back(char* block, size_t bytes) noexcept {
        return with_chunk(block, bytes, [&](Chunk& chunk) { chunk.free |= chunk.units_of(block, bytes); });
    }
    // The pages of a block are about to be moved elsewhere, if it is of the pool: others may have its addresses then.
    void forget(char* block, size_t bytes) noexcept {
        with_chunk(block, bytes, [&](Chunk& chunk) { chunk.gone |= chunk.units_of(block, bytes); });
    }

private:
    // A process that is forked goes on with the pool as it is: nobody else is in it meanwhile.
    PagePool() {
        pthread_atfork([] { shared().mutex_.lock(); }, [] { shared().mutex_.unlock(); },
                       [] { shared().mutex_.unlock(); });
    }

    static constexpr uint32_t ALL = ~uint32_t{0};
    static constexpr size_t KEPT = 4;  // huge pages of which no block is given out

    // A huge page; its units by bit.
    struct Chunk {
        char* start;
        uint32_t free = ALL, fresh = ALL, gone = 0;

        uint32_t units_of(const char* block, size_t bytes) const {
            return ((uint32_t{1} << bytes / UNIT) - 1) << static_cast<size_t>(block - start) / UNIT;
        }
        // Not where something else was mapped after a block had been moved away.
        bool gave(const char* block, size_t bytes) const {
            if (block < start || block + bytes > start + WHOLE || static_cast<size_t>(block - start) % UNIT)
                return false;
            return !(units_of(block, bytes) & (free | gone));
        }
        // The first units that lie side by side.
        char* take(unsigned units) {
            uint32_t runs = free;
            for (unsigned i = 1; i < units && runs; ++i) runs &= free >> i;
            if (!runs) return nullptr;
            char* block = start + static_cast<size_t>(std::countr_zero(runs)) * UNIT;
            free &= ~units_of(block, units * UNIT);
            return block;
        }
        bool was_fresh(const char* block, unsigned units) {
            uint32_t mask = units_of(block, units * UNIT);
            bool was = (fresh & mask) == mask;
            fresh &= ~mask;
            return was;
        }
        void unmap() const {
            for (unsigned unit = 0; unit < 32; ++unit) {
                if (!(gone >> unit & 1)) munmap(start + unit * UNIT, UNIT);
            }
        }
    };

    template <class Work>
    bool with_chunk(char* block, size_t bytes, Work work) noexcept {
        std::lock_guard lock(mutex_);
        auto found =
            std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) { return chunk.gave(block, bytes); });
        if (found == chunks_.end()) return false;
        work(*found);
        if ((found->free | found->gone) == ALL) release(found);
        return true;
    }
    // A huge page of which nothing is given out goes back to the system, unless it is one of a few.
    void release(std::vector<Chunk>::iterator chunk) noexcept {
        auto is_free = [](const Chunk& each) { return each.free == ALL; };
        if (!chunk->gone && static_cast<size_t>(std::count_if(chunks_.begin(), chunks_.end(), is_free)) <= KEPT) return;
        chunk->unmap();
        chunks_.erase(chunk);
    }

    std::mutex mutex_;
    std::vector<Chunk> chunks_;
};

}  // namespace ivme
