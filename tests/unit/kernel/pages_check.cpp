// Blocks that grow, by single rows and by batches in turn, keep what they have, and can be moved by systems that move
// one mapping at a time.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../../../src/ivme/kernel/array.hpp"

namespace {

// How many mappings of this process begin within a block.
unsigned mappings_within(const void* block, size_t bytes) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    auto start = reinterpret_cast<uintptr_t>(block);
    unsigned found = 0;
    char line[512];
    while (maps && std::fgets(line, sizeof line, maps)) {
        uintptr_t first = std::strtoull(line, nullptr, 16);
        found += first > start && first < start + bytes;
    }
    if (maps) std::fclose(maps);
    return found;
}

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

// A block that was given back is used again, for zeroes not with what it had.
void check_pool(size_t turn) {
    size_t size = (turn % 12 + 1) << 15;
    ivme::Array<uint64_t> ones, others, zeroes;
    ones.resize(size);
    std::fill_n(ones.data(), size, 1);
    const uint64_t* place = ones.data();
    ones.release();
    zeroes.zeroed(size);
    for (size_t i = 0; i < size; ++i) require(!zeroes[i], "zeroes are what another block had");
#ifdef IVME_PAGES
    size_t bytes = size * sizeof(uint64_t);
    if (bytes >= ivme::PAGED && bytes < ivme::HUGE_PAGE) require(zeroes.data() == place, "a block was not used again");
#else
    (void)place;
#endif
    others.resize(size);
    others.resize(2 * size);
    std::fill_n(others.data(), 2 * size, turn);
    for (size_t i = 0; i < size; ++i) require(!zeroes[i], "two blocks are one");
}

// Blocks of many sizes that come, grow and go, by batches and by single rows, each with numbers of its own, among what
// others map.
void check_blocks(uint64_t seed) {
    struct Block {
        ivme::Array<uint64_t> numbers;
        uint64_t first = 0;
    };
    auto next = [state = seed]() mutable {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return state >> 33;
    };
    std::vector<Block> blocks(30);
    std::vector<std::vector<char>> others(20);
    for (uint64_t turn = 0; turn < 3000; ++turn) {
        ivme::adds_few_rows = next() % 3 == 0;
        std::vector<char>((next() % 60 + 40) << 12, 1).swap(others[next() % others.size()]);
        Block& block = blocks[next() % blocks.size()];
        for (size_t i = 0; i < block.numbers.size(); i += 509) {
            require(block.numbers[i] == block.first + i, "a block has what another has");
        }
        if (next() % 3 == 0) {
            block.numbers.release();
            continue;
        }
        size_t size = block.numbers.size() + (next() % 3 + 1) * 20'000;
        if (next() % 4 == 0 && !block.numbers.size()) {
            block.numbers.zeroed(size);
            for (size_t i = 0; i < size; ++i) require(!block.numbers[i], "zeroes are what another block had");
        }
        block.numbers.resize(size);
        block.first = (seed << 48) + (turn << 32);
        for (size_t i = 0; i < size; ++i) block.numbers[i] = block.first + i;
    }
}

size_t resident_bytes() {
    size_t all = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file && std::fscanf(file, "%zu %zu", &all, &resident) != 2) resident = 0;
    if (file) std::fclose(file);
    return resident << 12;
}

// On two threads at once, again and again: all memory comes back.
void check_threads() {
    size_t before = 0;
    for (uint64_t turn = 0; turn < 6; ++turn) {
        std::thread other(check_blocks, 2 * turn + 1);
        check_blocks(2 * turn + 2);
        other.join();
        if (turn == 1) before = resident_bytes();
    }
    require(resident_bytes() < before + (size_t{32} << 20), "memory did not come back");
}

// A process that is forked while another thread is busy has blocks of its own.
void check_fork() {
    std::thread other(check_blocks, 99);
    for (int turn = 0; turn < 5; ++turn) {
        pid_t child = fork();
        if (!child) {
            check_pool(3);
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        require(!status, "a forked process failed");
    }
    other.join();
}

}  // namespace

int main() {
    unsigned moves = 0;
    for (unsigned turn = 0; turn < 4; ++turn) {
        ivme::Array<uint64_t> numbers;
        const uint64_t* place = nullptr;
        for (uint64_t n = 0; n < 3'000'000; ++n) {
            ivme::adds_few_rows = turn == 0 || (turn > 1 && (n >> 16) % turn);
            numbers.push(n * 7919);
            if (numbers.data() == place) continue;
            place = numbers.data();
            ++moves;
            for (uint64_t i = 0; i < n; i += 97) require(numbers[i] == i * 7919, "a number was lost");
#ifdef IVME_PAGES
            // A batch joins what the block had and what is new; a single row leaves that to the next move.
            require(mappings_within(place, numbers.bytes()) <= ivme::adds_few_rows, "a block is of several mappings");
#endif
        }
        for (uint64_t i = 0; i < numbers.size(); ++i) require(numbers[i] == i * 7919, "a number was lost at the end");
        ivme::Array<uint64_t> zeroes;
        zeroes.zeroed(1 << 20);
        for (size_t i = 0; i < zeroes.size(); ++i) zeroes[i] = 0;
        zeroes.drop_zeroes(1 << 18);
        for (size_t i = 0; i < zeroes.size(); ++i) require(!zeroes[i], "zeroes that were given back are others");
    }
    ivme::adds_few_rows = false;
    for (size_t turn = 0; turn < 40; ++turn) check_pool(turn);
    check_threads();
    ivme::adds_few_rows = false;
    check_fork();
    require(ivme::bytes_copied > 0, "nothing was copied");
    std::printf("%u moves\n", moves);
}
