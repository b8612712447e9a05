"""Record batches in a directory: their rows stand in the log as they came, in a form of Arrow."""

from __future__ import annotations

import random
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import StorageError
from ivme.store import log as log_module
from tests.durability.directories import SCHEMA, appended, bag, batch_of, changed, crash, small
from tests.durability.faulty_disk import Crash, Disk
from tests.example_counts import some_of


def last_record(db: Database) -> int:
    store = db.definitions.store
    assert store is not None
    return store.log.last


@pytest.mark.parametrize("durability", some_of(["async", "sync"], "async"))
def test_record_batches_are_appended_by_the_kernel(tmp_path: Path, durability: str) -> None:
    db = small(tmp_path, durability)
    db.create_table("S", {"a": "int", "b": "string"})
    for table in "RS":
        db.insert(table, batch_of(range(100)))  # opens the path
    before = last_record(db)
    db.insert("R", batch_of(range(60_000)))  # a record that is written without the GIL
    with db.batch() as batch:
        batch.insert("R", batch_of(range(50)))
        batch.delete("S", batch_of(range(40)))
    assert before + 2 == last_record(db) == appended(db)
    assert "not there" in changed(db, [("R", 1, batch_of(range(50))), ("S", -1, batch_of(range(40)))])
    store = db.definitions.store
    assert store is not None
    assert durability == "async" or store.log.commits.durable == store.log.commits.written
    expected = bag(db, "R"), bag(db, "S")
    assert (60_151, 60) == tuple(each.total() for each in expected)
    crash(db)
    with Database(tmp_path) as again:
        assert expected == (bag(again, "R"), bag(again, "S"))
        again.view("v").verify()


def test_a_record_batch_in_other_types_is_logged_in_those_of_its_table(tmp_path: Path) -> None:
    db = small(tmp_path, "async")
    given = batch_of(range(100)).cast(pa.schema([("a", pa.int16()), ("b", pa.large_string())]))
    for _ in range(2):
        db.insert("R", given)
        db.insert("R", pa.Table.from_batches([given.select(["b", "a"])]))
    expected = bag(db, "R")
    assert 401 == expected.total()
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "short", "crash"])
@pytest.mark.parametrize("call", range(1, 6))
def test_a_disk_that_fails_at_a_record_of_record_batches(tmp_path: Path, fault: str, call: int) -> None:
    """Records whose bytes are written by a call of their own, and such that are written by one."""
    disk = Disk(tmp_path)
    with disk.mounted():
        db = small(tmp_path, "sync")
        db.insert("R", batch_of(range(100)))  # opens the path
        disk.plan({call: fault})
        done, left = 101, [2_000, 100, 3_000]
        with suppress(StorageError, Crash):
            while left:
                db.insert("R", batch_of(range(left[0])))
                done += left.pop(0)
        crash(db)
    image = disk.without_power(tmp_path.with_name(tmp_path.name + "-image"), random.Random(call))
    with Database(image.path) as again:
        assert bag(again, "R").total() in (done, done + sum(left[:1]))
        again.view("v").verify()


def test_records_are_compressed_while_the_disk_lags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "_PAUSE", 3600)  # nothing is synced meanwhile
    db = small(tmp_path, "async")
    store = db.definitions.store
    assert store is not None
    db.insert("R", batch_of(range(3_000)))
    sizes: list[int] = []
    for much in (2**20, 0):
        monkeypatch.setattr(log_module, "_MUCH", much)
        before = store.log.size
        db.insert("R", batch_of(range(3_000)))
        with db.batch(source="s", position=len(sizes)) as batch:  # on the batch path
            batch.insert("R", batch_of(range(3_000)))
        sizes.append(store.log.size - before)
    assert sizes[1] < sizes[0] / 2
    monkeypatch.setattr(log_module, "_PAUSE", 0)
    store.log.sync()
    assert not store.log.lags
    expected = bag(db, "R")
    assert 15_001 == expected.total()
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")


@pytest.mark.parametrize("wide", [False, True])
def test_values_of_all_kinds_come_back_from_slices_of_record_batches(tmp_path: Path, wide: bool) -> None:
    """The kernel writes them unless there are decimals of more than 18 digits, of which Python writes the records."""
    with Database(tmp_path, durability="async") as db:
        db.create_table("R", {name: type_ for name, type_ in SCHEMA.items() if wide or name != "w"})
        schema = arrow_schema(db.definitions.runtime.catalog.tables["R"].table)
        columns = [_values(field.type) for field in schema]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        db.insert("R", rows)  # opens the path
        for start in (0, 1, 7, 13, 40):
            before = last_record(db)
            db.insert("R", rows.slice(start, 33))
            db.delete("R", rows.slice(start + 1, 29))
            assert before + 2 == last_record(db)
            assert appended(db) == (0 if wide else before + 2)
        expected = bag(db, "R")
        assert 90 + 5 * 4 == expected.total()
        crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")


def _values(type_: pa.DataType) -> pa.Array:
    """90 values of a type; every seventh is NULL, and strings have no common length."""
    numbers = [None if n % 7 == 3 else n for n in range(90)]
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        texts = [None if n is None else "é" * (n % 5) + str(n // 4) * (n % 11) for n in numbers]
        return pa.array(texts, pa.string()).cast(type_)
    if pa.types.is_boolean(type_):
        return pa.array([None if n is None else n % 2 == 0 for n in numbers])
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return pa.array(numbers, pa.int32() if pa.types.is_date(type_) else pa.int64()).cast(type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if n is None else Decimal(n) for n in numbers], type_)
    return pa.array(numbers, pa.int64()).cast(type_)
