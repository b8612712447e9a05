// C: CUSTOMER; O: ORDERS of a year; L: LINEITEM, revenue and count; S: SUPPLIER; N: NATION; R: REGION named ASIA
// Where the rest of a delta falls into parts at the columns that its row has, the parts are maps of their own, though
// the nation joins them.
//
// result(name): C * O * L * S * N * R
// of_regions(region, name): C * O * L * S * N, the delta for R
// of_nations(nation): C * O * L * S, of the delta for N
// of_suppliers(nation, supplier): C * O * L, of the delta for S
// of_customers(customer, nation): O * L * S, of the delta for C
// ordered(order, nation): C * O, of the delta for L; supplied(order, nation): L * S, of the delta for O
// bought(customer, supplier): O * L, the delta of of_suppliers for C and of of_customers for S
// served(nation, name): N * R, of all deltas but those for N and R
// customers(customer, nation): C; orders(order, customer): O; lines(order, supplier): L
// suppliers(supplier, nation): S; nations(nation, region, name): N; regions(region): R
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ5 {
    struct Customer {
        int64_t customer = 0, nation = 0;
        bool operator==(const Customer&) const = default;
        friend uint64_t hashed(const Customer& key) { return hash_of(key.customer, key.nation); }
    };
    struct Supplier {
        int64_t supplier = 0, nation = 0;
        bool operator==(const Supplier&) const = default;
        friend uint64_t hashed(const Supplier& key) { return hash_of(key.supplier, key.nation); }
    };
    struct Order {
        int64_t order = 0, customer = 0;
        bool operator==(const Order&) const = default;
        friend uint64_t hashed(const Order& key) { return hash_of(key.order, key.customer); }
    };
    struct OfNation {
        int64_t order = 0, nation = 0;
        bool operator==(const OfNation&) const = default;
        friend uint64_t hashed(const OfNation& key) { return hash_of(key.order, key.nation); }
    };
    struct Line {
        int64_t order = 0, supplier = 0;
        bool operator==(const Line&) const = default;
        friend uint64_t hashed(const Line& key) { return hash_of(key.order, key.supplier); }
    };
    struct Purchase {
        int64_t customer = 0, supplier = 0;
        bool operator==(const Purchase&) const = default;
        friend uint64_t hashed(const Purchase& key) { return hash_of(key.customer, key.supplier); }
    };
    struct Nation {
        int64_t nation = 0, region = 0;
        std::string_view name;
        bool operator==(const Nation&) const = default;
        friend uint64_t hashed(const Nation& key) { return hash_of(key.nation, key.region, key.name); }
    };
    struct Served {
        int64_t nation = 0;
        std::string_view name;
        bool operator==(const Served&) const = default;
        friend uint64_t hashed(const Served& key) { return hash_of(key.nation, key.name); }
    };
    struct InRegion {
        int64_t region = 0;
        std::string_view name;
        bool operator==(const InRegion&) const = default;
        friend uint64_t hashed(const InRegion& key) { return hash_of(key.region, key.name); }
    };
    struct ByOrder {
        static int64_t of(const auto& key) { return key.order; }
    };
    struct ByCustomer {
        static int64_t of(const auto& key) { return key.customer; }
    };
    struct BySupplier {
        static int64_t of(const auto& key) { return key.supplier; }
    };
    struct ByNation {
        static int64_t of(const auto& key) { return key.nation; }
    };
    struct ByRegion {
        static int64_t of(const auto& key) { return key.region; }
    };

    explicit DerivedQ5(const Source& from)
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
        auto weight = static_cast<int64_t>(sign);
        switch (table) {
            case LINEITEM:
                return line(row, weight);
            case ORDERS:
                return order(row, weight);
            case CUSTOMER:
                return customer(row, weight);
            case SUPPLIER:
                return supplier(row, weight);
            case NATION:
                return nation(row, weight);
            default:
                return region(row, weight);
        }
    }

    // The revenue of a nation changes, and with it all that has it joined with N and R.
    void add(int64_t nation, const Sum& revenue) {
        of_nations.add(nation, revenue);
        nations.each<ByNation>(
            nation, [&](const Nation& key, int64_t count) { of_regions.add({key.region, key.name}, revenue * count); });
        served.each<ByNation>(nation, [&](const Served& key, int64_t count) { result.add(key.name, revenue * count); });
    }

    void line(size_t row, int64_t weight) {
        int64_t order = l_order[row], supplier = l_supplier[row];
        Sum revenue = Sum{l_price[row] * (1 - l_discount[row]), 1} * weight;
        suppliers.each<BySupplier>(supplier, [&](const Supplier& key, int64_t count) {
            OfNation of_nation{order, key.nation};
            if (const int64_t* times = ordered.find(of_nation)) add(key.nation, revenue * (count * *times));
            supplied.add(of_nation, revenue * count);
        });
        ordered.each<ByOrder>(order, [&](const OfNation& key, int64_t count) {
            of_suppliers.add({supplier, key.nation}, revenue * count);
        });
        orders.each<ByOrder>(order, [&](const Order& key, int64_t count) {
            bought.add({key.customer, supplier}, revenue * count);
            suppliers.each<BySupplier>(supplier, [&](const Supplier& by, int64_t times) {
                of_customers.add({key.customer, by.nation}, revenue * (count * times));
            });
        });
        lines.add({order, supplier}, revenue);
    }

    void order(size_t row, int64_t weight) {
        if (o_date[row] < day(1994, 1, 1) || o_date[row] >= day(1995, 1, 1)) return;
        int64_t order = o_key[row], customer = o_customer[row];
        customers.each<ByCustomer>(customer, [&](const Customer& key, int64_t count) {
            OfNation of_nation{order, key.nation};
            if (const Sum* revenue = supplied.find(of_nation)) add(key.nation, *revenue * (weight * count));
            ordered.add(of_nation, weight * count);
            lines.each<ByOrder>(order, [&](const Line& line, const Sum& revenue) {
                of_suppliers.add({line.supplier, key.nation}, revenue * (weight * count));
            });
        });
        supplied.each<ByOrder>(order, [&](const OfNation& key, const Sum& revenue) {
            of_customers.add({customer, key.nation}, revenue * weight);
        });
        lines.each<ByOrder>(order, [&](const Line& key, const Sum& revenue) {
            bought.add({customer, key.supplier}, revenue * weight);
        });
        orders.add({order, customer}, weight);
    }

    void customer(size_t row, int64_t weight) {
        Customer added{c_key[row], c_nation[row]};
        if (const Sum* revenue = of_customers.find(added)) add(added.nation, *revenue * weight);
        bought.each<ByCustomer>(added.customer, [&](const Purchase& key, const Sum& revenue) {
            of_suppliers.add({key.supplier, added.nation}, revenue * weight);
        });
        orders.each<ByCustomer>(added.customer, [&](const Order& key, int64_t count) {
            ordered.add({key.order, added.nation}, weight * count);
        });
        customers.add(added, weight);
    }

    void supplier(size_t row, int64_t weight) {
        Supplier added{s_key[row], s_nation[row]};
        if (const Sum* revenue = of_suppliers.find(added)) add(added.nation, *revenue * weight);
        bought.each<BySupplier>(added.supplier, [&](const Purchase& key, const Sum& revenue) {
            of_customers.add({key.customer, added.nation}, revenue * weight);
        });
        lines.each<BySupplier>(added.supplier, [&](const Line& key, const Sum& revenue) {
            supplied.add({key.order, added.nation}, revenue * weight);
        });
        suppliers.add(added, weight);
    }

    void nation(size_t row, int64_t weight) {
        Nation added{n_key[row], n_region[row], n_name[row]};
        const Sum* revenue = of_nations.find(added.nation);
        const int64_t* count = regions.find(added.region);
        if (revenue) of_regions.add({added.region, added.name}, *revenue * weight);
        if (revenue && count) result.add(added.name, *revenue * (weight * *count));
        if (count) served.add({added.nation, added.name}, weight * *count);
        nations.add(added, weight);
    }

    void region(size_t row, int64_t weight) {
        if (r_name[row] != "ASIA") return;
        of_regions.each<ByRegion>(
            r_key[row], [&](const InRegion& key, const Sum& revenue) { result.add(key.name, revenue * weight); });
        nations.each<ByRegion>(
            r_key[row], [&](const Nation& key, int64_t count) { served.add({key.nation, key.name}, weight * count); });
        regions.add(r_key[row], weight);
    }

    void print(std::FILE* out) {
        result.each([&](std::string_view name, const Sum& revenue) {
            std::fprintf(out, "%.*s|%.4f\n", static_cast<int>(name.size()), name.data(), revenue.sum);
        });
    }

    Integers r_key, n_key, n_region, s_key, s_nation, c_key, c_nation, o_key, o_customer, o_date, l_order, l_supplier;
    Doubles l_price, l_discount;
    Strings r_name, n_name;
    Map<std::string_view, Sum> result;
    Map<InRegion, Sum, ByRegion> of_regions;
    Map<int64_t, Sum> of_nations;
    Map<Supplier, Sum> of_suppliers;
    Map<Customer, Sum> of_customers;
    Map<OfNation, int64_t, ByOrder> ordered;
    Map<OfNation, Sum, ByOrder> supplied;
    Map<Purchase, Sum, ByCustomer, BySupplier> bought;
    Map<Served, int64_t, ByNation> served;
    Map<Customer, int64_t, ByCustomer> customers;
    Map<Order, int64_t, ByOrder, ByCustomer> orders;
    Map<Line, Sum, ByOrder, BySupplier> lines;
    Map<Supplier, int64_t, BySupplier> suppliers;
    Map<Nation, int64_t, ByNation, ByRegion> nations;
    Map<int64_t, int64_t> regions;
};
