"""Databases whose views have ordered maps, to interrupt: inequalities, windows, percentiles, requests, a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from statistics import median

from tests.interrupts.scenes import Rows, Scene, Tables, View

_START = datetime(1970, 1, 1)


def _pairs(t: Tables) -> Rows:
    found: Rows = Counter()
    for (a, b), n in t["r"].items():
        for (other, c), m in t["s"].items():
            if b < other:
                found[a, c] += n * m
    return found


def _below(t: Tables) -> Rows:
    totals: dict[int, list[int]] = {}
    for (a, b), n in t["r"].items():
        for (other, c), m in t["s"].items():
            if b < other:
                total = totals.setdefault(a, [0, 0])
                total[0] += n * m
                total[1] += n * m * c
    return Counter(dict.fromkeys(((a, *total) for a, total in totals.items()), 1))


def _nearest(t: Tables) -> Rows:
    found: Rows = Counter()
    for (a, b), n in t["r"].items():
        partners = [(-other, c) for other, c in t["s"] if other <= b]
        if partners:
            found[a, b, min(partners)[1]] += n
    return found


def _running(t: Tables) -> Rows:
    found: Rows = Counter()
    for (a, b), n in t["r"].items():
        found[a, b, sum(y * m for (x, y), m in t["r"].items() if x == a and y <= b)] += n
    return found


def _medians(t: Tables) -> Rows:
    groups: dict[int, list[int]] = {}
    for (a, b), n in t["r"].items():
        groups.setdefault(a, []).extend([b] * n)
    return Counter({(a, float(median(values))): 1 for a, values in groups.items()})


def _alive(t: Tables) -> Rows:
    ((now,),) = t["ivme_clock"]
    return Counter({row: n for row, n in t["e"].items() if _START + timedelta(seconds=row[0]) > now})


ORDERED: dict[str, View] = {
    "pairs": ("SELECT r.a, s.c FROM r JOIN s ON r.b < s.b", {}, _pairs),
    "below": ("SELECT r.a, COUNT(*) AS n, SUM(s.c) AS t FROM r JOIN s ON r.b < s.b GROUP BY r.a", {}, _below),
    "nearest": ("SELECT r.a, r.b, s.c FROM r ASOF JOIN s ON r.b >= s.b", {}, _nearest),
    "running": ("SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS t FROM r", {}, _running),
    "medians": ("SELECT a, MEDIAN(b) AS m FROM r GROUP BY a", {}, _medians),
    "sorted": ("SELECT a, b FROM r ORDER BY b DESC, a", {"favour": "reads"}, lambda t: Counter(t["r"])),
    "alive": ("SELECT x, y FROM e", {"expire": "TIMESTAMP_SECONDS(x)"}, _alive),
}


class OrderedScene(Scene):
    """Views with ordered maps, and two that are asked: for the ranks of rows, and for sums over a range."""

    definitions = ORDERED
    followed = ("pairs", "below", "nearest", "running", "sorted", "alive")

    def __init__(self, kind: str, seed: int) -> None:
        super().__init__(kind, seed, clock=_START)
        windows = "RANK() OVER (ORDER BY b DESC) AS n, SUM(a) OVER (ORDER BY b DESC) AS t"
        self.db.create_view("asked", f"SELECT a, b, {windows} FROM r QUALIFY a = :a")
        self.db.create_view("between", "SELECT COUNT(*) AS n, SUM(a) AS t FROM r WHERE b BETWEEN :low AND :high")

    def change(self) -> tuple[str, Callable[[], object], Tables]:
        """One of the changes of any scene, or a step of the clock."""
        if self.random.random() < 0.8:
            return super().change()
        ((now,),) = self.tables["ivme_clock"]
        moment = now + timedelta(seconds=self.random.randrange(3))
        after = {**self.tables, "ivme_clock": Counter({(moment,): 1})}
        return "clock", lambda: self.db.advance(moment), after

    def check(self, before: Tables, after: Tables, source: str | None = None) -> bool:
        done = super().check(before, after, source)
        rows = self.tables["r"]
        for asked in (1, 3):
            expected: Rows = Counter()
            for (a, b), n in rows.items():
                if a == asked:
                    place = 1 + sum(m for (_, y), m in rows.items() if y > b)
                    expected[a, b, place, sum(x * m for (x, y), m in rows.items() if y >= b)] += n
            assert expected == Counter(self.db.view("asked")(a=asked)), f"the ranks of {asked}"
        inside = [(a, n) for (a, b), n in rows.items() if 1 <= b <= 2]
        total = sum(n for _, n in inside), sum(a * n for a, n in inside) if inside else None
        assert [total] == list(self.db.view("between")(low=1, high=2)), "the sums over a range"
        if self.random.random() < 0.02:
            for name in ("asked", "between", *self.definitions):
                self.db.view(name).verify()
        return done
