// The ring's operations on many payloads that lie behind each other: the counts, then one slot after the other, so that
// the kind of a slot is asked once for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "payload.hpp"

namespace ivme {

// totals[i] := factors[i] · rights[i]. False if a count does not fit.
[[nodiscard]] inline bool scale_each(const Layout& layout, int64_t* totals, const int64_t* factors,
                                     const int64_t* const* rights, size_t n) {
    unsigned words = layout.words;
    bool overflow = false;
    for (size_t i = 0; i < n; ++i) overflow |= multiply_overflows(factors[i], rights[i][0], &totals[i * words]);
    layout.each_slot([&](unsigned at, auto kind) {
        for (size_t i = 0; i < n; ++i) layout.scale_slot(kind, totals + i * words + at, factors[i], rights[i] + at);
    });
    return !overflow;
}

// lefts[i] := lefts[i] · rights[i], both with sums. False if a count does not fit.
[[nodiscard]] inline bool multiply_each(const Layout& layout, int64_t* lefts, const int64_t* const* rights, size_t n) {
    unsigned words = layout.words;
    layout.each_slot([&](unsigned at, auto kind) {
        for (size_t i = 0; i < n; ++i) {
            int64_t* left = lefts + i * words;
            layout.multiply_slot(kind, left + at, left[0], rights[i][0], rights[i] + at);
        }
    });
    bool overflow = false;
    for (size_t i = 0; i < n; ++i) overflow |= multiply_overflows(lefts[i * words], rights[i][0], &lefts[i * words]);
    return !overflow;
}

// Adds payloads to those of `totals` that `place(i)` names, which may be the same for several. Calls `carry(i, by)` for
// a count that is off by so many times 2^64.
template <class Place, class Carry>
void add_each(const Layout& layout, int64_t* totals, Place place, const int64_t* payloads, size_t n, Carry carry) {
    unsigned words = layout.words;
    for (size_t i = 0; i < n; ++i) {
        int64_t& total = totals[place(i) * words];
        int by = total < 0 ? -1 : 1;
        if (add_overflows(total, payloads[i * words], &total)) carry(i, by);
    }
    layout.each_slot([&](unsigned at, auto kind) {
        for (size_t i = 0; i < n; ++i) {
            int64_t* total = totals + place(i) * words + at;
            layout.add_slot(kind, total, total, payloads + i * words + at);
        }
    });
}

// The same for products, which are never written: totals[place(i)] += factors[i] · rights[i], for slots that are known
// when it is compiled. False if the count of a product does not fit.
template <Slot... slots, class Place, class Carry>
[[nodiscard]] bool add_products_of(const Layout& layout, int64_t* totals, Place place, const int64_t* factors,
                                   const int64_t* const* rights, size_t n, Carry carry) {
    bool overflow = false;
    for (size_t i = 0; i < n; ++i) {
        int64_t factor = factors[i], product;
        const int64_t* right = rights[i];
        int64_t* total = totals + place(i) * layout.words;
        overflow |= multiply_overflows(factor, *right, &product);
        int by = *total < 0 ? -1 : 1;
        if (add_overflows(*total, product, total)) carry(i, by);
        unsigned at = 1;
        [[maybe_unused]] auto add = [&]<Slot slot>(Kind<slot> kind) {
            int64_t scaled[width(slot)];
            layout.scale_slot(kind, scaled, factor, right + at);
            layout.add_slot(kind, total + at, total + at, scaled);
            at += width(slot);
        };
        (add(Kind<slots>()), ...);
    }
    return !overflow;
}

// The same for any slots; the commonest in one loop.
template <class Place, class Carry>
[[nodiscard]] bool add_products(const Layout& layout, int64_t* totals, Place place, const int64_t* factors,
                                const int64_t* const* rights, size_t n, Carry carry) {
    using enum Slot;
    if (layout.has({I128})) {
        return add_products_of<I128>(layout, totals, place, factors, rights, n, carry);
    }
    if (layout.has({I64, I128})) {
        return add_products_of<I64, I128>(layout, totals, place, factors, rights, n, carry);
    }
    bool fits = add_products_of<>(layout, totals, place, factors, rights, n, carry);
    layout.each_slot([&](unsigned at, auto kind) {
        for (size_t i = 0; i < n; ++i) {
            int64_t *total = totals + place(i) * layout.words + at, scaled[width(kind)];
            layout.scale_slot(kind, scaled, factors[i], rights[i] + at);
            layout.add_slot(kind, total, total, scaled);
        }
    });
    return fits;
}

}  // namespace ivme
