#include "column_loops.hpp"

#include <limits>

// Functions that are compiled several times, for older and newer processors; the one that fits is chosen when the
// module is loaded. Elsewhere there is one of each.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(IVME_SANITIZE)
#define IVME_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define IVME_CLONES
#endif

namespace ivme {

namespace {

// Least and most start at the other end, so that no code but NULL keeps them there.
template <bool HAS_NULL>
inline CodeRange range_of_all(const int64_t* codes, size_t n) {
    int64_t least = std::numeric_limits<int64_t>::max(), most = NULL_CODE;
    for (size_t i = 0; i < n; ++i) {
        int64_t low = HAS_NULL && codes[i] == NULL_CODE ? std::numeric_limits<int64_t>::max() : codes[i];
        least = low < least ? low : least;
        most = codes[i] > most ? codes[i] : most;
    }
    return {least, most};
}

template <class Cell>
inline void narrow_all(const int64_t* codes, size_t n, int64_t base, Cell* to) {
    for (size_t i = 0; i < n; ++i) {
        auto distance = static_cast<Cell>(static_cast<uint64_t>(codes[i]) - static_cast<uint64_t>(base));
        to[i] = codes[i] == NULL_CODE ? static_cast<Cell>(~Cell{0}) : distance;
    }
}

}  // namespace

// NULL is the least of all codes: where it is not among them, nothing has to be looked at twice.
IVME_CLONES CodeRange range_of(const int64_t* codes, size_t n) {
    CodeRange found = range_of_all<false>(codes, n);
    return n && found.least == NULL_CODE ? range_of_all<true>(codes, n) : found;
}

IVME_CLONES bool are_within(const int64_t* codes, size_t n, int64_t least, int64_t most) {
    bool outside = false;
    for (size_t i = 0; i < n; ++i) outside |= (codes[i] < least) | (codes[i] > most);
    return !outside;
}

IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint8_t* to) { narrow_all(codes, n, base, to); }
IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint16_t* to) { narrow_all(codes, n, base, to); }
IVME_CLONES void narrow(const int64_t* codes, size_t n, int64_t base, uint32_t* to) { narrow_all(codes, n, base, to); }

}  // namespace ivme
