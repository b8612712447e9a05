"""Record batches that the kernel takes in one call, against the same changes as lists of rows on the batch path."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ivme import Database
from ivme.errors import DataError, IvmeError

R = {"k": "int", "s": "string", "d": "decimal(10, 2)"}
S = {"s": "string", "n": "int", "f": "float"}
SCHEMAS = {
    "R": pa.schema([("k", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(10, 2))]),
    "S": pa.schema([("s", pa.string()), ("n", pa.int64()), ("f", pa.float64())]),
}
VIEWS = {
    "joined": "SELECT R.s, COUNT(*) AS n, SUM(d) AS total FROM R JOIN S ON R.s = S.s GROUP BY R.s",
    "texts": "SELECT UPPER(s) AS u, SUM(d) AS d FROM R WHERE s LIKE '%b%' GROUP BY UPPER(s)",
    "floats": "SELECT n, SUM(f) AS f FROM S GROUP BY n",
}


def made() -> Database:
    database = Database()
    database.create_table("R", R, primary_key="k")
    database.create_table("S", S)
    for name, text in VIEWS.items():
        database.create_view(name, text, strategy="view-tree")
    for name in SCHEMAS:  # paths are opened by the first batch
        database.insert(name, as_arrow(name, [FIRST[name]]))
    return database


FIRST: dict[str, tuple[Any, ...]] = {"R": (-1, "first", Decimal("1.00")), "S": ("first", 1, 0.5)}


def as_arrow(table: str, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = SCHEMAS[table]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(c, type_) for c, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def row(rng: random.Random, table: str) -> tuple[Any, ...]:
    text = rng.choice(["a", "b", "ab", "bé", "", None, f"x{rng.randrange(50)}b"])
    if table == "R":
        key = rng.randrange(40) if rng.random() > 0.02 else None
        return key, text, rng.choice([None, Decimal(rng.randrange(-500, 500)) / 100])
    return text, rng.randrange(4), rng.choice([None, 0.0, 1.5, 1e17, -2.25])


def changes(rng: random.Random, there: Counter[tuple[str, tuple[Any, ...]]]) -> list[tuple[str, int, list[Any]]]:
    """Changes of a batch: mostly of what may be changed, now and then of what may not."""
    found = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        table = rng.choice("RS")
        if rng.random() < 0.4:
            own = [each for (name, each), n in there.items() if name == table for _ in range(n)]
            gone = rng.sample(own, min(len(own), rng.randrange(1, 4))) if own else []
            gone += [row(rng, table)] if rng.random() < 0.1 else []
            found.append((table, -1, gone))
        else:
            found.append((table, 1, [row(rng, table) for _ in range(rng.choice([1, 3, 20]))]))
    return found


def outcome(database: Database, given: list[tuple[str, int, Any]]) -> str:
    try:
        with database.batch() as batch:
            for table, sign, rows in given:
                (batch.insert if sign > 0 else batch.delete)(table, rows)
    except IvmeError as error:
        return type(error).__name__
    return ""


def contents(database: Database) -> list[Any]:
    views = [sorted(map(repr, database.view(name))) for name in VIEWS]
    return [sorted(map(repr, database.table(name))) for name in SCHEMAS] + views


@pytest.mark.parametrize("seed", range(6))
def test_record_batches_do_what_lists_do(seed: int) -> None:
    rng = random.Random(seed)
    native, plain = made(), made()
    there: Counter[tuple[str, tuple[Any, ...]]] = Counter((name, each) for name, each in FIRST.items())
    refused = 0
    for _ in range(60):
        given = changes(rng, there)
        expected = outcome(plain, given)
        assert expected == outcome(native, [(name, sign, as_arrow(name, rows)) for name, sign, rows in given])
        refused += bool(expected)
        if not expected:
            for name, sign, rows in given:
                for each in rows:
                    there[name, each] += sign
        assert contents(plain) == contents(native)
    for name in VIEWS:
        native.view(name).verify()
    assert 0 < refused < 40
    assert +there == Counter((name, each) for name in SCHEMAS for each in native.table(name))


def test_the_kernel_takes_them_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    database = made()
    runtime = database.definitions.runtime
    monkeypatch.setattr(runtime, "transact", lambda *_, **__: pytest.fail("the batch path took it"))
    rows: dict[str, list[tuple[Any, ...]]] = {"R": [(5, "first", Decimal("2.00"))], "S": [("new", 3, 1.0)]}
    assert outcome(database, [(name, 1, as_arrow(name, each)) for name, each in rows.items()]) == ""
    assert list(database.view("joined")) == [("first", 2, Decimal("3.00"))]
    assert outcome(database, [(name, -1, as_arrow(name, each)) for name, each in rows.items()]) == ""
    assert list(database.view("joined")) == [("first", 1, Decimal("1.00"))]


def test_a_refused_table_takes_the_others_back() -> None:
    database = made()
    before = contents(database)
    batch = database.batch().begin()
    batch.insert("S", as_arrow("S", [("first", 2, 2.0)]))
    batch.insert("R", as_arrow("R", [(7, "a", None), (7, "b", None)]))
    with pytest.raises(DataError, match="primary key"), batch:
        pass
    assert contents(database) == before


def test_a_wrong_batch_is_refused_where_it_is_added() -> None:
    database = made()
    with database.batch() as batch:
        batch.insert("S", as_arrow("S", [("first", 2, 2.0)]))
        with pytest.raises(DataError, match="primary key cannot be NULL"):
            batch.insert("R", as_arrow("R", [(None, "a", None)]))
        with pytest.raises(DataError):
            batch.insert("S", as_arrow("S", [("first", 2, float("nan"))]))
    assert ("first", 2, 2.0) in list(database.table("S"))


def test_what_else_a_batch_has_takes_the_record_batches_along() -> None:
    database = made()
    with database.batch() as batch:
        batch.insert("S", as_arrow("S", [("first", 2, 2.0)]))
        batch.delete_where("S", "n = 1")
        batch.insert("R", [(9, "z", None)])
    assert list(database.table("S")) == [("first", 2, 2.0)]
    assert (9, "z", None) in list(database.table("R"))


def test_a_table_that_changed_meanwhile_is_encoded_anew() -> None:
    database = made()
    batch = database.batch().begin()
    batch.insert("S", as_arrow("S", [("later", 2, 2.0)]))
    database.create_view("more", "SELECT s, COUNT(*) AS n FROM S GROUP BY s")
    with batch:
        pass
    assert ("later", 1) in list(database.view("more"))


def test_few_rows_of_several_tables_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    database = made()
    runtime = database.definitions.runtime
    monkeypatch.setattr(runtime, "_transact", lambda *_, **__: pytest.fail("the batch path took it"))
    rows = [("R", 1, [(5, "first", Decimal("2.00"))]), ("S", 1, [("new", 3, 1.0)]), ("R", -1, [FIRST["R"]])]
    assert outcome(database, rows) == ""
    assert list(database.view("joined")) == [("first", 1, Decimal("2.00"))]
    assert sorted(database.table("S")) == [("first", 1, 0.5), ("new", 3, 1.0)]


def test_a_row_that_goes_before_it_comes_was_never_there() -> None:
    database = made()
    before = contents(database)
    row_ = (5, "a", Decimal("2.00"))
    assert outcome(database, [("R", -1, [row_]), ("R", 1, [row_])]) == ""
    assert outcome(database, [("R", 1, [row_]), ("S", 1, [("a", 1, 1.0)]), ("R", 1, [row_])]) == "DataError"
    assert contents(database) == before
