// Columns of Arrow data to codes, as engine/codes/domains.py has them, straight from Arrow's C data interface.
//
// What would be refused, or is not as it should be, is not explained here: the caller takes the batch path, which knows
// what to say. The interface does not tell the sizes of buffers; the caller has had Arrow validate them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "column_loops.hpp"
#include "dictionary.hpp"
#include "parallel_entry.hpp"
#include "utf8.hpp"

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

}  // extern "C"

namespace ivme {

// A column of a table: its name, its Arrow format, and where its codes come from.
struct ArrowColumn {
    std::string name, format;
    int64_t least, most;  // the numbers that an integer, a decimal, a date or a timestamp may have
    Dictionary* dictionary;
};

class ArrowBits {
public:
    ArrowBits(const void* bits, int64_t offset) : bits_(static_cast<const uint8_t*>(bits)), offset_(offset) {}
    explicit operator bool() const { return bits_; }
    bool operator[](size_t i) const {
        size_t at = offset_ + i;
        return bits_[at / 8] >> (at % 8) & 1;
    }

private:
    const uint8_t* bits_;
    size_t offset_;
};

// Numbers in a buffer of Arrow, which may lie anywhere: one that came over a socket need not be aligned.
template <class Number>
class ArrowNumbers {
public:
    ArrowNumbers(const void* numbers, int64_t offset)
        : bytes_(static_cast<const uint8_t*>(numbers) + static_cast<size_t>(offset) * sizeof(Number)) {}
    Number operator[](size_t i) const {
        Number number;
        std::memcpy(&number, bytes_ + i * sizeof(Number), sizeof(Number));
        return number;
    }
    const void* from(size_t i) const { return bytes_ + i * sizeof(Number); }

private:
    const uint8_t* bytes_;
};

// Numbers as they are, within bounds; false if one is not.
template <class Number>
bool encode_numbers(const ArrowColumn& column, const ArrowArray& array, const ArrowBits& valid, int64_t* codes) {
    ArrowNumbers<Number> numbers(array.buffers[1], array.offset);
    auto n = static_cast<size_t>(array.length);
    bool outside = false;
    if constexpr (sizeof(Number) == sizeof(int32_t)) {
        if (!valid) return widen(numbers.from(0), n, column.least, column.most, codes);
    }
    for (size_t i = 0; i < n; ++i) {
        bool is_there = !valid || valid[i];
        codes[i] = is_there ? numbers[i] : NULL_CODE;
        outside |= is_there && (codes[i] < column.least || codes[i] > column.most);
    }
    return !outside;
}

// The numbers of a column of 64-bit integers without NULLs, which are their own codes if they are within its bounds;
// null if they do not lie as they should.
inline const int64_t* own_codes(const ArrowColumn& column, const ArrowArray& array) {
    if ((column.format != "l" && column.format != "tsu:") || (array.null_count && array.buffers[0])) return nullptr;
    const int64_t* numbers = static_cast<const int64_t*>(array.buffers[1]) + array.offset;
    return reinterpret_cast<uintptr_t>(numbers) % alignof(int64_t) ? nullptr : numbers;
}

// The order-preserving code of floats; neither NaN nor a negative zero has one.
inline bool encode_floats(const ArrowArray& array, const ArrowBits& valid, int64_t* codes) {
    ArrowNumbers<double> numbers(array.buffers[1], array.offset);
    constexpr int64_t negative_zero = std::bit_cast<int64_t>(-0.0);
    for (size_t i = 0; i < static_cast<size_t>(array.length); ++i) {
        auto bits = std::bit_cast<int64_t>(numbers[i]);
        codes[i] = bits < 0 ? bits ^ 0x7FFFFFFFFFFFFFFFll : bits;
        if (valid && !valid[i]) {
            codes[i] = NULL_CODE;
        } else if (std::isnan(numbers[i]) || bits == negative_zero) {
            return false;
        }
    }
    return true;
}

inline void encode_bools(const ArrowArray& array, const ArrowBits& valid, int64_t* codes) {
    ArrowBits values(array.buffers[1], array.offset);
    for (size_t i = 0; i < static_cast<size_t>(array.length); ++i)
        codes[i] = valid && !valid[i] ? NULL_CODE : values[i];
}

// Decimals of up to 18 digits: the low word is the number without its point. False if one has more digits, which Arrow
// does not look at in data that come from elsewhere, nor in texts that it reads.
inline bool encode_decimals(const ArrowColumn& column, const ArrowArray& array, const ArrowBits& valid,
                            int64_t* codes) {
    auto n = static_cast<size_t>(array.length);
    ArrowNumbers<int64_t> words(array.buffers[1], 2 * array.offset);
    bool fit = take_low_words(words.from(0), n, column.most, codes);
    if (!valid) return fit;
    bool outside = false;
    for (size_t i = 0; i < n; ++i) {
        if (!fit && valid[i]) {
            outside |= codes[i] < column.least || codes[i] > column.most || words[2 * i + 1] != codes[i] >> 63;
        }
        codes[i] = valid[i] ? codes[i] : NULL_CODE;
    }
    return !outside;
}

// What the strings weigh that columns brought along, which had no code before.
struct BroughtStrings {
    Dictionary* dictionary;
    uint64_t weight;
};
using Brought = std::vector<BroughtStrings>;

// The strings of a column.
class ArrowStrings {
public:
    ArrowStrings(const ArrowColumn& column, const ArrowArray& array)
        : column_(column),
          valid_(array.null_count ? array.buffers[0] : nullptr, array.offset),
          at_(array.buffers[1], array.offset),
          text_(static_cast<const char*>(array.buffers[2])),
          n_(static_cast<size_t>(array.length)) {}

