// C: CUSTOMER of segment BUILDING; O: ORDERS of early orderdate; L: LINEITEM of late shipdate, revenue and count
//
// result(order, date, priority): C * O * L
// of_orders(order, date, priority): C * O, the delta for L
// of_customers(customer, order, date, priority): O * L, the delta for C
// customers(customer): C; orders(order, customer, date, priority): O; lines(order): L
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ3 {
    struct Order {
        int64_t order = 0, date = 0, priority = 0;
        bool operator==(const Order&) const = default;
        friend uint64_t hashed(const Order& key) { return hash_of(key.order, key.date, key.priority); }
    };
    struct Placed {
        int64_t customer = 0;
        Order of;
        bool operator==(const Placed&) const = default;
        friend uint64_t hashed(const Placed& key) {
            return hash_of(key.customer, key.of.order, key.of.date, key.of.priority);
        }
    };
    struct ByOrder {
        static int64_t of(const Order& key) { return key.order; }
        static int64_t of(const Placed& key) { return key.of.order; }
    };
    struct ByCustomer {
        static int64_t of(const Placed& key) { return key.customer; }
    };

    explicit DerivedQ3(const Source& from)
        : c_key(from.integers("c_custkey")),
          o_key(from.integers("o_orderkey")),
          o_customer(from.integers("o_custkey")),
          o_date(from.integers("o_orderdate")),
          o_priority(from.integers("o_shippriority")),
          l_order(from.integers("l_orderkey")),
          l_shipdate(from.integers("l_shipdate")),
          l_price(from.doubles("l_extendedprice")),
          l_discount(from.doubles("l_discount")),
          c_segment(from.strings("c_mktsegment")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        if (table == LINEITEM) return line(row, weight);
        if (table == ORDERS) return order(row, weight);
        return customer(row, weight);
    }

    void line(size_t row, int64_t weight) {
        if (l_shipdate[row] <= day(1995, 3, 15)) return;
        Sum revenue = Sum{l_price[row] * (1 - l_discount[row]), 1} * weight;
        of_orders.each<ByOrder>(l_order[row],
                                [&](const Order& key, int64_t count) { result.add(key, revenue * count); });
        orders.each<ByOrder>(l_order[row],
                             [&](const Placed& key, int64_t count) { of_customers.add(key, revenue * count); });
        lines.add(l_order[row], revenue);
    }

    void order(size_t row, int64_t weight) {
        if (o_date[row] >= day(1995, 3, 15)) return;
        Placed key{o_customer[row], {o_key[row], o_date[row], o_priority[row]}};
        const Sum* revenue = lines.find(o_key[row]);
        if (const int64_t* count = customers.find(o_customer[row])) {
            if (revenue) result.add(key.of, *revenue * (weight * *count));
            of_orders.add(key.of, weight * *count);
        }
        if (revenue) of_customers.add(key, *revenue * weight);
        orders.add(key, weight);
    }

    void customer(size_t row, int64_t weight) {
        if (c_segment[row] != "BUILDING") return;
        of_customers.each<ByCustomer>(
            c_key[row], [&](const Placed& key, const Sum& revenue) { result.add(key.of, revenue * weight); });
        orders.each<ByCustomer>(c_key[row],
                                [&](const Placed& key, int64_t count) { of_orders.add(key.of, weight * count); });
        customers.add(c_key[row], weight);
    }

    void print(std::FILE* out) {
        result.each([&](const Order& key, const Sum& revenue) {
            std::fprintf(out, "%ld|%.4f|%ld|%ld\n", key.order, revenue.sum, key.date, key.priority);
        });
    }

    Integers c_key, o_key, o_customer, o_date, o_priority, l_order, l_shipdate;
    Doubles l_price, l_discount;
    Strings c_segment;
    Map<Order, Sum> result;
    Map<Order, int64_t, ByOrder> of_orders;
    Map<Placed, Sum, ByCustomer> of_customers;
    Map<int64_t, int64_t> customers;
    Map<Placed, int64_t, ByOrder, ByCustomer> orders;
    Map<int64_t, Sum> lines;
};
