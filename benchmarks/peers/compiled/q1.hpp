#pragma once
#include "maps.hpp"
#include "stream.hpp"

struct Q1 {
    struct Group {
        std::string_view flag, status;
        bool operator==(const Group&) const = default;
        friend uint64_t hashed(const Group& group) { return mixed(hashed(group.flag) ^ hashed(group.status)); }
    };
    struct Sums {
        double quantity = 0, price = 0, discounted = 0, charge = 0, discount = 0;
        int64_t count = 0;
    };

    explicit Q1(const Source& from)
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
        double discounted = sign * price[row] * (1 - discount[row]);
        Sums& sums = result[group];
        sums.quantity += sign * quantity[row];
        sums.price += sign * price[row];
        sums.discounted += discounted;
        sums.charge += discounted * (1 + tax[row]);
        sums.discount += sign * discount[row];
        sums.count += static_cast<int64_t>(sign);
        if (!sums.count) result.erase(group);
    }

    void print(std::FILE* out) {
        result.each([&](const Group& group, const Sums& sums) {
            auto n = static_cast<double>(sums.count);
            std::fprintf(out, "%.*s|%.*s|%.4f|%.4f|%.4f|%.4f|%.6f|%.6f|%.6f|%ld\n", static_cast<int>(group.flag.size()),
                         group.flag.data(), static_cast<int>(group.status.size()), group.status.data(), sums.quantity,
                         sums.price, sums.discounted, sums.charge, sums.quantity / n, sums.price / n, sums.discount / n,
                         sums.count);
        });
    }

    Integers shipdate;
    Doubles quantity, price, discount, tax;
    Strings flag, status;
    FlatMap<Group, Sums> result;
};
