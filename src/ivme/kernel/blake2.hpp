// BLAKE2b (RFC 7693) with a digest of 16 bytes: the checksum of the log's records, as Python's hashlib computes it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ivme {

static_assert(std::endian::native == std::endian::little, "words of records are little-endian");

class Blake2 {
public:
    static constexpr size_t DIGEST_BYTES = 16;

    Blake2() : state_(START) { state_[0] ^= 0x01010000 ^ DIGEST_BYTES; }

    void update(const char* data, size_t size) {
        while (size) {
            if (filled_ == BLOCK_BYTES) compress(false);
            size_t part = size < BLOCK_BYTES - filled_ ? size : BLOCK_BYTES - filled_;
            std::memcpy(block_ + filled_, data, part);
            filled_ += part;
            data += part;
            size -= part;
        }
    }

    // Writes the digest; nothing may follow.
    void finish(char* digest) {
        std::memset(block_ + filled_, 0, BLOCK_BYTES - filled_);
        compress(true);
        std::memcpy(digest, state_.data(), DIGEST_BYTES);
    }

private:
    static constexpr size_t BLOCK_BYTES = 128;
    static constexpr std::array<uint64_t, 8> START = {
        0x6A09E667F3BCC908ull, 0xBB67AE8584CAA73Bull, 0x3C6EF372FE94F82Bull, 0xA54FF53A5F1D36F1ull,
        0x510E527FADE682D1ull, 0x9B05688C2B3E6C1Full, 0x1F83D9ABFB41BD6Bull, 0x5BE0CD19137E2179ull};
    static constexpr uint8_t ORDERS[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

    static void mix(uint64_t& a, uint64_t& b, uint64_t& c, uint64_t& d, uint64_t x, uint64_t y) {
        a += b + x;
        d = std::rotr(d ^ a, 32);
        c += d;
        b = std::rotr(b ^ c, 24);
        a += b + y;
        d = std::rotr(d ^ a, 16);
        c += d;
        b = std::rotr(b ^ c, 63);
    }

    void compress(bool is_last) {
        uint64_t words[16], v[16];
        std::memcpy(words, block_, BLOCK_BYTES);
        counted_ += filled_;
        filled_ = 0;
        for (size_t i = 0; i < 8; ++i) {
            v[i] = state_[i];
            v[i + 8] = START[i];
        }
        v[12] ^= counted_;
        if (is_last) v[14] = ~v[14];
        for (size_t round = 0; round < 12; ++round) {
            const uint8_t* at = ORDERS[round % 10];
            for (size_t i = 0; i < 4; ++i) {
                mix(v[i], v[i + 4], v[i + 8], v[i + 12], words[at[2 * i]], words[at[2 * i + 1]]);
            }
            for (size_t i = 0; i < 4; ++i) {
                mix(v[i], v[(i + 1) % 4 + 4], v[(i + 2) % 4 + 8], v[(i + 3) % 4 + 12], words[at[2 * i + 8]],
                    words[at[2 * i + 9]]);
            }
        }
        for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
    }

    std::array<uint64_t, 8> state_;
    uint64_t counted_ = 0;
    size_t filled_ = 0;
    char block_[BLOCK_BYTES];
};

}  // namespace ivme
