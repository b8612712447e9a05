#pragma once
#include "maps.hpp"
#include "stream.hpp"

struct Q4 {
    explicit Q4(const Source& from)
        : o_key(from.integers("o_orderkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          l_commit(from.integers("l_commitdate")),
          l_receipt(from.integers("l_receiptdate")),
          o_priority(from.strings("o_orderpriority")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        if (table == LINEITEM) {
            if (l_commit[row] >= l_receipt[row]) return;
            int64_t& count = late[l_order[row]];
            bool was = count != 0;
            count += weight;
            if (was == (count != 0)) return;
            if (std::string_view* priority = orders.find(l_order[row])) add(*priority, weight);
            if (!count) late.erase(l_order[row]);
            return;
        }
        if (o_date[row] < day(1993, 7, 1) || o_date[row] >= day(1993, 10, 1)) return;
        if (late.find(o_key[row])) add(o_priority[row], weight);
        if (weight > 0) {
            orders[o_key[row]] = o_priority[row];
        } else {
            orders.erase(o_key[row]);
        }
    }

    void add(std::string_view priority, int64_t weight) {
        int64_t& count = result[priority];
        count += weight;
        if (!count) result.erase(priority);
    }

    void print(std::FILE* out) {
        result.each([&](std::string_view key, int64_t count) {
            std::fprintf(out, "%.*s|%ld\n", static_cast<int>(key.size()), key.data(), count);
        });
    }

    Integers o_key, o_date, l_order, l_commit, l_receipt;
    Strings o_priority;
    FlatMap<int64_t, int64_t> late;
    FlatMap<int64_t, std::string_view> orders;
    FlatMap<std::string_view, int64_t> result;
};
