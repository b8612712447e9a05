// C: CUSTOMER; O: ORDERS of a quarter; L: LINEITEM returned, revenue and count; N: NATION
// who: key, name, balance, phone, address and comment of a customer
//
// result(who, nation name): C * O * L * N
// of_lines(order, who, nation name): C * O * N, the delta for L
// revenues(customer): O * L, of the delta for C
// of_nations(nation, who): C * O * L, of the delta for N
// of_orders(who, nation name): C * N, of the delta for O
// placed(order, nation, who): C * O, the delta of of_lines for N and of of_nations for L
// customers(nation, who): C; orders(order, customer): O; lines(order): L; nations(nation, name): N
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ10 {
    struct Who {
        int64_t customer = 0;
        std::string_view name;
        double balance = 0;
        std::string_view phone, address, comment;
        bool operator==(const Who&) const = default;
        friend uint64_t hashed(const Who& key) {
            return hash_of(key.customer, key.name, key.balance, key.phone, key.address, key.comment);
        }
    };
    struct Resident {
        int64_t nation = 0;
        Who who;
        bool operator==(const Resident&) const = default;
        friend uint64_t hashed(const Resident& key) { return folded(hashed(key.who) + word_of(key.nation)); }
    };
    struct Named {
        std::string_view nation;
        Who who;
        bool operator==(const Named&) const = default;
        friend uint64_t hashed(const Named& key) { return folded(hashed(key.who) + word_of(key.nation)); }
    };
    template <class Customer>
    struct OfOrder {
        int64_t order = 0;
        Customer by;
        bool operator==(const OfOrder&) const = default;
        friend uint64_t hashed(const OfOrder& key) { return folded(hashed(key.by) + word_of(key.order)); }
    };
    struct Order {
        int64_t order = 0, customer = 0;
        bool operator==(const Order&) const = default;
        friend uint64_t hashed(const Order& key) { return hash_of(key.order, key.customer); }
    };
    struct Nation {
        int64_t nation = 0;
        std::string_view name;
        bool operator==(const Nation&) const = default;
        friend uint64_t hashed(const Nation& key) { return hash_of(key.nation, key.name); }
    };
    struct ByOrder {
        static int64_t of(const auto& key) { return key.order; }
    };
    struct ByCustomer {
        static int64_t of(const Order& key) { return key.customer; }
        static int64_t of(const auto& key) { return key.who.customer; }
    };
    struct ByNation {
        static int64_t of(const OfOrder<Resident>& key) { return key.by.nation; }
        static int64_t of(const auto& key) { return key.nation; }
    };

    explicit DerivedQ10(const Source& from)
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
        auto weight = static_cast<int64_t>(sign);
        switch (table) {
            case LINEITEM:
                return line(row, weight);
            case ORDERS:
                return order(row, weight);
            case CUSTOMER:
                return customer(row, weight);
            default:
                return nation(row, weight);
        }
    }

    void line(size_t row, int64_t weight) {
        if (l_flag[row] != "R") return;
        Sum revenue = Sum{l_price[row] * (1 - l_discount[row]), 1} * weight;
        of_lines.each<ByOrder>(l_order[row],
                               [&](const OfOrder<Named>& key, int64_t count) { result.add(key.by, revenue * count); });
        placed.each<ByOrder>(l_order[row], [&](const OfOrder<Resident>& key, int64_t count) {
            of_nations.add(key.by, revenue * count);
        });
        orders.each<ByOrder>(l_order[row],
                             [&](const Order& key, int64_t count) { revenues.add(key.customer, revenue * count); });
        lines.add(l_order[row], revenue);
    }

    void order(size_t row, int64_t weight) {
        if (o_date[row] < day(1993, 10, 1) || o_date[row] >= day(1994, 1, 1)) return;
        int64_t order = o_key[row], customer = o_customer[row];
        const Sum* revenue = lines.find(order);
        of_orders.each<ByCustomer>(customer, [&](const Named& key, int64_t count) {
            if (revenue) result.add(key, *revenue * (weight * count));
            of_lines.add({order, key}, weight * count);
        });
        customers.each<ByCustomer>(customer, [&](const Resident& key, int64_t count) {
            if (revenue) of_nations.add(key, *revenue * (weight * count));
            placed.add({order, key}, weight * count);
        });
        if (revenue) revenues.add(customer, *revenue * weight);
        orders.add({order, customer}, weight);
    }

    void customer(size_t row, int64_t weight) {
        Resident key{c_nation[row],
                     {c_key[row], c_name[row], c_balance[row], c_phone[row], c_address[row], c_comment[row]}};
        const Sum* revenue = revenues.find(c_key[row]);
        nations.each<ByNation>(key.nation, [&](const Nation& nation, int64_t count) {
            Named named{nation.name, key.who};
            if (revenue) result.add(named, *revenue * (weight * count));
            of_orders.add(named, weight * count);
            orders.each<ByCustomer>(c_key[row], [&](const Order& order, int64_t times) {
                of_lines.add({order.order, named}, weight * count * times);
            });
        });
        if (revenue) of_nations.add(key, *revenue * weight);
        orders.each<ByCustomer>(
            c_key[row], [&](const Order& order, int64_t count) { placed.add({order.order, key}, weight * count); });
        customers.add(key, weight);
    }

    void nation(size_t row, int64_t weight) {
        of_nations.each<ByNation>(n_key[row], [&](const Resident& key, const Sum& revenue) {
            result.add({n_name[row], key.who}, revenue * weight);
        });
        placed.each<ByNation>(n_key[row], [&](const OfOrder<Resident>& key, int64_t count) {
            of_lines.add({key.order, {n_name[row], key.by.who}}, weight * count);
        });
        customers.each<ByNation>(n_key[row], [&](const Resident& key, int64_t count) {
            of_orders.add({n_name[row], key.who}, weight * count);
        });
        nations.add({n_key[row], n_name[row]}, weight);
    }

    void print(std::FILE* out) {
        auto text = [](std::string_view value) { return std::pair(static_cast<int>(value.size()), value.data()); };
        result.each([&](const Named& key, const Sum& revenue) {
            auto [n, name] = text(key.who.name);
            auto [m, nation] = text(key.nation);
            auto [a, address] = text(key.who.address);
            auto [p, phone] = text(key.who.phone);
            auto [c, comment] = text(key.who.comment);
            std::fprintf(out, "%ld|%.*s|%.4f|%.2f|%.*s|%.*s|%.*s|%.*s\n", key.who.customer, n, name, revenue.sum,
                         key.who.balance, m, nation, a, address, p, phone, c, comment);
        });
    }

    Integers n_key, c_key, c_nation, o_key, o_customer, o_date, l_order;
    Doubles l_price, l_discount, c_balance;
    Strings n_name, c_name, c_address, c_phone, c_comment, l_flag;
    Map<Named, Sum> result;
    Map<OfOrder<Named>, int64_t, ByOrder> of_lines;
    Map<int64_t, Sum> revenues;
    Map<Resident, Sum, ByNation> of_nations;
    Map<Named, int64_t, ByCustomer> of_orders;
    Map<OfOrder<Resident>, int64_t, ByOrder, ByNation> placed;
    Map<Resident, int64_t, ByCustomer, ByNation> customers;
    Map<Order, int64_t, ByOrder, ByCustomer> orders;
    Map<int64_t, Sum> lines;
    Map<Nation, int64_t, ByNation> nations;
};
