"""Sums and averages over random inserts and deletes, of floats with wild exponents and integers near 2^63.

What is expected comes from `math.fsum`, or from fractions where a multiplicity is large: from the rows that are there,
and never from what was there before. Each database is opened again now and then, and shards are in this process.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import make_database
from tests.example_counts import examples
from tests.sharded_databases import local_database

QUICK = settings(
    max_examples=examples(15), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)

LARGEST = 2**63 - 1
FLOATS = st.one_of(
    st.floats(allow_nan=False),
    st.sampled_from([1e17, 1.0, -1e17, 5e-324, -5e-324, 2.0**-1060, 1.7976931348623157e308, math.inf, -math.inf]),
    st.floats(-1e3, 1e3).map(lambda value: round(value, 2)),
)
INTS = st.one_of(st.integers(-5, 5), st.sampled_from([10**18, -(10**18), LARGEST, -LARGEST, 2**62]))
ROWS = st.tuples(st.integers(0, 2), FLOATS, INTS)
WEIGHTS = st.one_of(st.just(1), st.integers(1, 3), st.just(2**30))

VIEWS = {
    "groups": "SELECT g, SUM(x) AS s, AVG(x) AS m, AVG(i) AS n, COUNT(*) AS c FROM R GROUP BY g",
    "joined": "SELECT h, SUM(x) AS s, AVG(i) AS n FROM R JOIN S ON R.g = S.g GROUP BY h",
    "product": "SELECT R.g AS g, h, SUM(x) AS s FROM R, S GROUP BY R.g, h",
    "total": "SELECT SUM(x) AS s, AVG(x) AS m FROM R",
}


def rounded_sum(terms: list[tuple[float, int]]) -> float | None:
    """The nearest float to the sum of values with multiplicities."""
    if not terms:
        return None
    ends = {value for value, _ in terms if math.isinf(value)}
    if ends:
        return math.nan if len(ends) == 2 else ends.pop()
    if sum(times for _, times in terms) < 100:
        try:
            return math.fsum(value for value, times in terms for _ in range(times))
        except OverflowError:
            pass
    total = sum(Fraction(value) * times for value, times in terms)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def expected_rows(view: str, r: Counter[Any], s: Counter[Any]) -> list[str]:
    """The rows of a view, as text: NaN equals itself there."""
    groups: dict[Any, list[tuple[float, int, int]]] = {}
    for (g, x, i), times in r.items():
        if view == "groups":
            groups.setdefault((g,), []).append((x, i, times))
        elif view == "total":
            groups.setdefault((), []).append((x, i, times))
        else:
            for (other, h), more in s.items():
                if view == "product" or other == g:
                    groups.setdefault((g, h) if view == "product" else (h,), []).append((x, i, times * more))
    if view == "total":
        groups.setdefault((), [])
    rows = []
    for key, terms in groups.items():
        size = sum(times for *_, times in terms)
        total = rounded_sum([(x, times) for x, _, times in terms])
        mean = None if total is None else total / size + 0.0  # columns hold no -0.0
        whole = sum(i * times for _, i, times in terms) / size if size else None
        shown = {"groups": (total, mean, whole, size), "joined": (total, whole), "product": (total,)}
        rows.append((*key, *shown.get(view, (total, mean))))
    return sorted(map(repr, rows))


class Sums(RuleBasedStateMachine):
    """A database in a directory, or on the plain-Python backend."""

    backend = "durable"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.r: Counter[Any] = Counter()
        self.s: Counter[Any] = Counter()
        self.db: Any = None

    @initialize()
    def make(self) -> None:
        self.db = self.opened()
        self.db.create_table("R", {"g": "int", "x": "float", "i": "int"})
        self.db.create_table("S", {"g": "int", "h": "int"})
        for name, text in VIEWS.items():
            self.db.create_view(name, text)

    def opened(self) -> Any:
        if self.backend != "durable":
            return make_database(self.backend)
        return Database(Path(self.folder.name) / "db", durability="async")

    @rule(rows=st.lists(ROWS, min_size=1, max_size=6), weight=WEIGHTS)
    def insert(self, rows: list[Any], weight: int) -> None:
        self.db.apply("R", rows, [weight] * len(rows))
        for row in rows:
            self.r[row] += weight

    @rule(row=st.tuples(st.integers(0, 2), st.integers(0, 1)))
    def join(self, row: Any) -> None:
        gone = self.s[row] > 1
        self.db.apply("S", [row], [-1 if gone else 1])
        self.s[row] += -1 if gone else 1

    @precondition(lambda self: self.r)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        rows = data.draw(st.lists(st.sampled_from(sorted(self.r, key=repr)), min_size=1, max_size=4, unique=True))
        self.db.apply("R", rows, [-self.r[row] for row in rows])
        for row in rows:
            del self.r[row]

    @precondition(lambda self: self.backend == "durable")
    @rule(checkpoint=st.booleans())
    def reopen(self, checkpoint: bool) -> None:
        if checkpoint:
            self.db.checkpoint()
        self.db.close()
        self.db = self.opened()

    @invariant()
    def every_view_is_the_sum_of_its_rows(self) -> None:
        for view in VIEWS if self.db is not None else ():
            made = self.db.view(view)
            expected = expected_rows(view, self.r, self.s)
            assert expected == sorted(map(repr, made))
            table = made.to_arrow()
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            assert expected == sorted(map(repr, rows))

    def teardown(self) -> None:
        if self.db is not None:
            self.db.view("groups").verify()
            self.db.view("joined").verify()
            self.db.close()
        self.folder.cleanup()


class SumsInPython(Sums):
    backend = "pure"


TestSums = Sums.TestCase
TestSums.settings = QUICK
TestSumsInPython = SumsInPython.TestCase
TestSumsInPython.settings = QUICK


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=30), st.sampled_from([1, 2, 3]))
def test_sums_over_shards_are_those_of_all_rows(steps: list[tuple[Any, bool]], shards: int) -> None:
    there: Counter[Any] = Counter()
    joined: Counter[Any] = Counter({(0, 0): 1, (1, 1): 2, (2, 0): 1})
    with tempfile.TemporaryDirectory() as folder:
        database = local_database(Path(folder), shards)
        database.create_table("R", {"g": "int", "x": "float", "i": "int"})
        database.create_table("S", {"g": "int", "h": "int"})
        database.apply("S", list(joined), list(joined.values()))
        views = {name: database.create_view(name, text) for name, text in VIEWS.items() if name != "product"}
        follow = views["joined"].changes()
        for number, (row, again) in enumerate(steps):
            database.insert("R", [row])
            there[row] += 1
            if not again:
                database.delete("R", [row])
                there[row] -= 1
            if number % 7 == 6 or number == len(steps) - 1:
                for name, view in views.items():
                    assert expected_rows(name, +there, joined) == sorted(map(repr, view))
        rows: Counter[str] = Counter()
        for change in follow:
            rows.update({repr(row): times for row, times in change.items()})
        assert expected_rows("joined", +there, joined) == sorted((+rows).elements())
        for view in views.values():
            view.verify()


def test_parts_beyond_the_type_of_a_sum_add_up_where_the_whole_fits(tmp_path: Path) -> None:
    database = local_database(tmp_path, 3)
    database.create_table("R", {"n": "int", "x": "int", "d": "decimal(38, 0)"})
    view = database.create_view("v", "SELECT SUM(x) AS s, SUM(d) AS t, AVG(x) AS m FROM R")
    with pytest.raises(DataError, match=r"column . of view v does not fit"):
        database.insert("R", [(n, 10**18, 9 * 10**37) for n in range(100)])
    database.insert("R", [(n, sign * 10**18, sign * 9 * 10**37) for n in range(100) for sign in (1, -1)])
    database.insert("R", [(0, 5, 7)])
    assert [(5, 7)] == [row[:2] for row in view]
    view.verify()
    with pytest.raises(DataError, match=r"column . of view v does not fit"):
        database.insert("R", [(0, LARGEST, 0)])
    assert [(5, 7)] == [row[:2] for row in view]
