#pragma once
#include "lists.hpp"
#include "stream.hpp"

struct Q18 {
    struct Quantity {
        double sum = 0;
        int64_t count = 0;
    };
    struct Order {
        int64_t customer = 0, date = 0;
        double price = 0;
    };

    explicit Q18(const Source& from)
        : c_key(from.integers("c_custkey")),
          o_key(from.integers("o_orderkey")),
          o_customer(from.integers("o_custkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          o_price(from.doubles("o_totalprice")),
          l_quantity(from.doubles("l_quantity")),
          c_name(from.strings("c_name")) {}

    void change(Table table, size_t row, double sign) {
        if (table == LINEITEM) return line(row, sign);
        if (table == ORDERS) return order(row, sign);
        if (sign > 0) customers[c_key[row]] = c_name[row];
        of_customer.each(c_key[row], [&](int64_t order) { refresh(order, sign > 0); });
        if (sign < 0) customers.erase(c_key[row]);
    }

    void line(size_t row, double sign) {
        Quantity& quantity = lines[l_order[row]];
        bool was = quantity.sum > 300;
        quantity.sum += sign * l_quantity[row];
        quantity.count += static_cast<int64_t>(sign);
        if (was || quantity.sum > 300) {
            Order* order = orders.find(l_order[row]);
            if (order) refresh(l_order[row], customers.find(order->customer) != nullptr);
        }
        if (!quantity.count) lines.erase(l_order[row]);
    }

    void order(size_t row, double sign) {
        if (sign > 0) orders[o_key[row]] = {o_customer[row], o_date[row], o_price[row]};
        of_customer.change(o_customer[row], o_key[row], sign > 0);
        refresh(o_key[row], sign > 0 && customers.find(o_customer[row]));
        if (sign < 0) orders.erase(o_key[row]);
    }

    void refresh(int64_t order, bool joined) {
        Quantity* quantity = lines.find(order);
        if (quantity && quantity->sum > 300 && joined) {
            result[order] = quantity->sum;
        } else {
            result.erase(order);
        }
    }

    void print(std::FILE* out) {
        result.each([&](int64_t key, double sum) {
            Order& order = *orders.find(key);
            std::string_view name = *customers.find(order.customer);
            std::fprintf(out, "%.*s|%ld|%ld|%ld|%.2f|%.2f\n", static_cast<int>(name.size()), name.data(),
                         order.customer, key, order.date, order.price, sum);
        });
    }

    Integers c_key, o_key, o_customer, o_date, l_order;
    Doubles o_price, l_quantity;
    Strings c_name;
    FlatMap<int64_t, Quantity> lines;
    FlatMap<int64_t, Order> orders;
    FlatMap<int64_t, std::string_view> customers;
    FlatMap<int64_t, double> result;
    Lists<int64_t> of_customer;
};
