#include "exact_float.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "array.hpp"
#include "hash.hpp"

namespace ivme {

namespace {

constexpr int UNIT = -1074;
constexpr unsigned MANTISSA_BITS = 53;

// The place of the highest bit of a number that is not negative; -1 of zero.
int top_bit(const int64_t* words) {
    for (int i = LONG_WORDS - 1; i >= 0; --i) {
        if (words[i]) return 64 * i + 63 - std::countl_zero(static_cast<uint64_t>(words[i]));
    }
    return -1;
}

unsigned lowest_bit(const int64_t* words) {
    unsigned i = 0;
    while (!words[i]) ++i;
    return 64 * i + static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(words[i])));
}

// 64 bits from a place on; beyond the end there is the sign.
uint64_t bits_from(const int64_t* words, unsigned place) {
    unsigned i = place / 64, shift = place % 64;
    auto word = [&](unsigned at) {
        return static_cast<uint64_t>(at < LONG_WORDS ? words[at] : words[LONG_WORDS - 1] >> 63);
    };
    return shift ? word(i) >> shift | word(i + 1) << (64 - shift) : word(i);
}

}  // namespace

FloatPool::~FloatPool() { clear(); }

void FloatPool::clear() noexcept {
    for (LongFloat* each : all_) std::free(each);
    all_.clear();
    bytes_ = 0;
}

LongFloat* FloatPool::make(unsigned words) {
    spend_allocation();
    if (all_.size() == all_.capacity()) all_.reserve(2 * all_.size() + 16);
    void* memory = std::malloc(bytes_of(words));
    if (!memory) throw std::bad_alloc();
    auto* made = new (memory) LongFloat;
    made->count = words;
    all_.push_back(made);
    bytes_ += bytes_of(words);
    return made;
}

void FloatPool::sweep(size_t entries) noexcept {
    size_t kept = 0;
    for (LongFloat* each : all_) {
        if (each->marked) {
            each->marked = false;
            all_[kept++] = each;
        } else {
            bytes_ -= bytes_of(each->count);
            std::free(each);
        }
    }
    all_.resize(kept);
    // Marking visits every entry, so that so many sums have to come in between for it to cost little for each.
    most_ = 2 * kept + entries / 4 + 1024;
}

void FullFloat::add(const int64_t* sum, int64_t factor) {
    int64_t expanded[LONG_WORDS];
    if (sum[0] == IS_LONG) {
        const LongFloat& from = *long_float(sum);
        std::fill_n(expanded, from.first, 0);
        std::copy_n(from.words(), from.count, expanded + from.first);
        int64_t sign = from.count ? from.words()[from.count - 1] >> 63 : 0;
        std::fill(expanded + from.first + from.count, expanded + LONG_WORDS, sign);
        positive = wrapped_sum(positive, wrapped_product(factor, from.positive));
        negative = wrapped_sum(negative, wrapped_product(factor, from.negative));
        undefined = wrapped_sum(undefined, wrapped_product(factor, from.undefined));
    } else {
        int64_t first = sum[0] / 64;
        unsigned shift = static_cast<unsigned>(sum[0] % 64);
        int64_t sign = sum[2] >> 63;
        uint64_t low = static_cast<uint64_t>(sum[1]), high = static_cast<uint64_t>(sum[2]);
        std::fill_n(expanded, first, 0);
        std::fill(expanded + first, expanded + LONG_WORDS, sign);
        expanded[first] = static_cast<int64_t>(low << shift);
        int64_t rest[2] = {static_cast<int64_t>(shift ? high << shift | low >> (64 - shift) : high),
                           shift ? sum[2] >> (64 - shift) : sign};
        for (unsigned i = 0; i < 2 && first + 1 + i < LONG_WORDS; ++i) expanded[first + 1 + i] = rest[i];
    }
    if (factor != 1) scale_words<LONG_WORDS>(expanded, factor, expanded);
    add_words<LONG_WORDS>(words, words, expanded);
}

void FullFloat::store(int64_t* sum, FloatPool& pool) const {
    bool finite = !positive && !negative && !undefined;
    bool is_zero = std::all_of(words, words + LONG_WORDS, [](int64_t word) { return word == 0; });
    if (finite && is_zero) {
        sum[0] = sum[1] = sum[2] = 0;
        return;
    }
    unsigned lowest = is_zero ? 0 : lowest_bit(words);
    if (finite && lowest <= LAST_POSITION) {
        Wide mantissa = static_cast<Wide>(static_cast<UnsignedWide>(bits_from(words, lowest + 64)) << 64 |
                                          bits_from(words, lowest));
        uint64_t sign = static_cast<uint64_t>(mantissa < 0 ? -1 : 0);
        bool whole = true;
        for (unsigned place = lowest + 128; whole && place < 64 * LONG_WORDS; place += 64) {
            whole = bits_from(words, place) == sign;
        }
        if (whole && (words[LONG_WORDS - 1] < 0) == (mantissa < 0)) {
            sum[0] = lowest;
            store_wide(sum + 1, mantissa);
            return;
        }
    }
    unsigned first = lowest / 64, end = LONG_WORDS;
    while (end > first + 1 && words[end - 1] == words[end - 2] >> 63) --end;
    if (is_zero) first = end = 0;
    LongFloat* made = pool.make(end - first);
    made->positive = positive;
    made->negative = negative;
    made->undefined = undefined;
    made->first = first;
    std::copy(words + first, words + end, made->words());
    sum[0] = IS_LONG;
    sum[1] = static_cast<int64_t>(reinterpret_cast<intptr_t>(made));
    sum[2] = 0;
}

