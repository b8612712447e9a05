// quantities(flag, status), and one such map each for price, discount, discounted price, charge and count: LINEITEM of
// early shipdate. A map for each aggregate.
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ1 {
    struct Group {
        std::string_view flag, status;
        bool operator==(const Group&) const = default;
        friend uint64_t hashed(const Group& key) { return hash_of(key.flag, key.status); }
    };

    explicit DerivedQ1(const Source& from)
        : shipdate(from.integers("l_shipdate")),
          quantity(from.doubles("l_quantity")),
          price(from.doubles("l_extendedprice")),
          discount(from.doubles("l_discount")),
          tax(from.doubles("l_tax")),
          flag(from.strings("l_returnflag")),
          status(from.strings("l_linestatus")) {}

    void change(Table, size_t row, double sign) {
        if (shipdate[row] > day(1998, 9, 2)) return;
        Group group{flag[row], status[row]};
        double discounted = price[row] * (1 - discount[row]);
        quantities[group] += sign * quantity[row];
        prices[group] += sign * price[row];
        discounts[group] += sign * discount[row];
        discounted_prices[group] += sign * discounted;
        charges[group] += sign * discounted * (1 + tax[row]);
        int64_t& count = counts[group];
        count += static_cast<int64_t>(sign);
        if (count) return;
        for (auto* sums : {&quantities, &prices, &discounts, &discounted_prices, &charges}) sums->erase(group);
        counts.erase(group);
    }

    void print(std::FILE* out) {
        counts.each([&](const Group& g, int64_t count) {
            double n = static_cast<double>(count);
            std::fprintf(out, "%.*s|%.*s|%.4f|%.4f|%.4f|%.4f|%.6f|%.6f|%.6f|%ld\n", static_cast<int>(g.flag.size()),
                         g.flag.data(), static_cast<int>(g.status.size()), g.status.data(), quantities[g], prices[g],
                         discounted_prices[g], charges[g], quantities[g] / n, prices[g] / n, discounts[g] / n, count);
        });
    }

    Integers shipdate;
    Doubles quantity, price, discount, tax;
    Strings flag, status;
    FlatMap<Group, double> quantities, prices, discounts, discounted_prices, charges;
    FlatMap<Group, int64_t> counts;
};
