// Compares the integers of two words with the compiler's own, over random operands and those at the borders.
// Prints the first difference, and returns 1.
#include "../../../src/ivme/kernel/int128.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using Own = __int128;
using UnsignedOwn = unsigned __int128;
using ivme::UnsignedWide;
using ivme::Wide;

Wide two(Own a) { return Wide::of(static_cast<uint64_t>(a), static_cast<uint64_t>(static_cast<UnsignedOwn>(a) >> 64)); }
UnsignedWide two(UnsignedOwn a) { return UnsignedWide::of(static_cast<uint64_t>(a), static_cast<uint64_t>(a >> 64)); }
Wide two_of(Own a, Wide) { return two(a); }
int64_t two_of(int64_t a, int64_t) { return a; }
template <class Pair>
Own own(Pair a) {
    return static_cast<Own>(static_cast<UnsignedOwn>(a.high()) << 64 | a.low());
}

void check(bool same, const char* what, Own a, Own b) {
    if (same) return;
    std::printf("%s of %llx %llx and %llx %llx\n", what, static_cast<unsigned long long>(a >> 64),
                static_cast<unsigned long long>(a), static_cast<unsigned long long>(b >> 64),
                static_cast<unsigned long long>(b));
    std::exit(1);
}

template <class Native>
void compare(Native a, Native b) {
    auto x = two(a), y = two(b);
    Own left = static_cast<Own>(a), right = static_cast<Own>(b);
    auto sum = static_cast<UnsignedOwn>(a) + static_cast<UnsignedOwn>(b);
    auto difference = static_cast<UnsignedOwn>(a) - static_cast<UnsignedOwn>(b);
    auto product = static_cast<UnsignedOwn>(a) * static_cast<UnsignedOwn>(b);
    check(own(x + y) == static_cast<Own>(sum), "the sum", left, right);
    check(own(x - y) == static_cast<Own>(difference), "the difference", left, right);
    check(own(x * y) == static_cast<Own>(product), "the product", left, right);
    check(own(-x) == static_cast<Own>(-static_cast<UnsignedOwn>(a)), "the negative", left, right);
    check(own(x | y) == static_cast<Own>(a | b) && own(x & y) == static_cast<Own>(a & b), "the bits", left, right);
    check(own(x ^ y) == static_cast<Own>(a ^ b), "the different bits", left, right);
    check((x < y) == (a < b) && (x == y) == (a == b) && (x >= y) == (a >= b), "the order", left, right);
    check(static_cast<double>(x) == static_cast<double>(a), "the double", left, right);
    check(static_cast<int64_t>(x) == static_cast<int64_t>(a), "the low word", left, right);
    bool overflows = b == static_cast<Native>(-1) && static_cast<UnsignedOwn>(a) == static_cast<UnsignedOwn>(1) << 127;
    if (b && !overflows) {
        check(own(x / y) == static_cast<Own>(a / b), "the quotient", left, right);
        check(own(x % y) == static_cast<Own>(a % b), "the rest", left, right);
    }
    for (unsigned by = 0; by < 128; ++by) {
        check(own(x << by) == static_cast<Own>(static_cast<UnsignedOwn>(a) << by), "a shift up", left, by);
        check(own(x >> by) == static_cast<Own>(a >> by), "a shift down", left, by);
    }
}

template <class Native, class Pair>
void compare_overflows(Native a, Native b, Pair x, Pair y) {
    Native expected;
    Pair found;
    auto same = [&](bool overflows, bool also) { return overflows == also && Pair(found) == two_of(expected, found); };
    check(same(__builtin_add_overflow(a, b, &expected), ivme::add_overflows(x, y, &found)), "a + b", a, b);
    check(same(__builtin_sub_overflow(a, b, &expected), ivme::subtract_overflows(x, y, &found)), "a - b", a, b);
    check(same(__builtin_mul_overflow(a, b, &expected), ivme::multiply_overflows(x, y, &found)), "a * b", a, b);
}

}  // namespace

int main() {
    std::mt19937_64 random(1);
    std::vector<Own> numbers;
    for (unsigned bit : {0u, 1u, 31u, 32u, 52u, 53u, 54u, 62u, 63u, 64u, 65u, 100u, 126u, 127u}) {
        UnsignedOwn power = static_cast<UnsignedOwn>(1) << bit;
        for (UnsignedOwn near : {power - 1, power, power + 1, -power, -power - 1})
            numbers.push_back(static_cast<Own>(near));
    }
    for (int i = 0; i < 150; ++i) {
        UnsignedOwn drawn = static_cast<UnsignedOwn>(random()) << 64 | random();
        numbers.push_back(static_cast<Own>(drawn) >> random() % 128);
    }
    for (Own a : numbers) {
        for (Own b : numbers) {
            compare(a, b);
            compare(static_cast<UnsignedOwn>(a), static_cast<UnsignedOwn>(b));
            compare_overflows(a, b, two(a), two(b));
            auto c = static_cast<int64_t>(a), d = static_cast<int64_t>(b);
            compare_overflows(c, d, c, d);
        }
    }
    static_assert(Wide(-3) / 2 == -1 && Wide(-3) % 2 == -1 && Wide{1} << 100 > 0);
    std::printf("%zu numbers\n", numbers.size());
}
