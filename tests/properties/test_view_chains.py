"""Rows that pass views on views in one call of the kernel: everything is as on the path through Python."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from ivme.changes import Changes
from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.view_chain import open_chained
from ivme.errors import DataError
from tests.example_counts import some_of

TABLES: dict[str, dict[str, str]] = {
    "o": {"k": "int", "p": "string", "d": "date"},
    "l": {"k": "int", "q": "int", "m": "string", "price": "decimal(12, 2)", "w": "float"},
    "s": {"m": "string", "r": "int"},
}
KEYS = {"o": ["k"], "l": None, "s": None}

VIEWS = {
    "left_sums": """
        SELECT m, SUM(CASE WHEN p = 'a' THEN 1 ELSE 0 END) AS a, COUNT(p) AS there, SUM(q) AS q, AVG(price) AS mean
        FROM l LEFT JOIN o ON o.k = l.k GROUP BY m""",
    "left_rows": "SELECT l.k, q, p FROM l LEFT JOIN o ON o.k = l.k WHERE q > 2",
    "full": "SELECT o.k, s.r, COUNT(*) AS n FROM o FULL JOIN s ON o.p = s.m GROUP BY o.k, s.r",
    "large": """
        SELECT p, SUM(q) AS q FROM o JOIN l ON o.k = l.k
        WHERE o.k IN (SELECT k FROM l GROUP BY k HAVING SUM(q) > 12) GROUP BY p""",
    "without": "SELECT k, p FROM o WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.k = o.k AND l.q > 6)",
    "per_key": "SELECT k, SUM(q) AS q, AVG(w) AS w, MAX(price) AS most, COUNT(*) AS n FROM l GROUP BY k",
    "of_sums": "SELECT q, COUNT(*) AS keys, SUM(n) AS n FROM per_key WHERE w > 2 GROUP BY q",
    "most": "SELECT m, price FROM l WHERE price = (SELECT MAX(price) FROM l)",
    "totals": "SELECT COUNT(*) AS n, SUM(r) AS r FROM s",
    "of_totals": "SELECT n + 1 AS n, r FROM totals",
    "all_names": "SELECT UPPER(p) AS name FROM o UNION ALL SELECT CONCAT(m, '!') FROM l UNION ALL SELECT m FROM s",
    "kinds": "SELECT DISTINCT p FROM o",
    "of_kinds": "SELECT COUNT(*) AS n FROM kinds",
    "late": "SELECT p, COUNT(*) AS n FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.k = o.k AND l.q > 4) GROUP BY p",
    "names": "SELECT name, COUNT(*) AS n FROM all_names GROUP BY name",
}
DAY = date(2026, 1, 1)


def row_of(rng: random.Random, table: str) -> tuple[Any, ...]:
    if table == "o":
        return rng.randrange(12), rng.choice(["a", "b", f"p{rng.randrange(40)}", None]), DAY
    name = rng.choice(["a", "x", "y", f"m{rng.randrange(30)}", None])
    if table == "s":
        return name, rng.choice([1, 2, 2**40, None])
    price = rng.choice([None, Decimal(rng.randrange(10**5)) / 100])
    return rng.randrange(12), rng.randrange(9), name, price, rng.choice([None, 0.1, 1e20, -1e20, 3.5])


WHOLE = ("per_key", "of_sums", "kinds", "of_kinds", "totals", "of_totals", "all_names", "names")
"""Those without heavy and light parts: the kernel takes record batches through them, too."""

UNCHAINED: list[Catalog] = []


@pytest.fixture(autouse=True)
def _some_are_unchained() -> Iterator[None]:
    def chosen(catalog: Catalog, name: str) -> None:
        if not any(catalog is each for each in UNCHAINED):
            open_chained(catalog, name)

    with patch("ivme.engine.runtime.runtime.open_chained", chosen):
        yield
    UNCHAINED.clear()


@contextmanager
def opened(path: Path | None, views: Collection[str], *, chained: bool) -> Iterator[Database]:
    with Database() if path is None else Database(path, durability="async") as db:
        if not chained:
            UNCHAINED.append(db._runtime.catalog)
        for table, columns in TABLES.items():
            db.create_table(table, columns, primary_key=KEYS[table])
        for name in views:
            db.create_view(name, VIEWS[name])
        yield db


def contents(db: Database) -> dict[str, Counter[Any]]:
    return {view.name: Counter(map(repr, view)) for view in map(db.view, db.views)}


def told(feed: Changes) -> list[Counter[str]]:
    return [Counter({repr(row): weight for row, weight in delta.items()}) for delta in feed]


def change(db: Database, form: str, steps: list[tuple[str, int, list[tuple[Any, ...]]]]) -> str | None:
    """Makes changes in one of the forms that the kernel takes; the message if they are refused."""
    try:
        if form == "rows":
            ((table, sign, rows),) = steps
            (db.insert if sign > 0 else db.delete)(table, rows)
            return None
        with db.batch() as batch:
            for table, sign, rows in steps:
                given: Any = rows if form == "lists" else _arrow(db, table, rows)
                (batch.insert if sign > 0 else batch.delete)(table, given)
    except DataError as error:
        return str(error)
    return None


def _arrow(db: Database, table: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = db.table(table).to_arrow().schema
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema)


class Streams:
    """Changes of rows that are there, or not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}

    def steps(self, form: str) -> list[tuple[str, int, list[tuple[Any, ...]]]]:
        tables = self.rng.sample(list(TABLES), 1 if form == "rows" else self.rng.randrange(1, 4))
        return [self._step(table, 1 if form == "rows" and self.rng.random() < 0.6 else 5) for table in tables]

    def _step(self, table: str, most: int) -> tuple[str, int, list[tuple[Any, ...]]]:
        number, there = self.rng.randrange(1, most + 1), self.rows[table]
        if len(there) > 3 and self.rng.random() < 0.45:
            return table, -1, self.rng.sample(there, min(number, len(there)))
        if self.rng.random() < 0.05:
            return table, -1, [row_of(self.rng, table)]
        return table, 1, [row_of(self.rng, table) for _ in range(number)]

    def keep(self, steps: list[tuple[str, int, list[tuple[Any, ...]]]]) -> None:
        for table, sign, rows in steps:
            for row in rows:
                self.rows[table].append(row) if sign > 0 else self.rows[table].remove(row)