    // Whether offsets go forward and, unless they are bytes, strings are UTF-8.
    bool are_strings(size_t first, size_t end) const {
        if (at_[first] < 0 || at_[end] > at_[n_] || !go_forward(at_.from(first), end - first)) return false;
        size_t bytes = static_cast<size_t>(at_[end] - at_[first]);
        bool checked = column_.format == "z" || are_ascii(text_ + at_[first], bytes);
        for (size_t i = first; i < end && !checked; ++i) {
            if (is_there(i) && !is_utf8({text_ + at_[i], static_cast<size_t>(at_[i + 1] - at_[i])})) return false;
        }
        return true;
    }
    // The caller has let the GIL go: the thread that holds the dictionary may need it.
    bool encode(int64_t* codes, Brought& brought) const {
        if (!n_) return true;
        if (!are_strings(0, n_)) return false;
        bring(brought, [&](Dictionary& dictionary) {
            dictionary.encode_all(text_, at_, n_, [&](size_t i) { return is_there(i); }, codes);
        });
        return true;
    }
    // How many strings of a column are known. Some of them are encoded to find out; all are if one of these is in
    // doubt.
    Dictionary::Sample sample(int64_t* codes, Brought& brought) const {
        Dictionary::Sample sample;
        for (size_t i = 0; i < n_; i += Dictionary::SAMPLED) {
            if (!are_strings(i, i + 1)) return {1, 1};
        }
        bring(brought, [&](Dictionary& dictionary) {
            sample = dictionary.sample(text_, at_, n_, [&](size_t i) { return is_there(i); }, codes);
        });
        return sample;
    }
    // The others, by callers who have the dictionary for themselves and made room for them; false if one is in doubt.
    bool encode_loosely(int64_t* codes, bool were_sampled) const {
        if (!are_strings(0, n_)) return false;
        auto valid = [&](size_t i) { return is_there(i); };
        column_.dictionary->encode_loosely(text_, at_, n_, valid, codes, were_sampled);
        return true;
    }
    // The same in two halves, by callers who have the dictionary for themselves: see `Dictionary::find_all`. Strings
    // without a code are added to `absent`.
    bool find(size_t first, size_t end, int64_t* codes, std::vector<NewString>& absent) const {
        if (!are_strings(first, end)) return false;
        const Dictionary& dictionary = *column_.dictionary;
        std::vector<uint32_t> tags(end - first);
        dictionary.find_all(text_, at_, first, end, [&](size_t i) { return is_there(i); }, codes, tags.data());
        for (size_t i = first; i < end; ++i) {
            if (!dictionary.is_absent(codes[i])) continue;
            auto length = static_cast<uint32_t>(at_[i + 1] - at_[i]);
            absent.push_back({text_ + at_[i], length, tags[i - first], static_cast<uint32_t>(i)});
        }
        return true;
    }

    // The bytes that they take in a dictionary at most, if they are encoded loosely; 0 if they are no strings.
    size_t loose_bytes() const {
        return at_[n_] > at_[0] ? Dictionary::most_loose_bytes(static_cast<size_t>(at_[n_] - at_[0])) : 0;
    }

private:
    bool is_there(size_t i) const { return !valid_ || valid_[i]; }

