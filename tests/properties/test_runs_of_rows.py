"""Rows that a join makes in runs, and what is summed over them: as if each came alone."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.errors import DataError
from tests.example_counts import some_of

VIEWS = {
    "v": "SELECT R.a, R.b, S.c, S.d, S.f, S.t FROM R JOIN S ON R.b = S.b",
    "by_key": "SELECT b, COUNT(*) AS n, SUM(c) AS s, COUNT(c) AS k FROM v GROUP BY b",
    "by_both": "SELECT a, b, SUM(c) AS s, SUM(d) AS d, AVG(c) AS m FROM v GROUP BY a, b",
    "floats": "SELECT a, SUM(f) AS f, SUM(c) AS s, MIN(t) AS t FROM v GROUP BY a",
    "squares": "SELECT b, STDDEV(c % 1000) AS s, COUNT(*) AS n FROM v GROUP BY b",
    "all_rows": "SELECT COUNT(*) AS n, SUM(c) AS s FROM v",
    "plain": "SELECT b, COUNT(*) AS n FROM v GROUP BY b",
    "shared": "SELECT v.b, SUM(v.c % 1000) AS s, COUNT(*) AS n FROM v JOIN R ON v.a = R.a GROUP BY v.b",
}
SCHEMAS = {
    "R": pa.schema([("a", pa.int64()), ("b", pa.int64())]),
    "S": pa.schema(
        [("b", pa.int64()), ("c", pa.int64()), ("d", pa.decimal128(12, 2)), ("f", pa.float64()), ("t", pa.string())]
    ),
}
DECLARED = {
    "R": {"a": "int", "b": "int"},
    "S": {"b": "int", "c": "int", "d": "decimal(12, 2)", "f": "float", "t": "string"},
}


def a_row(rng: random.Random, table: str) -> tuple[Any, ...]:
    if table == "R":
        return rng.randrange(4), rng.randrange(5)
    number = rng.choice([None, 1, -7, 2**56, -(2**56), rng.randrange(1000)])
    price = rng.choice([None, Decimal(rng.randrange(-(10**8), 10**8)) / 100])
    return rng.randrange(5), number, price, rng.choice([None, 0.1, -1e18, 3.5]), rng.choice([None, "x", "y"])


def arrow(table: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = SCHEMAS[table]
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema)


def check(seed: int, steps: int, threads: int) -> None:
    rng = random.Random(seed)
    with Database(threads=threads) as db:
        for name, columns in DECLARED.items():
            db.create_table(name, columns)
        for name, query in VIEWS.items():
            db.create_view(name, query)
        refused: list[str] = []
        there: dict[str, list[tuple[Any, ...]]] = {"R": [], "S": []}
        for _ in range(steps):
            table = rng.choice(["R", "R", "S"])
            deletes = len(there[table]) > 30 and rng.random() < 0.5
            size = rng.choice([1, 5, 40])
            rows = rng.sample(there[table], min(size, len(there[table]))) if deletes else []
            rows = rows or [a_row(rng, table) for _ in range(size)]
            try:
                (db.delete if deletes else db.insert)(table, arrow(table, rows))
            except DataError as error:
                refused.append(str(error))
                continue
            for row in rows:
                there[table].remove(row) if deletes else there[table].append(row)
            for name in VIEWS:
                db.view(name).verify()
        assert len(refused) < steps / 2
        assert all("fit" in message for message in refused), refused
        backend = db._runtime.backend
        assert isinstance(backend, NativeBackend)
        backend.kernel.verify()


@pytest.mark.parametrize("seed", some_of(range(2), 1))
def test_sums_over_runs(seed: int) -> None:
    check(seed, 25, 1 + seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_sums_over_runs_at_length(seed: int) -> None:
    check(seed, 60, 1 + seed % 3)


def test_weights_that_do_not_fit_together_change_nothing() -> None:
    with Database() as db:
        for name, columns in DECLARED.items():
            db.create_table(name, columns)
        for name in ("v", "plain"):
            db.create_view(name, VIEWS[name])
        db.insert("S", arrow("S", [(1, n, None, None, None) for n in range(10)]))
        db.insert("R", arrow("R", [(1, 1)]))
        with pytest.raises(DataError):
            db.apply("R", [(2, 1)], [2**60])
        db.apply("R", [(2, 1)], [2**59])
        assert list(db.view("plain")) == [(1, 10 * (2**59 + 1))]
        db.view("plain").verify()
