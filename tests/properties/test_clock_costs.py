"""What views with NOW() cost, counted in operations of the kernel: the clock is one row, and a step pays for the rows
that enter and leave. The bounds that `explain` states are neither below what is counted nor far above it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import log

import pytest

from ivme.database import Database

_WEEK = "WHERE o.ts > NOW() - INTERVAL '7' DAY"
VIEWS = {
    "a top 10 of an outer join": "SELECT o.product, p.title, SUM(o.v) AS r FROM o LEFT JOIN p ON p.sku = o.product "
    f"{_WEEK} GROUP BY o.product, p.title ORDER BY r DESC LIMIT 10",
    "groups of a table": f"SELECT o.product, SUM(o.v) AS r FROM o {_WEEK} GROUP BY o.product",
    "rows between two moments": "SELECT o.id FROM o WHERE o.ts > NOW() - INTERVAL '7' DAY AND o.ts <= NOW()",
}
_SIZES = (500, 4000)
_START = datetime(2026, 1, 1)
_MONTH = timedelta(days=30)


class World:
    """Orders that are spread over a month, whose last moment is now, and a view of them."""

    def __init__(self, query: str, size: int) -> None:
        self.db = Database()
        self.db.create_table("p", {"sku": "int", "title": "string"}, primary_key="sku")
        columns = {"id": "int", "product": "int", "v": "int", "ts": "timestamp"}
        self.db.create_table("o", columns, primary_key="id")
        self.db.insert("p", [(n, str(n)) for n in range(50)])
        self.db.insert("o", [(n, n % 50, n % 7, _START + _MONTH * (n / size)) for n in range(size)])
        self.view = self.db.create_view("v", query)
        self.now = _START + _MONTH
        self.db.advance(self.now)
        self.size = size

    @property
    def operations(self) -> int:
        counted: int = self.view.stats()["operations"]
        return counted

    def changed_row(self) -> float:
        """The operations of a row that comes and goes, on the average."""
        before = self.operations
        for n in range(20):
            rows = [(self.size + n, n, 1, self.now - timedelta(hours=n))]
            self.db.insert("o", rows)
            self.db.delete("o", rows)
        return (self.operations - before) / 40

    def step(self, span: timedelta) -> int:
        """The operations of a step of the clock."""
        before = self.operations
        self.now += span
        self.db.advance(self.now)
        return self.operations - before


def _slope(counts: list[float]) -> float:
    return log(counts[-1] / counts[0]) / log(_SIZES[-1] / _SIZES[0])


@pytest.mark.parametrize("name", VIEWS)
def test_a_row_costs_look_ups_and_a_step_of_the_clock_pays_for_the_rows_that_leave(name: str) -> None:
    worlds = [World(VIEWS[name], size) for size in _SIZES]
    rows = [world.changed_row() for world in worlds]
    few = [float(world.step(_MONTH / world.size * 3)) for world in worlds]
    many = [float(world.step(_MONTH)) for world in worlds]
    updates = {table: str(each) for table, each in worlds[0].view.explain().updates.items()}

    assert _slope(rows) < 0.1
    assert _slope(few) < 0.1, "three rows leave, whatever the size"
    assert (0.9 if name == "rows between two moments" else 0.3) < _slope(many) < 1.1, "all rows leave"
    assert updates["o"] == "O(log N)"
    assert updates["ivme_clock"] == "O(N log N)"


def test_the_verdict_tells_steps_of_the_clock_from_changes_of_rows() -> None:
    told = World(VIEWS["a top 10 of an outer join"], 1).view.explain().verdict

    assert "A change of o or p costs look-ups whose number grows with log N; a step of the clock costs " in told
    assert "if all rows enter or leave at once" in told


def test_a_top_10_of_an_outer_join_by_a_key_costs_look_ups_for_a_row_of_either_table() -> None:
    db = World(VIEWS["groups of a table"], 1).db
    query = VIEWS["a top 10 of an outer join"].replace(_WEEK, "")

    assert {name: str(each) for name, each in db.create_view("all", query).explain().updates.items()} == {
        "o": "O(log N)",
        "p": "O(log N)",
    }
