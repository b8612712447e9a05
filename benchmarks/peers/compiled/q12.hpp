#pragma once
#include "maps.hpp"
#include "stream.hpp"

struct Q12 {
    struct Modes {
        int64_t mail = 0, ship = 0;
    };
    struct Counts {
        int64_t high = 0, low = 0;
    };

    explicit Q12(const Source& from)
        : o_key(from.integers("o_orderkey")),
          l_order(from.integers("l_orderkey")),
          l_ship(from.integers("l_shipdate")),
          l_commit(from.integers("l_commitdate")),
          l_receipt(from.integers("l_receiptdate")),
          o_priority(from.strings("o_orderpriority")),
          l_mode(from.strings("l_shipmode")) {}

    void change(Table table, size_t row, double sign) {
        auto weight = static_cast<int64_t>(sign);
        if (table == LINEITEM) return line(row, weight);
        bool urgent = o_priority[row] == "1-URGENT" || o_priority[row] == "2-HIGH";
        if (Modes* modes = lines.find(o_key[row])) {
            add(mail, urgent, weight * modes->mail);
            add(ship, urgent, weight * modes->ship);
        }
        if (weight > 0) orders[o_key[row]] = urgent;
        if (weight < 0) orders.erase(o_key[row]);
    }

    void line(size_t row, int64_t weight) {
        if (l_commit[row] >= l_receipt[row] || l_ship[row] >= l_commit[row]) return;
        if (l_receipt[row] < day(1994, 1, 1) || l_receipt[row] >= day(1995, 1, 1)) return;
        bool by_mail = l_mode[row] == "MAIL";
        if (!by_mail && l_mode[row] != "SHIP") return;
        Modes& modes = lines[l_order[row]];
        (by_mail ? modes.mail : modes.ship) += weight;
        if (!modes.mail && !modes.ship) lines.erase(l_order[row]);
        if (bool* urgent = orders.find(l_order[row])) add(by_mail ? mail : ship, *urgent, weight);
    }

    static void add(Counts& counts, bool urgent, int64_t weight) { (urgent ? counts.high : counts.low) += weight; }

    void print(std::FILE* out) {
        if (mail.high || mail.low) std::fprintf(out, "MAIL|%ld|%ld\n", mail.high, mail.low);
        if (ship.high || ship.low) std::fprintf(out, "SHIP|%ld|%ld\n", ship.high, ship.low);
    }

    Integers o_key, l_order, l_ship, l_commit, l_receipt;
    Strings o_priority, l_mode;
    FlatMap<int64_t, Modes> lines;
    FlatMap<int64_t, bool> orders;
    Counts mail, ship;
};
