// O: ORDERS that are urgent, or are not; L: LINEITEM of the year and modes, received late. Two maps for each aggregate:
//
// high(mode), low(mode): O * L
// urgent(order), others(order): O, the delta for L
// lines(order, mode): L, the delta for O
#pragma once
#include "../stream.hpp"
#include "map.hpp"

struct DerivedQ12 {
    struct Line {
        int64_t order = 0;
        std::string_view mode;
        bool operator==(const Line&) const = default;
        friend uint64_t hashed(const Line& key) { return hash_of(key.order, key.mode); }
    };
    struct ByOrder {
        static int64_t of(const Line& key) { return key.order; }
    };

    explicit DerivedQ12(const Source& from)
        : o_key(from.integers("o_orderkey")),
          l_order(from.integers("l_orderkey")),
          l_ship(from.integers("l_shipdate")),
          l_commit(from.integers("l_commitdate")),
          l_receipt(from.integers("l_receiptdate")),
          o_priority(from.strings("o_orderpriority")),
          l_mode(from.strings("l_shipmode")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        table == LINEITEM ? line(row, weight) : order(row, weight);
    }

    void line(size_t row, int64_t weight) {
        if (l_commit[row] >= l_receipt[row] || l_ship[row] >= l_commit[row]) return;
        if (l_receipt[row] < day(1994, 1, 1) || l_receipt[row] >= day(1995, 1, 1)) return;
        if (l_mode[row] != "MAIL" && l_mode[row] != "SHIP") return;
        if (const int64_t* count = urgent.find(l_order[row])) high.add(l_mode[row], *count * weight);
        if (const int64_t* count = others.find(l_order[row])) low.add(l_mode[row], *count * weight);
        lines.add({l_order[row], l_mode[row]}, weight);
    }

    void order(size_t row, int64_t weight) {
        bool first = o_priority[row] == "1-URGENT" || o_priority[row] == "2-HIGH";
        auto& result = first ? high : low;
        lines.each<ByOrder>(o_key[row], [&](const Line& key, int64_t count) { result.add(key.mode, count * weight); });
        (first ? urgent : others).add(o_key[row], weight);
    }

    void print(std::FILE* out) {
        for (std::string_view mode : {"MAIL", "SHIP"}) {
            const int64_t *in_high = high.find(mode), *in_low = low.find(mode);
            if (!in_high && !in_low) continue;
            std::fprintf(out, "%.*s|%ld|%ld\n", static_cast<int>(mode.size()), mode.data(), in_high ? *in_high : 0,
                         in_low ? *in_low : 0);
        }
    }

    Integers o_key, l_order, l_ship, l_commit, l_receipt;
    Strings o_priority, l_mode;
    Map<std::string_view, int64_t> high, low;
    Map<int64_t, int64_t> urgent, others;
    Map<Line, int64_t, ByOrder> lines;
};