def check(seed: int, changes: int, path: Path | None = None) -> None:
    rng = random.Random(seed)
    streams = Streams(rng)
    views = WHOLE if seed % 2 else VIEWS
    with opened(path, views, chained=True) as db, opened(None, views, chained=False) as plain:
        taken = _count_taken(db)
        pairs: list[tuple[Changes, Changes]] = []
        for number in range(changes):
            if number % 20 == 0:
                for feed in itertools.chain.from_iterable(pairs):
                    feed.close()
                chosen = rng.choices(list(views), k=rng.randrange(4))  # some twice
                pairs = [(db.view(name).changes(), plain.view(name).changes()) for name in chosen]
            form = rng.choice(["rows", "rows", "lists", "arrow"])
            steps = streams.steps(form)
            said = change(plain, form, steps)
            assert change(db, form, steps) == said, number
            if said is None:
                streams.keep(steps)
            assert contents(db) == contents(plain), (number, form, steps)
            for feed, other in pairs:
                assert told(feed) == told(other), (number, form, steps)
            if number % 25 == 24:
                for name in views:
                    db.view(name).verify()
        backend = db._runtime.backend
        assert isinstance(backend, NativeBackend)
        backend.kernel.verify()
        assert taken["rows"] > changes / 8, "the kernel took few of the rows"
        if views is WHOLE:
            assert taken["batches"] > changes / 60, "the kernel took few of the batches"
    if path is not None:
        with Database(path) as again, opened(None, views, chained=False) as plain:
            for table, rows in streams.rows.items():
                plain.insert(table, rows)
            assert contents(again) == contents(plain)


