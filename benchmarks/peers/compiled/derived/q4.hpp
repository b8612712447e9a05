// result(priority): count of O * exists(L)
// orders(order, priority): O, ORDERS of a quarter; the delta for what exists
// late(order): L, LINEITEM received late; whether there are some is looked up anew for the order of a line that changes
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ4 {
    struct Order {
        int64_t order = 0;
        std::string_view priority;
        bool operator==(const Order&) const = default;
        friend uint64_t hashed(const Order& key) { return hash_of(key.order, key.priority); }
    };
    struct ByOrder {
        static int64_t of(const Order& key) { return key.order; }
    };

    explicit DerivedQ4(const Source& from)
        : o_key(from.integers("o_orderkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          l_commit(from.integers("l_commitdate")),
          l_receipt(from.integers("l_receiptdate")),
          o_priority(from.strings("o_orderpriority")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        table == LINEITEM ? line(row, weight) : order(row, weight);
    }

    void line(size_t row, int64_t weight) {
        if (l_commit[row] >= l_receipt[row]) return;
        int64_t after = late.add(l_order[row], weight), before = after - weight;
        int64_t change = static_cast<int64_t>(after != 0) - static_cast<int64_t>(before != 0);
        if (!change) return;
        orders.each<ByOrder>(l_order[row],
                             [&](const Order& key, int64_t count) { result.add(key.priority, change * count); });
    }

    void order(size_t row, int64_t weight) {
        if (o_date[row] < day(1993, 7, 1) || o_date[row] >= day(1993, 10, 1)) return;
        if (late.find(o_key[row])) result.add(o_priority[row], weight);
        orders.add({o_key[row], o_priority[row]}, weight);
    }

    void print(std::FILE* out) {
        result.each([&](std::string_view key, int64_t count) {
            std::fprintf(out, "%.*s|%ld\n", static_cast<int>(key.size()), key.data(), count);
        });
    }

    Integers o_key, o_date, l_order, l_commit, l_receipt;
    Strings o_priority;
    Map<std::string_view, int64_t> result;
    Map<Order, int64_t, ByOrder> orders;
    Map<int64_t, int64_t> late;
};
