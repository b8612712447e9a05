#pragma once
#include "lists.hpp"
#include "stream.hpp"

// Revenue by nation: lines whose order is there, in time, and whose customer and supplier are of the nation. Lines are
// summed by order and supplier, so that orders, customers and suppliers that come later find them.
struct Q5 {
    struct Line {
        int64_t supplier = 0;
        double revenue = 0;
        bool operator==(const Line&) const = default;
    };
    struct Pair {
        int64_t order = 0;
        double revenue = 0;
        bool operator==(const Pair&) const = default;
    };
    struct Nation {
        int64_t region = 0;
        std::string_view name;
    };
    struct Revenue {
        double sum = 0;
        int64_t count = 0;
    };

    explicit Q5(const Source& from)
        : r_key(from.integers("r_regionkey")),
          n_key(from.integers("n_nationkey")),
          n_region(from.integers("n_regionkey")),
          s_key(from.integers("s_suppkey")),
          s_nation(from.integers("s_nationkey")),
          c_key(from.integers("c_custkey")),
          c_nation(from.integers("c_nationkey")),
          o_key(from.integers("o_orderkey")),
          o_customer(from.integers("o_custkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          l_supplier(from.integers("l_suppkey")),
          l_price(from.doubles("l_extendedprice")),
          l_discount(from.doubles("l_discount")),
          r_name(from.strings("r_name")),
          n_name(from.strings("n_name")) {}

    void change(Table table, size_t row, double sign) {
        switch (table) {
            case LINEITEM:
                return line(row, sign);
            case ORDERS:
                return order(row, sign);
            case CUSTOMER:
                return customer(row, sign);
            case SUPPLIER:
                return supplier(row, sign);
            case NATION:
                if (sign > 0) nations[n_key[row]] = {n_region[row], n_name[row]};
                if (sign < 0) nations.erase(n_key[row]);
                return;
            default:
                if (sign > 0) regions[r_key[row]] = r_name[row];
                if (sign < 0) regions.erase(r_key[row]);
        }
    }

    void line(size_t row, double sign) {
        double revenue = l_price[row] * (1 - l_discount[row]);
        of_order.change(l_order[row], {l_supplier[row], revenue}, sign > 0);
        of_supplier.change(l_supplier[row], {l_order[row], revenue}, sign > 0);
        int64_t* customer = orders.find(l_order[row]);
        int64_t* nation = customer ? customers.find(*customer) : nullptr;
        if (nation) pair(*nation, l_supplier[row], sign, revenue);
    }

    void pair(int64_t nation, int64_t supplier, double sign, double revenue) {
        int64_t* other = suppliers.find(supplier);
        if (other && *other == nation) add(nation, sign, revenue);
    }

    void order(size_t row, double sign) {
        if (o_date[row] < day(1994, 1, 1) || o_date[row] >= day(1995, 1, 1)) return;
        if (sign > 0) orders[o_key[row]] = o_customer[row];
        if (sign < 0) orders.erase(o_key[row]);
        of_customer.change(o_customer[row], o_key[row], sign > 0);
        if (int64_t* nation = customers.find(o_customer[row])) lines(o_key[row], *nation, sign);
    }

    void lines(int64_t order, int64_t nation, double sign) {
        of_order.each(order, [&](const Line& line) { pair(nation, line.supplier, sign, line.revenue); });
    }

    void customer(size_t row, double sign) {
        if (sign > 0) customers[c_key[row]] = c_nation[row];
        if (sign < 0) customers.erase(c_key[row]);
        of_customer.each(c_key[row], [&](int64_t order) { lines(order, c_nation[row], sign); });
    }

    void supplier(size_t row, double sign) {
        if (sign > 0) suppliers[s_key[row]] = s_nation[row];
        if (sign < 0) suppliers.erase(s_key[row]);
        of_supplier.each(s_key[row], [&](const Pair& pair) {
            int64_t* customer = orders.find(pair.order);
            int64_t* nation = customer ? customers.find(*customer) : nullptr;
            if (nation && *nation == s_nation[row]) add(*nation, sign, pair.revenue);
        });
    }

    void add(int64_t nation, double sign, double revenue) {
        Revenue& sum = result[nation];
        sum.sum += sign * revenue;
        sum.count += static_cast<int64_t>(sign);
    }

    void print(std::FILE* out) {
        result.each([&](int64_t key, const Revenue& revenue) {
            Nation* nation = nations.find(key);
            std::string_view* region = nation ? regions.find(nation->region) : nullptr;
            if (!revenue.count || !region || *region != "ASIA") return;
            std::fprintf(out, "%.*s|%.4f\n", static_cast<int>(nation->name.size()), nation->name.data(), revenue.sum);
        });
    }

    Integers r_key, n_key, n_region, s_key, s_nation, c_key, c_nation, o_key, o_customer, o_date, l_order, l_supplier;
    Doubles l_price, l_discount;
    Strings r_name, n_name;
    FlatMap<int64_t, std::string_view> regions;
    FlatMap<int64_t, Nation> nations;
    FlatMap<int64_t, int64_t> suppliers, customers, orders;
    FlatMap<int64_t, Revenue> result;
    Lists<Line> of_order;
    Lists<Pair> of_supplier;
    Lists<int64_t> of_customer;
};