def _count_taken(db: Database) -> Counter[str]:
    """How often the kernel took changes alone."""
    taken: Counter[str] = Counter()
    take_rows, gate = db._take_rows, db._runtime.catalog.row_gate
    assert gate is not None

    def counted(table: Any, rows: Any, weight: int) -> bool:
        done = take_rows(table, rows, weight)
        taken["rows"] += done
        return done

    class Gate:
        def __getattr__(self, name: str) -> Any:
            return getattr(gate, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(gate, name, value)

        def apply_encoded(self, *given: Any) -> bool:
            done = bool(self.__getattr__("apply_encoded")(*given))
            taken["batches"] += done
            return done

    db._take_rows = counted
    db._runtime.catalog.row_gate = Gate()  # type: ignore[assignment]
    return taken


@pytest.mark.parametrize("seed", some_of(range(3), 0))
def test_chains_change_nothing(seed: int) -> None:
    check(seed, 60)


def test_chains_change_nothing_in_a_directory(tmp_path: Path) -> None:
    check(50, 40, tmp_path / "db")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 40))
def test_chains_change_nothing_at_length(seed: int) -> None:
    check(seed, 300)


def test_followers_are_told_by_the_kernel_once_and_in_order() -> None:
    with opened(None, ("per_key", "kinds"), chained=True) as db:
        feeds = [db.view("per_key").changes() for _ in range(2)]
        taken = _count_taken(db)
        for number in range(5):
            db.insert("l", [(number % 2, 1, "x", None, None)])
        assert taken["rows"] >= 4
        heard = [[sorted(delta.items(), key=repr) for delta in feed] for feed in feeds]
        assert len(heard[0]) == 5
        assert heard[0] == heard[1]
        feeds[0].close()
        db.insert("l", [(7, 1, "x", None, None)])
        assert not list(feeds[0])
        assert [dict(delta) for delta in feeds[1]] == [{(7, 1, None, None, 1): 1}]


def test_rows_that_come_and_go_in_a_run_are_no_change() -> None:
    with Database() as db:
        db.create_table("r", {"a": "int"})
        db.create_view("g", "SELECT a, COUNT(*) AS n FROM r GROUP BY a")
        view = db.create_view("v", "SELECT n > 0 AS big FROM g")
        db.insert("r", [(1,), (2,)])
        feed = view.changes()
        db.insert("r", [(1,), (2,)])
        db.insert("r", pa.record_batch({"a": [1, 2, 3, 4, 5, 6]}))
        db.insert("r", pa.record_batch({"a": [1, 2, 3, 4, 5, 6]}))
        assert [dict(delta) for delta in feed] == [{(True,): 4}]


def test_a_change_that_nobody_can_be_told_of_is_not_made() -> None:
    class FullError(Exception):
        pass

    def fail(*_: object) -> None:
        raise FullError

    with opened(None, ("per_key",), chained=True) as db:
        feed = db.view("per_key").changes()
        db.insert("l", [(1, 1, "x", None, None)])
        list(feed)
        for rows in ([(1, 1, "x", None, None)], _arrow(db, "l", [(1, 1, "x", None, None)])):
            with patch("ivme.engine.runtime.view_chain.deliveries", fail), pytest.raises(FullError):
                db.insert("l", rows)
            assert list(db.view("per_key")) == [(1, 1, None, None, 1)]
            assert not list(feed)
        db.view("per_key").verify()
        db.insert("l", [(1, 1, "x", None, None)])
        assert [len(delta) for delta in feed] == [2]


def test_what_somebody_follows_is_told_to_them() -> None:
    with opened(None, VIEWS, chained=True) as db:
        db.insert("l", [(1, 5, "x", None, None)])
        db.insert("l", [(2, 5, "x", None, None)])
        changes = db.view("per_key").changes()
        db.insert("l", [(1, 4, "x", None, None)])
        db.insert("l", [(1, 1, "x", None, None)])
        assert [sorted(delta.items(), key=repr) for delta in changes] == [
            [((1, 5, None, None, 1), -1), ((1, 9, None, None, 2), 1)],
            [((1, 10, None, None, 3), 1), ((1, 9, None, None, 2), -1)],
        ]
        for name in VIEWS:
            db.view(name).verify()
