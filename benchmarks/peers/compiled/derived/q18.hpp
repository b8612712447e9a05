// C: CUSTOMER; O: ORDERS; L: LINEITEM, quantity and count; large(L): L if its quantity is over 300
//
// result(name, customer, order, date, price): C * O * large(L)
// of_orders(name, customer, order, date, price): C * O, the delta for large(L)
// of_customers(customer, order, date, price): O * L, the delta for C
// customers(customer, name): C; orders(customer, order, date, price): O
// lines(order): L; large(L) is looked up anew for the order of a line that changes
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ18 {
    struct Customer {
        int64_t customer = 0;
        std::string_view name;
        bool operator==(const Customer&) const = default;
        friend uint64_t hashed(const Customer& key) { return hash_of(key.customer, key.name); }
    };
    struct Order {
        int64_t customer = 0, order = 0, date = 0;
        double price = 0;
        bool operator==(const Order&) const = default;
        friend uint64_t hashed(const Order& key) { return hash_of(key.customer, key.order, key.date, key.price); }
    };
    struct Named {
        std::string_view name;
        Order of;
        bool operator==(const Named&) const = default;
        friend uint64_t hashed(const Named& key) {
            return hash_of(key.name, key.of.customer, key.of.order, key.of.date, key.of.price);
        }
    };
    struct ByOrder {
        static int64_t of(const Order& key) { return key.order; }
        static int64_t of(const Named& key) { return key.of.order; }
    };
    struct ByCustomer {
        static int64_t of(const auto& key) { return key.customer; }
    };

    explicit DerivedQ18(const Source& from)
        : c_key(from.integers("c_custkey")),
          o_key(from.integers("o_orderkey")),
          o_customer(from.integers("o_custkey")),
          o_date(from.integers("o_orderdate")),
          l_order(from.integers("l_orderkey")),
          o_price(from.doubles("o_totalprice")),
          l_quantity(from.doubles("l_quantity")),
          c_name(from.strings("c_name")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        if (table == LINEITEM) return line(row, weight);
        if (table == ORDERS) return order(row, weight);
        return customer(row, weight);
    }

    static bool large(const Sum& quantity) { return quantity.sum > 300; }

    void line(size_t row, int64_t weight) {
        Sum quantity = Sum{l_quantity[row], 1} * weight;
        Sum after = lines.add(l_order[row], quantity), before = after;
        before += quantity * -1;
        orders.each<ByOrder>(l_order[row],
                             [&](const Order& key, int64_t count) { of_customers.add(key, quantity * count); });
        if (!large(before) && !large(after)) return;
        Sum change = large(after) ? after : Sum{};
        if (large(before)) change += before * -1;
        of_orders.each<ByOrder>(l_order[row],
                                [&](const Named& key, int64_t count) { result.add(key, change * count); });
    }

    void order(size_t row, int64_t weight) {
        Order key{o_customer[row], o_key[row], o_date[row], o_price[row]};
        const Sum* quantity = lines.find(o_key[row]);
        customers.each<ByCustomer>(o_customer[row], [&](const Customer& customer, int64_t count) {
            if (quantity && large(*quantity)) result.add({customer.name, key}, *quantity * (weight * count));
            of_orders.add({customer.name, key}, weight * count);
        });
        if (quantity) of_customers.add(key, *quantity * weight);
        orders.add(key, weight);
    }

    void customer(size_t row, int64_t weight) {
        of_customers.each<ByCustomer>(c_key[row], [&](const Order& key, const Sum& quantity) {
            const Sum* all = lines.find(key.order);
            if (all && large(*all)) result.add({c_name[row], key}, quantity * weight);
        });
        orders.each<ByCustomer>(
            c_key[row], [&](const Order& key, int64_t count) { of_orders.add({c_name[row], key}, weight * count); });
        customers.add({c_key[row], c_name[row]}, weight);
    }

    void print(std::FILE* out) {
        result.each([&](const Named& key, const Sum& quantity) {
            std::fprintf(out, "%.*s|%ld|%ld|%ld|%.2f|%.2f\n", static_cast<int>(key.name.size()), key.name.data(),
                         key.of.customer, key.of.order, key.of.date, key.of.price, quantity.sum);
        });
    }

    Integers c_key, o_key, o_customer, o_date, l_order;
    Doubles o_price, l_quantity;
    Strings c_name;
    Map<Named, Sum> result;
    Map<Named, int64_t, ByOrder> of_orders;
    Map<Order, Sum, ByCustomer> of_customers;
    Map<Customer, int64_t, ByCustomer> customers;
    Map<Order, int64_t, ByOrder, ByCustomer> orders;
    Map<int64_t, Sum> lines;
};
