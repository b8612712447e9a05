"""Strings of columns that no view reads are stored without being compared (decision 0590).

Whatever comes, goes and is refused, and whoever begins to read such a column, all rows are as a counter of rows has
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import DataError, IvmeError
from tests.example_counts import examples

SCHEMA = {"id": "int", "kind": "string", "note": "string", "raw": "binary"}
ARROW = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("note", pa.string()), ("raw", pa.binary())])
Row = tuple[int, str | None, str | None, bytes | None]

VIEWS = {
    "by_note": "SELECT note, COUNT(*) AS n FROM t GROUP BY note",
    "by_kind": "SELECT kind, COUNT(*) AS n FROM t GROUP BY kind",
    "same": "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.note = b.note WHERE a.id < b.id AND a.id < 9",
    "kinds": "SELECT kind AS x FROM t UNION SELECT 'B' AS x FROM t WHERE id > 500",
    "next": "SELECT a.id, COUNT(b.id) AS n FROM t a LEFT JOIN t b ON a.id = b.id + 1 GROUP BY a.id",
    "raws": "SELECT raw, MIN(note) AS least FROM t GROUP BY raw",
}
FEW = ["", "a", "schön", "x" * 300, None]


def batch_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA, row, strict=True)) for row in rows], schema=ARROW)


class LooseStrings(RuleBasedStateMachine):
    """A table with a key or without; record batches of so many rows that their strings may be loose."""

    @initialize(keyed=st.booleans())
    def make(self, keyed: bool) -> None:
        self.keyed = keyed
        self.db = Database()
        self.db.create_table("t", SCHEMA, primary_key="id" if keyed else None)
        self.db.create_view("all_ids", "SELECT id FROM t WHERE id % 7 = 0")
        self.rows: Counter[Row] = Counter()
        self.made = 0
        self.db.insert("t", batch_of([self.row(0.9, at) for at in range(1000)]))  # opens the kernel's path
        self.rows.update(self.last)
        self.db.truncate("t")
        self.rows.clear()

    def row(self, fresh: float, at: int) -> Row:
        """So many of the notes are new, the others one of a few."""
        if not at:
            self.last: list[Row] = []
        self.made += 1
        is_new = self.made * 7919 % 100 < fresh * 100
        text = f"note {self.made}" if is_new else FEW[self.made % len(FEW)]
        kind = ("A", "B", None, f"kind {self.made % 90}")[self.made % 4]
        row = (self.made, kind, text, None if text is None else text.encode()[: self.made % 12])
        self.last.append(row)
        return row

    def some(self, at: int) -> list[Row]:
        return sorted(self.rows, key=repr)[at % 5 :: 2 + at % 3]

    @rule(n=st.sampled_from([1, 63, 64, 200]), fresh=st.sampled_from([0.0, 0.4, 0.9, 1.0]), twice=st.booleans())
    def insert(self, n: int, fresh: float, twice: bool) -> None:
        rows = [self.row(fresh, at) for at in range(n)]
        if twice and not self.keyed:
            rows += rows
        self.db.insert("t", batch_of(rows))
        self.rows.update(rows)

    @rule(at=st.integers(0, 9))
    def insert_again(self, at: int) -> None:
        """Rows that are there: a second time, or refused by their keys."""
        rows = self.some(at)
        if rows and self.keyed:
            with pytest.raises(IvmeError):
                self.db.insert("t", batch_of([*(self.row(1.0, i) for i in range(70)), *rows]))
        elif rows:
            self.db.insert("t", batch_of(rows))
            self.rows.update(rows)

    @rule(at=st.integers(0, 9), form=st.sampled_from(["arrow", "rows", "one"]))
    def delete(self, at: int, form: str) -> None:
        rows = self.some(at)
        if form == "one":
            for row in rows[:3]:
                self.db.delete("t", [row])
            rows = rows[:3]
        elif rows:
            self.db.delete("t", batch_of(rows) if form == "arrow" else rows)
        self.rows.subtract(rows)
        self.rows += Counter()

    @rule(at=st.integers(0, 9), form=st.sampled_from(["arrow", "rows"]))
    def delete_what_is_not_there(self, at: int, form: str) -> None:
        """A row that differs in a string that no view reads."""
        rows = self.some(at)[:100]
        if not rows:
            return
        number, kind, note, raw = rows[-1]
        rows[-1] = (number, kind, f"{note}!", raw)
        with pytest.raises(DataError):
            self.db.delete("t", batch_of(rows) if form == "arrow" else rows)

    @rule(at=st.integers(0, 9))
    def move(self, at: int) -> None:
        """Rows that go and come back within a batch, with others."""
        rows = self.some(at)
        with self.db.batch() as batch:
            for row in rows:
                batch.delete("t", [row])
            batch.insert("t", batch_of([*rows, *(self.row(1.0, i) for i in range(80))]))
        self.rows.update(self.last)

    @rule(at=st.integers(0, 9))
    def upsert(self, at: int) -> None:
        if not self.keyed:
            return
        gone = self.some(at)[:90]
        come = [(row[0], row[1], f"again {self.made}", row[3]) for row in gone]
        self.db.upsert("t", batch_of(come))
        self.rows.subtract(gone)
        self.rows += Counter(come)

    @rule(note=st.sampled_from(["a", "schön"]))
    def delete_where(self, note: str) -> None:
        self.db.delete_where("t", "note = :note", note=note)
        self.rows = Counter({row: n for row, n in self.rows.items() if row[2] != note})

    @rule(view=st.sampled_from(sorted(VIEWS)))
    def read_or_not(self, view: str) -> None:
        if view in self.db.views:
            self.db.drop_view(view)
        else:
            self.db.create_view(view, VIEWS[view])

    @rule()
    def sweep(self) -> None:
        catalog = self.db._runtime.catalog
        with catalog.lock:
            reclaim(catalog, now=True)

    @invariant()
    def rows_are_there(self) -> None:
        assert self.rows == Counter(self.db.table("t"))
        for view in self.db.views:
            self.db.view(view).verify()
        backend = self.db._runtime.backend
        assert isinstance(backend, NativeBackend)
        backend.kernel.verify()

    @rule()
    def find(self) -> None:
        """A look for a row makes the hash over whole rows, where there is no key."""
        state = self.db._runtime.catalog.tables["t"]
        for row in list(self.rows)[:5]:
            codes = [domain.encode_value(value) for domain, value in zip(state.domains, row, strict=True)]
            assert self.rows[row] == self.db._runtime.backend.get(state.rows, codes)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()


TestLooseStrings = LooseStrings.TestCase
TestLooseStrings.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)


@pytest.fixture
def notes(tmp_path: Any) -> Iterator[Database]:
    with Database(tmp_path / "notes", durability="async") as db:
        db.create_table("t", SCHEMA, primary_key="id")
        db.create_view("ids", "SELECT COUNT(*) AS n FROM t")
        for start in (0, 2000, 4000):
            rows = [(number, "A", f"note {number}", b"%d" % number) for number in range(start, start + 2000)]
            db.insert("t", batch_of(rows))
        yield db


def loose(db: Database) -> int:
    """How many strings are loose."""
    backend = db._runtime.backend
    assert isinstance(backend, NativeBackend)
    (dictionary,) = (each for each in db._runtime.domains.dictionaries().values() if each.value(each.base) == "A")
    return len(dictionary) - int(dictionary.native.present().sum())  # type: ignore[attr-defined]


def test_strings_that_are_new_and_unread_are_loose_until_a_view_reads_them(notes: Database) -> None:
    assert 3000 < loose(notes)
    list(notes.table("t"))
    assert 3000 < loose(notes), "rows that are only shown are not compared"
    notes.create_view("by_note", VIEWS["by_note"])
    assert 0 == loose(notes)
    assert 6000 == len(notes.view("by_note"))


def test_a_directory_with_loose_strings_is_opened_again(notes: Database, tmp_path: Any) -> None:
    notes.create_view("kinds", "SELECT kind, MAX(id) AS n FROM t GROUP BY kind")
    before = Counter(notes.table("t"))
    assert 3000 < loose(notes)
    notes.checkpoint()
    notes.delete("t", batch_of([(7, "A", "note 7", b"7")]))
    notes.close()
    with Database(tmp_path / "notes") as db:
        assert before - Counter([(7, "A", "note 7", b"7")]) == Counter(db.table("t"))
        assert [("A", 5999)] == list(db.view("kinds"))
        db.delete("t", batch_of([(8, "A", "note 8", b"8")]))
        db.create_view("by_note", VIEWS["by_note"])
        assert 5998 == len(db.view("by_note"))


def test_few_different_strings_are_entered_at_once() -> None:
    db = Database()
    db.create_table("t", SCHEMA, primary_key="id")
    for start in range(0, 20_000, 2000):
        db.insert("t", batch_of([(number, "A", f"city {number % 300}", b"") for number in range(start, start + 2000)]))
    assert 4000 > loose(db), "once a sixteenth of the rows has shown the values, they are looked up"
    db.close()
