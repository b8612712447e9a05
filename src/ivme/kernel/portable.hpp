// What differs between compilers and operating systems: GCC, Clang and MSVC on Linux, macOS and Windows.
#pragma once

#ifdef _WIN32
#include <io.h>
#include <process.h>
#include <cstdio>
#else
#include <unistd.h>
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Functions that are compiled several times, for older and newer processors; the one that fits is chosen when the
// module is loaded. Elsewhere there is one of each.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(IVME_SANITIZE)
#define IVME_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define IVME_CLONES
#endif

namespace ivme {

// Asks for the cache line of an address, which need not be valid. Without such an instruction it does nothing.
inline void prefetch_line(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#elif defined(_M_X64)
    _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0);
#elif defined(_M_ARM64)
    __prefetch(address);
#else
    static_cast<void>(address);
#endif
}

inline int process_number() {
#ifdef _WIN32
    return _getpid();
#else
    return getpid();
#endif
}

// Writes at a place of a file; how many bytes were written, or -1 with the reason in errno. On Windows the descriptor's
// own position moves; nothing else uses it.
inline int64_t write_at(int descriptor, const char* data, size_t size, uint64_t place) {
#ifdef _WIN32
    if (_lseeki64(descriptor, static_cast<int64_t>(place), SEEK_SET) < 0) return -1;
    return _write(descriptor, data, static_cast<unsigned>(std::min<size_t>(size, size_t{1} << 30)));
#else
    return pwrite(descriptor, data, size, static_cast<off_t>(place));
#endif
}

}  // namespace ivme
