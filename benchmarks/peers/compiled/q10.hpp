#pragma once
#include "maps.hpp"
#include "stream.hpp"

// Revenue by customer: that of an order's returned lines, and of a customer's orders, are kept for what comes later.
struct Q10 {
    struct Revenue {
        double sum = 0;
        int64_t count = 0;
    };
    struct Customer {
        size_t row = 0;
        int64_t nation = 0;
    };

    explicit Q10(const Source& from)
        : n_key(from.integers("n_nationkey")),
          c_key(from.integers("c_custkey")),
          c_nation(from.integers("c_nationkey")),
          o_key(from.integers("o_orderkey")),
          o_customer(from.integers("o_custkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          l_price(from.doubles("l_extendedprice")),
          l_discount(from.doubles("l_discount")),
          c_balance(from.doubles("c_acctbal")),
          n_name(from.strings("n_name")),
          c_name(from.strings("c_name")),
          c_address(from.strings("c_address")),
          c_phone(from.strings("c_phone")),
          c_comment(from.strings("c_comment")),
          l_flag(from.strings("l_returnflag")) {}

    void change(Table table, size_t row, double sign) {
        switch (table) {
            case LINEITEM:
                return line(row, sign);
            case ORDERS:
                return order(row, sign);
            case CUSTOMER:
                if (sign > 0) customers[c_key[row]] = {row, c_nation[row]};
                if (sign < 0) customers.erase(c_key[row]);
                return;
            default:
                if (sign > 0) nations[n_key[row]] = n_name[row];
                if (sign < 0) nations.erase(n_key[row]);
        }
    }

    void line(size_t row, double sign) {
        if (l_flag[row] != "R") return;
        Revenue change{sign * l_price[row] * (1 - l_discount[row]), static_cast<int64_t>(sign)};
        add(lines, l_order[row], change);
        if (int64_t* customer = orders.find(l_order[row])) add(of_customer, *customer, change);
    }

    void order(size_t row, double sign) {
        if (o_date[row] < day(1993, 10, 1) || o_date[row] >= day(1994, 1, 1)) return;
        if (Revenue* there = lines.find(o_key[row])) {
            add(of_customer, o_customer[row], {sign * there->sum, static_cast<int64_t>(sign) * there->count});
        }
        if (sign > 0) orders[o_key[row]] = o_customer[row];
        if (sign < 0) orders.erase(o_key[row]);
    }

    static void add(FlatMap<int64_t, Revenue>& map, int64_t key, const Revenue& change) {
        Revenue& revenue = map[key];
        revenue.sum += change.sum;
        revenue.count += change.count;
        if (!revenue.count) map.erase(key);
    }

    void print(std::FILE* out) {
        auto text = [](std::string_view value) { return std::pair(static_cast<int>(value.size()), value.data()); };
        of_customer.each([&](int64_t key, const Revenue& revenue) {
            Customer* customer = customers.find(key);
            std::string_view* nation = customer ? nations.find(customer->nation) : nullptr;
            if (!nation) return;
            auto [n, name] = text(c_name[customer->row]);
            auto [m, nation_name] = text(*nation);
            auto [a, address] = text(c_address[customer->row]);
            auto [p, phone] = text(c_phone[customer->row]);
            auto [c, comment] = text(c_comment[customer->row]);
            std::fprintf(out, "%ld|%.*s|%.4f|%.2f|%.*s|%.*s|%.*s|%.*s\n", key, n, name, revenue.sum,
                         c_balance[customer->row], m, nation_name, a, address, p, phone, c, comment);
        });
    }

    Integers n_key, c_key, c_nation, o_key, o_customer, o_date, l_order;
    Doubles l_price, l_discount, c_balance;
    Strings n_name, c_name, c_address, c_phone, c_comment, l_flag;
    FlatMap<int64_t, std::string_view> nations;
    FlatMap<int64_t, Customer> customers;
    FlatMap<int64_t, int64_t> orders;
    FlatMap<int64_t, Revenue> lines, of_customer;
};
