#pragma once
#include "lists.hpp"
#include "stream.hpp"

struct Q3 {
    struct Revenue {
        double sum = 0;
        int64_t count = 0;
    };
    struct Order {
        int64_t customer = 0, date = 0, priority = 0;
    };

    explicit Q3(const Source& from)
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
        if (table == LINEITEM) return line(row, sign);
        if (table == ORDERS) return order(row, sign);
        return customer(row, sign);
    }

    void line(size_t row, double sign) {
        if (l_shipdate[row] <= day(1995, 3, 15)) return;
        Revenue change{sign * l_price[row] * (1 - l_discount[row]), static_cast<int64_t>(sign)};
        add(lines, l_order[row], change);
        Order* order = orders.find(l_order[row]);
        if (order && customers.find(order->customer)) add(result, l_order[row], change);
    }

    void order(size_t row, double sign) {
        if (o_date[row] >= day(1995, 3, 15)) return;
        if (sign > 0) {
            orders[o_key[row]] = {o_customer[row], o_date[row], o_priority[row]};
        }
        of_customer.change(o_customer[row], o_key[row], sign > 0);
        Revenue* there = lines.find(o_key[row]);
        if (there && customers.find(o_customer[row])) show(o_key[row], *there, sign);
        if (sign < 0) orders.erase(o_key[row]);
    }

    void customer(size_t row, double sign) {
        if (c_segment[row] != "BUILDING") return;
        if (sign > 0) customers[c_key[row]] = true;
        of_customer.each(c_key[row], [&](int64_t order) {
            if (Revenue* there = lines.find(order)) show(order, *there, sign);
        });
        if (sign < 0) customers.erase(c_key[row]);
    }

    void show(int64_t order, const Revenue& there, double sign) {
        add(result, order, {sign * there.sum, static_cast<int64_t>(sign) * there.count});
    }

    static void add(FlatMap<int64_t, Revenue>& map, int64_t key, const Revenue& change) {
        Revenue& revenue = map[key];
        revenue.sum += change.sum;
        revenue.count += change.count;
        if (!revenue.count) map.erase(key);
    }

    void print(std::FILE* out) {
        result.each([&](int64_t key, const Revenue& revenue) {
            Order& order = *orders.find(key);
            std::fprintf(out, "%ld|%.4f|%ld|%ld\n", key, revenue.sum, order.date, order.priority);
        });
    }

    Integers c_key, o_key, o_customer, o_date, o_priority, l_order, l_shipdate;
    Doubles l_price, l_discount;
    Strings c_segment;
    FlatMap<int64_t, Revenue> lines, result;
    FlatMap<int64_t, Order> orders;
    FlatMap<int64_t, bool> customers;
    Lists<int64_t> of_customer;
};
