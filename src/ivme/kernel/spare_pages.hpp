// Blocks of pages that were given back lately. A reader, or the next batch, wants blocks of the same sizes again at
// once, and the system would have to clear them first, which takes longer than to fill them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

namespace ivme {

class SparePages {
public:
    static SparePages& shared() {
        static auto* spares = new SparePages();  // blocks are given back until the process ends
        return *spares;
    }

    // A block of just so many bytes, with any contents; null if there is none.
    char* take(size_t bytes) noexcept {
        std::unique_lock lock(mutex_, std::try_to_lock);  // a process may be forked while another thread is in here
        if (!lock) return nullptr;
        auto found =
            std::find_if(blocks_.begin(), blocks_.end(), [&](const Spare& spare) { return spare.bytes == bytes; });
        if (found == blocks_.end()) return nullptr;
        char* block = found->start;
        *found = {};
        return block;
    }

    // Keeps a block, and hands over the one that has been here longest in its place, if it is not to be kept itself.
    struct Spare {
        char* start = nullptr;
        size_t bytes = 0;
    };
    Spare exchange(Spare given) noexcept {
        if (given.bytes > LARGEST) return given;
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return given;
        std::swap(given, blocks_[next_]);
        next_ = (next_ + 1) % blocks_.size();
        return given;
    }

private:
    static constexpr size_t LARGEST = size_t{1} << 20;

    std::mutex mutex_;
    std::array<Spare, 8> blocks_;
    size_t next_ = 0;
};

}  // namespace ivme
