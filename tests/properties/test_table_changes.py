"""Tables changed in every way, beside plain dictionaries: what they hold, what views over them show, and what is there
when a directory is opened again."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import make_database
from tests.durability.directories import bag
from tests.example_counts import examples

Row = tuple[Any, ...]

NUMBERS = st.one_of(st.none(), st.integers(0, 3))
TEXTS = st.one_of(st.none(), st.sampled_from("ab"))
ROWS = st.lists(st.tuples(st.integers(0, 5), NUMBERS, TEXTS), max_size=5)
TABLES = st.sampled_from(["keyed", "bag"])
VIEWS = {
    "sums": "SELECT s, COUNT(*) AS c, SUM(n) AS t FROM {} GROUP BY s",
    "some": "SELECT k, n FROM {} WHERE n > 0",
    "pairs": "SELECT a.k, b.s FROM {} a JOIN {} b ON a.n = b.k",
}


class TableChanges(RuleBasedStateMachine):
    """A table with a primary key and one without, each beside the rows that it should hold."""

    backend = "native"

    @initialize()
    def begin(self) -> None:
        self.directory = tempfile.TemporaryDirectory() if self.backend == "durable" else None
        self.db = self.opened()
        self.width = 3
        self.held: dict[str, Counter[Row]] = {"keyed": Counter(), "bag": Counter()}
        for name in self.held:
            key = "k" if name == "keyed" else None
            self.db.create_table(name, {"k": "int", "n": "int", "s": "string"}, primary_key=key)

    def opened(self) -> Database:
        if self.directory is None:
            return make_database(self.backend)
        return Database(Path(self.directory.name) / "db", durability="async")

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
            if self.directory is not None:
                self.directory.cleanup()

    def wide(self, rows: list[Row]) -> list[Row]:
        return [(*row, 7)[: self.width] for row in rows]

    def change(self, table: str, after: Counter[Row], change: Any) -> None:
        """Makes a change, or finds it refused, where the oracle says that a key would be there twice."""
        after = +after
        if table == "keyed" and len({row[0] for row in after.elements()}) < after.total():
            with pytest.raises(DataError, match="two rows of table keyed"):
                change()
            return
        change()
        self.held[table] = after

    @rule(table=TABLES, rows=ROWS)
    def insert(self, table: str, rows: list[Row]) -> None:
        given = self.wide(rows)
        self.change(table, self.held[table] + Counter(given), lambda: self.db.insert(table, given))

    @rule(table=TABLES, data=st.data())
    def delete(self, table: str, data: st.DataObject) -> None:
        there = sorted(self.held[table].elements(), key=repr)
        gone = data.draw(st.lists(st.sampled_from(there), unique_by=id, max_size=3)) if there else []
        gone = list((Counter(gone) & self.held[table]).elements())
        self.change(table, self.held[table] - Counter(gone), lambda: self.db.delete(table, gone))

    @rule(rows=ROWS)
    def upsert(self, rows: list[Row]) -> None:
        given = self.wide(rows)
        by_key = {row[0]: row for row in self.held["keyed"]} | {row[0]: row for row in given}
        self.change("keyed", Counter(by_key.values()), lambda: self.db.upsert("keyed", given))

    @rule(table=TABLES, n=st.integers(0, 3), k=st.integers(0, 5))
    def update(self, table: str, n: int, k: int) -> None:
        after: Counter[Row] = Counter()
        for row, count in self.held[table].items():
            holds = row[0] == k or (row[1] is not None and row[1] > n)
            after[(row[0], None if row[1] is None else row[1] + 1, "u", *row[3:]) if holds else row] += count
        change = {"n": "n + 1", "s": "'u'"}
        self.change(table, after, lambda: self.db.update(table, set=change, where="k = :k OR n > :n", k=k, n=n))

    @rule(table=TABLES, k=st.integers(0, 5), shift=st.integers(-1, 1))
    def move_key(self, table: str, k: int, shift: int) -> None:
        after: Counter[Row] = Counter()
        for row, count in self.held[table].items():
            after[(row[0] + shift if row[0] >= k else row[0], *row[1:])] += count
        change = {"k": "k + :shift"}
        self.change(table, after, lambda: self.db.update(table, set=change, where="k >= :k", k=k, shift=shift))

    @rule(table=TABLES, k=st.integers(0, 5), n=NUMBERS)
    def delete_where(self, table: str, k: int, n: int | None) -> None:
        after = {row: count for row, count in self.held[table].items() if row[0] != k or row[1] != n or n is None}
        self.change(table, Counter(after), lambda: self.db.delete_where(table, "k = :k AND n = :n", k=k, n=n))

    @rule(table=TABLES, rows=ROWS)
    def replace(self, table: str, rows: list[Row]) -> None:
        given = self.wide(rows)
        self.change(table, Counter(given), lambda: self.db.replace(table, given))

    @rule(table=TABLES)
    def truncate(self, table: str) -> None:
        self.change(table, Counter(), lambda: self.db.truncate(table))

    @rule(rows=ROWS, upserted=ROWS, k=st.integers(0, 5))
    def batch(self, rows: list[Row], upserted: list[Row], k: int) -> None:
        first, later = self.wide(rows), self.wide(upserted)
        kept = [row for row in (self.held["keyed"] + Counter(first)).elements() if row[0] != k]
        by_key = {row[0]: row for row in kept} | {row[0]: row for row in later}

        def change() -> None:
            with self.db.batch() as batch:
                batch.insert("keyed", first)
                batch.delete_where("keyed", "k = :k", k=k)
                batch.upsert("keyed", later)

        twice = Counter(row[0] for row in kept if row[0] not in {row[0] for row in later})
        after = Counter(by_key.values())
        self.change("keyed", after + Counter(kept) if max(twice.values(), default=0) > 1 else after, change)

    @precondition(lambda self: self.width == 3)
    @rule(default=st.sampled_from([None, 7]))
    def add_column(self, default: int | None) -> None:
        for table, held in self.held.items():
            self.db.add_column(table, "d", "int", default)
            self.held[table] = Counter({(*row, default): count for row, count in held.items()})
        self.width = 4

    @precondition(lambda self: self.width == 4)
    @rule()
    def drop_column(self) -> None:
        for table, held in self.held.items():
            self.db.drop_column(table, "D")
            narrow: Counter[Row] = Counter()
            for row, count in held.items():
                narrow[row[:3]] += count
            self.held[table] = narrow
        self.width = 3

    @rule(table=TABLES, kind=st.sampled_from(sorted(VIEWS)))
    def view_comes_or_goes(self, table: str, kind: str) -> None:
        name = f"{kind}_{table}"
        if name in self.db.views:
            self.db.drop_view(name)
        else:
            self.db.create_view(name, VIEWS[kind].format(table, table))

    @precondition(lambda self: self.backend == "durable")
    @rule(checkpoint=st.booleans())
    def open_again(self, checkpoint: bool) -> None:
        if checkpoint:
            self.db.checkpoint()
        self.db.close()
        self.db = self.opened()

    @invariant()
    def is_what_the_oracle_says(self) -> None:
        for table, held in getattr(self, "held", {}).items():
            assert held == bag(self.db, table)
        for view in self.db.views if hasattr(self, "db") else ():
            self.db.view(view).verify()


class PureTableChanges(TableChanges):
    backend = "pure"


class DurableTableChanges(TableChanges):
    backend = "durable"


for machine in (TableChanges, PureTableChanges, DurableTableChanges):
    machine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=30)

TestTableChanges = pytest.mark.slow(TableChanges.TestCase)
TestPureTableChanges = pytest.mark.slow(PureTableChanges.TestCase)
TestDurableTableChanges = pytest.mark.slow(DurableTableChanges.TestCase)