    template <class Encode>
    void bring(Brought& brought, Encode encode) const {
        Dictionary& dictionary = *column_.dictionary;
        std::unique_lock lock(dictionary.mutex);
        uint64_t before = dictionary.ever_added();
        encode(dictionary);
        brought.push_back({&dictionary, dictionary.ever_added() - before});
    }

    const ArrowColumn& column_;
    ArrowBits valid_;
    ArrowNumbers<int32_t> at_;
    const char* text_;
    size_t n_;
};

// Memory for codes that the last batches have no more use for: fresh pages would be cleared first, which takes longer
// than encoding. A few blocks, as a batch may be of several tables, of a limited size. Nobody waits for them: another
// thread may have been here when this process was forked.
class SpareCodes {
public:
    static SpareCodes& shared() {
        static SpareCodes spare;
        return spare;
    }

    // The smallest block that is large enough, or the largest.
    Array<int64_t> take(size_t size) {
        Array<int64_t> taken;
        if (std::unique_lock lock(mutex_, std::try_to_lock); lock) {
            auto found =
                std::find_if(blocks_.begin(), blocks_.end() - 1, [&](auto& b) { return b.capacity() >= size; });
            taken.swap(*found);
            std::rotate(blocks_.begin(), found, found + 1);
        }
        taken.resize(size);
        return taken;
    }

    void give(Array<int64_t>&& block) {
        if (block.bytes() > MOST_BYTES) return;
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock) return;
        if (block.bytes() > blocks_.front().bytes()) blocks_.front().swap(block);
        std::sort(blocks_.begin(), blocks_.end(), [](auto& a, auto& b) { return a.bytes() < b.bytes(); });
    }

private:
    static constexpr size_t MOST_BYTES = size_t{1} << 23;
    std::mutex mutex_;
    std::array<Array<int64_t>, 4> blocks_;  // by size, the smallest first
};

// Whether the data have the columns' names and formats, in their order.
inline bool is_of(const std::vector<ArrowColumn>& columns, const ArrowSchema& schema, const ArrowArray& array) {
    auto n = static_cast<int64_t>(columns.size());
    if (std::strcmp(schema.format, "+s") != 0 || schema.n_children != n || array.n_children != n || array.offset)
        return false;
    for (int64_t i = 0; i < n; ++i) {
        const ArrowSchema& given = *schema.children[i];
        const ArrowColumn& wanted = columns[static_cast<size_t>(i)];
        if (!given.name || wanted.name != given.name || wanted.format != given.format || given.dictionary) return false;
        if (array.children[i]->length != array.length) return false;
    }
    return true;
}

// False if a value is in doubt.
inline bool encode_column(const ArrowColumn& column, const ArrowArray& array, int64_t* codes, Brought& brought) {
    ArrowBits valid(array.null_count ? array.buffers[0] : nullptr, array.offset);
    if (!array.length) return true;
    const std::string& format = column.format;
    if (format == "l" || format == "tsu:") return encode_numbers<int64_t>(column, array, valid, codes);
    if (format == "tdD") return encode_numbers<int32_t>(column, array, valid, codes);
    if (format == "g") return encode_floats(array, valid, codes);
    if (format == "b") return encode_bools(array, valid, codes), true;
    if (format == "u" || format == "z") return ArrowStrings(column, array).encode(codes, brought);
    return encode_decimals(column, array, valid, codes);
}

// The same for a column whose codes nobody takes.
inline bool check_column(const ArrowColumn& column, const ArrowArray& array) {
    auto n = static_cast<size_t>(array.length);
    if (const int64_t* numbers = own_codes(column, array)) return are_within(numbers, n, column.least, column.most);
    if (column.dictionary) return !n || ArrowStrings(column, array).are_strings(0, n);
    if (column.format == "b") return true;
    if (!array.null_count || !array.buffers[0]) {
        if (column.format == "tdD") {
            return are_narrow_within(ArrowNumbers<int32_t>(array.buffers[1], array.offset).from(0), n, column.least,
                                     column.most);
        }
        if (column.format.starts_with("d:")) {
            return are_low_words(ArrowNumbers<int64_t>(array.buffers[1], 2 * array.offset).from(0), n, column.most);
        }
    }
    Array<int64_t> codes;
    codes.resize(n);
    Brought none;
    return encode_column(column, array, codes.data(), none);
}

inline bool has_codes(const std::string& format) {
    for (const char* known : {"l", "tsu:", "tdD", "g", "b", "u", "z"}) {
        if (format == known) return true;
    }
    return format.starts_with("d:") && std::count(format.begin(), format.end(), ',') == 1;
}

}  // namespace ivme