// Half to even, once: what is below 2^53 units, as all subnormal numbers are, needs no rounding.
double FullFloat::rounded() const {
    bool up = positive > 0 || negative < 0, down = positive < 0 || negative > 0;
    if (undefined || (up && down)) return std::numeric_limits<double>::quiet_NaN();
    if (up || down) return up ? HUGE_VAL : -HUGE_VAL;
    int64_t size[LONG_WORDS];
    bool is_negative = words[LONG_WORDS - 1] < 0;
    scale_words<LONG_WORDS>(size, is_negative ? -1 : 1, words);
    int top = top_bit(size);
    if (top < 0) return 0;
    unsigned shift = top < static_cast<int>(MANTISSA_BITS) ? 0 : static_cast<unsigned>(top) + 1 - MANTISSA_BITS;
    uint64_t mantissa = bits_from(size, shift);
    if (shift) {
        bool half = bits_from(size, shift - 1) & 1;
        mantissa += half && (lowest_bit(size) < shift - 1 || (mantissa & 1));
    }
    double value = std::ldexp(static_cast<double>(mantissa), static_cast<int>(shift) + UNIT);
    return is_negative ? -value : value;
}

void add_long(int64_t* total, const int64_t* left, int64_t factor, const int64_t* right, FloatPool& pool) {
    FullFloat full;
    if (left) full.add(left, 1);
    full.add(right, factor);
    full.store(total, pool);
}

void lift_float(int64_t* sum, double value, int64_t weight, FloatPool& pool) {
    if (!std::isfinite(value)) {
        FullFloat full;
        (std::isnan(value) ? full.undefined : value > 0 ? full.positive : full.negative) = weight;
        full.store(sum, pool);
        return;
    }
    uint64_t bits = std::bit_cast<uint64_t>(value);
    int64_t exponent = static_cast<int64_t>(bits >> 52 & 2047);
    int64_t mantissa = static_cast<int64_t>(bits & ((uint64_t{1} << 52) - 1));
    if (exponent) mantissa |= int64_t{1} << 52;
    if (value < 0) mantissa = -mantissa;
    int64_t position = exponent ? exponent - 1 : 0;
    if (store_short(sum, static_cast<Wide>(mantissa) * weight, position)) return;
    FullFloat full;
    int64_t single[FLOAT_WORDS] = {position, 0, 0};
    store_wide(single + 1, mantissa);
    full.add(single, weight);
    full.store(sum, pool);
}

double rounded_float(const int64_t* sum) {
    if (sum[0] != IS_LONG) {
        Wide mantissa = load_wide(sum + 1);
        UnsignedWide size = static_cast<UnsignedWide>(mantissa < 0 ? -mantissa : mantissa);
        if (size >> MANTISSA_BITS == 0) {
            double value =
                std::ldexp(static_cast<double>(static_cast<uint64_t>(size)), static_cast<int>(sum[0]) + UNIT);
            return mantissa < 0 ? -value : value;
        }
    }
    FullFloat full;
    full.add(sum, 1);
    return full.rounded();
}

uint64_t hash_float(const int64_t* sum) {
    const LongFloat& from = *long_float(sum);
    std::vector<int64_t> words;
    dump_long(from, words);
    return Seed(from.count).hash(words.data(), static_cast<unsigned>(words.size()));
}

void dump_long(const LongFloat& from, std::vector<int64_t>& words) {
    words.insert(words.end(), {from.positive, from.negative, from.undefined, from.first, from.count});
    words.insert(words.end(), from.words(), from.words() + from.count);
}

size_t load_long(int64_t* sum, const int64_t* words, size_t n, FloatPool& pool) {
    constexpr size_t HEAD = 5;
    if (n < HEAD || words[3] < 0 || words[4] < 0 || words[3] > LONG_WORDS || words[4] > LONG_WORDS - words[3]) return 0;
    size_t count = static_cast<size_t>(words[4]);
    if (n < HEAD + count) return 0;
    LongFloat* made = pool.make(static_cast<unsigned>(count));
    made->positive = words[0];
    made->negative = words[1];
    made->undefined = words[2];
    made->first = static_cast<uint32_t>(words[3]);
    std::copy_n(words + HEAD, count, made->words());
    sum[0] = IS_LONG;
    sum[1] = static_cast<int64_t>(reinterpret_cast<intptr_t>(made));
    sum[2] = 0;
    return HEAD + count;
}

}  // namespace ivme
