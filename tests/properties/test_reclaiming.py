"""Strings and large decimals that come and go, with codes taken back after each change, against plain Python.

Closures, views with heavy and light parts, views on views, followers, requests, iterators and batches that stay open,
refused batches and reopening, on both backends and in a directory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ivme.database import Database
from ivme.engine.runtime import open_read
from ivme.errors import DataError
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples
from tests.sweeping import sweep, sweeping_always

VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "loud": ("SELECT upper(a) AS u, COUNT(*) AS n, SUM(n) AS s FROM R GROUP BY upper(a)", {}),
    "louder": ("SELECT concat(u, '!') AS u, s FROM loud WHERE n > 1", {}),
    "ends": ("SELECT a, MIN(b) AS least, MAX(b) AS most, COUNT(DISTINCT b) AS d FROM R GROUP BY a", {}),
    "first": ("SELECT b, n FROM R WHERE a = 'v1' OR a = 'nobody'", {}),
    "asked": ("SELECT a, n FROM R WHERE b = :b", {}),
    "late": ("SELECT lower(b) AS l FROM R", {"strategy": "recompute"}),
    "joined": ("SELECT R.a, E.b FROM R JOIN E ON R.b = E.a", {"strategy": "skew", "epsilon": 0.5}),
    "cycles": (
        "Q(. | .) = E(A, B), E(B, C), E(C, A)",
        {"strategy": "skew", "rebalance": "deamortised", "epsilon": 0.5},
    ),
    "reach": ("Q(X, Y) = closure(E)", {}),
    "far": ("Q(X, Y) = closure(N)", {}),
    "sums": ("SELECT k, SUM(x) AS t FROM D GROUP BY k", {}),
    "by_sum": ("SELECT t, COUNT(*) AS n FROM sums GROUP BY t", {}),
}
NEEDS = {"louder": "loud", "by_sum": "sums"}
TABLES = {
    "R": {"a": "string", "b": "string", "n": "int"},
    "E": {"a": "string", "b": "string"},
    "D": {"k": "string", "x": "decimal(30,2)"},
    "N": {"a": "decimal(30,2)", "b": "decimal(32,2)"},
}


def reachable(edges: Counter[Any]) -> set[tuple[str, str]]:
    pairs = set(edges)
    while more := {(a, d) for a, b in pairs for c, d in edges if b == c} - pairs:
        pairs |= more
    return pairs


def expected_rows(name: str, held: dict[str, Counter[Any]]) -> Counter[Any]:
    """By plain Python, from the bags of rows."""
    rows, edges = list(held["R"].elements()), held["E"]
    groups: dict[str, list[Any]] = {}
    if name in ("loud", "louder"):
        for row in rows:
            groups.setdefault(row[0].upper(), []).append(row[2])
        loud = [(u, len(n), sum(n)) for u, n in groups.items()]
        return Counter(loud if name == "loud" else [(f"{u}!", s) for u, n, s in loud if n > 1])
    if name == "ends":
        for row in rows:
            groups.setdefault(row[0], []).append(row[1])
        return Counter((a, min(b), max(b), len(set(b))) for a, b in groups.items())
    if name in ("sums", "by_sum"):
        for k, x in held["D"].elements():
            groups.setdefault(k, []).append(x)
        sums = [(k, sum(x)) for k, x in groups.items()]
        return Counter(sums if name == "sums" else Counter(t for _, t in sums).items())
    if name == "cycles":
        number = sum(m * n * edges[c, a] for (a, b), m in edges.items() for (b2, c), n in edges.items() if b == b2)
        return Counter({(): number})
    others: dict[str, Callable[[], Iterable[Any]]] = {
        "first": lambda: [(b, n) for a, b, n in rows if a == "v1"],
        "late": lambda: [(b.lower(),) for _, b, _ in rows],
        "joined": lambda: [(a, d) for a, b, _ in rows for c, d in edges.elements() if b == c],
        "reach": lambda: reachable(edges),
        "far": lambda: reachable(held["N"]),
    }
    return Counter(others[name]())


class ReclaimingMachine(RuleBasedStateMachine):
    """The same steps on all databases; `held` are the tables."""

    @initialize(chosen=st.sets(st.sampled_from(sorted(VIEWS)), min_size=2, max_size=6))
    def start(self, chosen: set[str]) -> None:
        self.stack = ExitStack()
        self.stack.enter_context(sweeping_always())
        self.stack.enter_context(patch.object(open_read, "FIRST_ROWS", 2))
        self.path = Path(self.stack.enter_context(TemporaryDirectory())) / "db"
        self.databases = [*map(make_database, BACKENDS), Database(self.path, durability="async")]
        self.names = [name for name in VIEWS if name in chosen | {NEEDS[n] for n in chosen if n in NEEDS}]
        for db in self.databases:
            for table, schema in TABLES.items():
                db.create_table(table, schema)
            for name in self.names:
                text, options = VIEWS[name]
                db.create_view(name, text, **options)
        self.held: dict[str, Counter[Any]] = {table: Counter() for table in TABLES}
        self.fresh = 0
        self.open: list[tuple[Iterator[Any], list[Any], Counter[Any]]] = []
        self.feeds: list[tuple[Any, Counter[Any], str]] = []

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.databases[2].close()
            self.stack.close()

    def _value(self, data: Any) -> str:
        """A few values come again and again, others never."""
        if data.draw(st.booleans()):
            return f"v{data.draw(st.integers(0, 4))}"
        self.fresh += 1
        return f"Fresh {self.fresh}"

    def _large(self, data: Any) -> Decimal:
        self.fresh += data.draw(st.integers(0, 1))
        return Decimal((data.draw(st.integers(0, 1)) + 1) * 10**24 + self.fresh)

    def _row(self, data: Any, table: str) -> tuple[Any, ...]:
        if table == "N":
            return self._large(data), self._large(data)
        if table == "D":
            return self._value(data), self._large(data)
        row = (self._value(data), self._value(data))
        return row if table == "E" else (*row, data.draw(st.integers(0, 3)))

    def _apply(self, table: str, rows: list[Any], *, insert: bool, arrow: bool = False) -> None:
        for db in self.databases:
            (db.insert if insert else db.delete)(table, self._given(table, rows) if arrow else rows)
        self._note(table, rows, insert=insert)

    def _note(self, table: str, rows: list[Any], *, insert: bool) -> None:
        (self.held[table].update if insert else self.held[table].subtract)(rows)
        self.held[table] = +self.held[table]

    def _given(self, table: str, rows: list[Any]) -> pa.Table:
        kinds = {
            "string": pa.string(),
            "int": pa.int64(),
            "decimal(30,2)": pa.decimal128(30, 2),
            "decimal(32,2)": pa.decimal128(32, 2),
        }
        columns = [
            pa.array(c, kinds[kind]) for c, kind in zip(zip(*rows, strict=True), TABLES[table].values(), strict=True)
        ]
        return pa.table(columns, names=list(TABLES[table]))

    @rule(
        data=st.data(), table=st.sampled_from(sorted(TABLES)), size=st.sampled_from([1, 1, 3, 18]), arrow=st.booleans()
    )
    def insert(self, data: Any, table: str, size: int, arrow: bool) -> None:
        self._apply(table, [self._row(data, table) for _ in range(size)], insert=True, arrow=arrow)

    @rule(data=st.data(), table=st.sampled_from(sorted(TABLES)), all_of_them=st.booleans())
    def delete(self, data: Any, table: str, all_of_them: bool) -> None:
        rows = sorted(self.held[table].elements())
        if rows:
            number = len(rows) if all_of_them else data.draw(st.integers(1, min(3, len(rows))))
            self._apply(table, data.draw(st.permutations(rows))[:number], insert=False)

    @rule(data=st.data(), table=st.sampled_from(sorted(TABLES)), size=st.sampled_from([1, 18]))
    def refused(self, data: Any, table: str, size: int) -> None:
        rows, absent = [self._row(data, table) for _ in range(size)], self._row(data, table)
        absent = ("nowhere", *absent[1:])
        for db in self.databases:
            with pytest.raises(DataError), db.batch() as batch:  # noqa: PT012
                batch.insert(table, rows)
                batch.delete(table, [absent])

    @rule(
        data=st.data(),
        table=st.sampled_from(sorted(TABLES)),
        other=st.sampled_from(sorted(TABLES)),
        arrow=st.booleans(),
    )
    def batch_that_stays_open(self, data: Any, table: str, other: str, arrow: bool) -> None:
        mine, theirs = ([self._row(data, name) for _ in range(18)] for name in (table, other))
        for db in self.databases:
            with db.batch() as batch:
                batch.insert(table, self._given(table, mine) if arrow else mine)
                db.insert(other, theirs)
                db.delete(other, theirs[::2])
        self._note(table, mine, insert=True)
        self._note(other, theirs[1::2], insert=True)

    @precondition(lambda self: len(self.open) < 20)
    @rule(change=st.booleans(), table=st.sampled_from(sorted(TABLES)))
    def begin_to_read(self, change: bool, table: str) -> None:
        """One row of each view is taken; with `change`, a table is emptied before the others are."""
        for name in self.names:
            if name not in ("asked", "cycles"):
                for rows in [iter(db.view(name)) for db in self.databases]:
                    self.open.append((rows, list(islice(rows, 1)), expected_rows(name, self.held)))
        gone = list(self.held[table].elements())
        if change and gone:
            self._apply(table, gone, insert=False)

    @precondition(lambda self: bool(self.open))
    @rule()
    def read_to_the_end(self) -> None:
        for rows, first, expected in self.open:
            assert Counter([*first, *rows]) == expected
        self.open = []

    @precondition(lambda self: len(self.feeds) < 6)
    @rule(data=st.data())
    def follow(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.names))
        if name not in ("asked", "cycles"):
            for db in self.databases:
                self.feeds.append((db.view(name).changes(), expected_rows(name, self.held), name))

    @rule(snapshot=st.booleans())
    def reopen(self, snapshot: bool) -> None:
        self.read_to_the_end()
        self.feeds = [feed for feed in self.feeds if feed[0]._view.lock is not self.databases[2]._runtime.lock]
        if snapshot:
            self.databases[2].checkpoint()
        self.databases[2].close()
        self.databases[2] = Database(self.path, durability="async")

    @invariant()
    def every_view_is_what_plain_python_says(self) -> None:
        for name in getattr(self, "names", ()):
            for db in self.databases:
                view = db.view(name)
                if name == "asked":
                    for b in ("v1", "v2", f"Fresh {self.fresh}", "nowhere"):
                        wanted = Counter((a, n) for a, b2, n in self.held["R"].elements() if b == b2)
                        assert Counter(view(b=b)) == wanted
                elif name == "cycles":
                    assert sum(m for _, m in view.items()) == expected_rows(name, self.held)[()]
                else:
                    assert Counter(dict(view.items())) == expected_rows(name, self.held), name

    @invariant()
    def changes_add_up(self) -> None:
        for feed, total, name in getattr(self, "feeds", ()):
            for change in feed:
                total.update(change)
            assert {row: n for row, n in total.items() if n} == expected_rows(name, self.held)

    @invariant()
    def only_what_is_held_has_codes(self) -> None:
        if hasattr(self, "held") and not any(self.held.values()) and not self.open:
            for db in self.databases:
                sweep(db)
                assert sum(map(len, db._runtime.domains.dictionaries().values())) <= 1, "the constant of a view"


TestReclaiming = ReclaimingMachine.TestCase
TestReclaiming.settings = settings(
    max_examples=int(os.environ.get("IVME_MACHINE_EXAMPLES", examples(15))),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
