"""Rows whose records the kernel appends to the log itself, against the same changes in memory."""

from __future__ import annotations

import datetime
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import make_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import IvmeError, StorageError
from ivme.store import system
from tests.durability.directories import appended, bag, batch_of, changed, crash, small
from tests.durability.faulty_disk import Crash, Disk
from tests.example_counts import some_of

COLUMNS = {
    "i": "int",
    "f": "float",
    "d": "decimal(18, 4)",
    "s": "string",
    "t": "bool",
    "y": "date",
    "m": "timestamp",
    "b": "binary",
}
VALUES: list[list[Any]] = [
    [None, 0, -1, 7, 2**63 - 1, -(2**63) + 1],
    [None, 0.0, -0.0, 0.1, 5.0, -2.5e-308, 1.7976931348623157e308, 9007199254740993.0, float("inf"), float("-inf")],
    [None, *map(Decimal, ["0", "0.0001", "-0.05", "12.3", "-99999999999999.9999", "99999999999999.9999"])],
    [None, "", 'say "x" \\ /', "a\tb\n\r\x00\x1f\x7f", "bé€", "\u2028\ud7ff\ue000\uffff", "😀\U0010ffff", "x" * 1000],
    [None, True, False],
    [None, *map(datetime.date.fromisoformat, ["0001-01-01", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31"])],
    [
        None,
        *map(datetime.datetime.fromisoformat, ["0001-01-01T00:00:00", "1969-12-31T23:59:59.999999"]),
        *map(datetime.datetime.fromisoformat, ["2024-02-29T12:34:56", "9999-12-31T23:59:59.000001"]),
    ],
    [None, b"", b"\x00\xff", bytes(range(256))],
]
ROWS = [tuple(values[number % len(values)] for values in VALUES) for number in range(40)]


def test_values_of_all_kinds_come_back(tmp_path: Path) -> None:
    with Database(tmp_path, durability="async") as db:
        db.create_table("R", COLUMNS)
        db.insert("R", [ROWS[0]])  # opens the path
        for row in ROWS:
            db.insert("R", [row])
        db.insert("R", ROWS)
        assert len(ROWS) + 3 == appended(db)
        expected = bag(db, "R")
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")
        assert 2 * len(ROWS) + 1 == expected.total()


def test_a_table_of_any_name_is_found_again(tmp_path: Path) -> None:
    name = 'a "quoted" näme 😀\\'
    with Database(tmp_path) as db:
        db.create_table(name, {"a": "int"})
        for number in range(3):
            db.insert(name, [(number,)])
        assert appended(db)
    with Database(tmp_path) as again:
        assert [(0,), (1,), (2,)] == sorted(again.table(name))


R = {"k": "int", "s": "string", "d": "decimal(10, 2)"}
S = {"s": "string", "n": "int", "f": "float"}
VIEWS = {
    "joined": "SELECT R.s, COUNT(*) AS n, SUM(d) AS total FROM R JOIN S ON R.s = S.s GROUP BY R.s",
    "texts": "SELECT UPPER(s) AS u, SUM(d) AS d FROM R WHERE s LIKE '%b%' GROUP BY UPPER(s)",
    "outer_join": "SELECT R.k, S.n FROM R LEFT JOIN S ON R.s = S.s",
}
CLASSES = {"R": make_dataclass("R", list(R)), "S": make_dataclass("S", list(S))}
TYPES = {
    "R": pa.schema([("k", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(10, 2))]),
    "S": pa.schema([("s", pa.string()), ("n", pa.int64()), ("f", pa.float64())]),
}
FORMS: list[Callable[[str, list[Any]], Any]] = [
    lambda _, rows: rows,
    lambda table, rows: [dict(zip(R if table == "R" else S, row, strict=True)) for row in rows],
    lambda table, rows: [CLASSES[table](*row) for row in rows],
    lambda table, rows: pa.RecordBatch.from_arrays(
        [pa.array(c, t) for c, t in zip(zip(*rows, strict=True), TYPES[table].types, strict=True)], schema=TYPES[table]
    ),
]


def drawn(rng: random.Random, table: str) -> tuple[Any, ...]:
    text = rng.choice(["a", "b", "ab", "bé", "", None, f"x{rng.randrange(9)}b"])
    if table == "R":
        return rng.choice([None, *range(30)]), text, rng.choice([None, Decimal(rng.randrange(-500, 500)) / 100])
    return text, rng.randrange(4), rng.choice([None, 0.0, 1.5, 1e17, -2.25, float("inf")])


def parts(rng: random.Random, there: Counter[Any]) -> list[tuple[str, int, Any]]:
    """The changes of a batch, most of them of rows that may come or go."""
    found = []
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        table = rng.choice("RS")
        rows = [drawn(rng, table) for _ in range(rng.choice([1, 1, 1, 2, 20]))]
        known = [row for name, row in there if name == table and there[name, row] > 0]
        weight = -1 if rng.random() < 0.4 and known else 1
        if weight < 0:
            rows = [rng.choice(known) for _ in rows[:2]]
        found.append((table, weight, rng.choice(FORMS)(table, rows)))
    return found


@pytest.mark.parametrize("durability", ["async", "sync"])
@pytest.mark.parametrize("seed", some_of(range(3), 0))
def test_rows_in_all_forms_are_there_after_opening(tmp_path: Path, durability: str, seed: int) -> None:
    rng = random.Random(seed)

    def with_tables(db: Database, keyed: bool) -> Database:
        db.create_table("R", R, primary_key="k" if keyed else None)
        db.create_table("S", S)
        return db

    keyed = bool(seed % 2)
    plain = with_tables(Database(), keyed)
    db = with_tables(Database(tmp_path, durability=durability), keyed)
    views: dict[str, str] = {}
    feeds: list[Any] = []
    taken = 0
    for number in range(120):
        there = Counter({("R", row): n for row, n in bag(plain, "R").items()})
        there.update({("S", row): n for row, n in bag(plain, "S").items()})
        batch = parts(rng, there)
        assert changed(plain, batch) == changed(db, batch)
        taken += appended(db) > 0
        if rng.random() < 0.03 and len(views) < len(VIEWS):
            name = rng.choice([view for view in VIEWS if view not in views])
            views[name] = VIEWS[name]
            for each in (plain, db):
                each.create_view(name, VIEWS[name])
        if rng.random() < 0.03 and views:
            feeds = [] if feeds else [each.view(rng.choice([*views])).changes() for each in (db,)]
        if rng.random() < 0.03:
            db.checkpoint()
        if rng.random() < 0.04 or number == 119:
            feeds = []
            rng.choice([Database.close, crash])(db)
            db = Database(tmp_path, durability=durability)
            for name in views:
                assert Counter(plain.view(name)) == Counter(db.view(name))
                db.view(name).verify()
        assert [bag(plain, "R"), bag(plain, "S")] == [bag(db, "R"), bag(db, "S")]
    assert taken
    db.close()


def test_a_commit_that_waits_returns_when_its_record_is_durable(tmp_path: Path) -> None:
    db = small(tmp_path, "sync")
    assert db.definitions.store is not None
    commits = db.definitions.store.log.commits
    for number in range(5):
        before, syncs = appended(db), commits.syncs
        db.insert("R", [(number, "x")])
        assert (commits.written, syncs + 1) == (commits.durable, commits.syncs)
        assert before < appended(db)
    db.close()


def test_a_record_that_cannot_be_written_is_not_in_the_log_nor_in_memory(tmp_path: Path, monkeypatch: Any) -> None:
    db = small(tmp_path, "async")
    db.insert("R", [(1, "x")])
    write = system.write

    def torn(descriptor: int, data: Any, place: int) -> int:
        write(descriptor, bytes(data)[:20], place)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(system, "write", torn)
        for attempt in (db.insert, db.delete):
            with pytest.raises(StorageError, match="No space left"):
                attempt("R", [(1, "x")])
            with pytest.raises(StorageError, match="No space left"):
                db.insert("R", batch_of(range(100)))
            assert Counter({(0, "first"): 1, (1, "x"): 1}) == bag(db, "R")
    before = appended(db)
    db.insert("R", [(2, "y")])  # by Python, which cuts the log first or finds that cut
    db.insert("R", [(3, "z")])
    assert before < appended(db)
    expected = bag(db, "R")
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")
        again.view("v").verify()


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "short", "crash"])
@pytest.mark.parametrize("call", range(1, 6))
def test_a_disk_that_fails_at_a_record_of_the_kernel(tmp_path: Path, fault: str, call: int) -> None:
    disk = Disk(tmp_path)
    with disk.mounted():
        db = small(tmp_path, "sync")
        disk.plan({call: fault})
        done = [(0, "first")]
        with suppress(StorageError, Crash):
            for number in range(1, 4):
                db.insert("R", [(number, "x")])
                done.append((number, "x"))
        crash(db)
    image = disk.without_power(tmp_path.with_name(tmp_path.name + "-image"), random.Random(call))
    with Database(image.path) as again:
        found = sorted(again.table("R"))
        again.view("v").verify()
    assert found[: len(done)] == done
    assert len(found) <= len(done) + 1


def test_a_log_that_has_grown_is_left_to_a_snapshot(tmp_path: Path) -> None:
    db = small(tmp_path, "async")
    store = db.definitions.store
    assert store is not None
    store.log.state.limit = store.log.size + 500
    for number in range(50):
        db.insert("R", [(number, "x")])
    assert store._snapshot is not None
    store._snapshot.join()
    assert len(list(tmp_path.glob("log-*"))) == 1
    for number in range(50):
        db.insert("R", [(number, "y")])
    expected = bag(db, "R")
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")


def test_a_database_that_is_closed_takes_no_rows(tmp_path: Path) -> None:
    db = small(tmp_path, "async")
    db.insert("R", [(1, "x")])
    db.close()
    with pytest.raises(IvmeError, match="closed"):
        db.insert("R", [(2, "x")])
    with Database(tmp_path) as again:
        assert Counter({(0, "first"): 1, (1, "x"): 1}) == bag(again, "R")


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_threads_that_write_and_read_do_not_wait_for_each_other_forever(tmp_path: Path, durability: str) -> None:
    db = small(tmp_path, durability)
    errors: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for number in range(first, first + 1000, 50):
                db.insert("R", [(number, f"s{number}")])
                db.insert("R", [(number, "x"), (number + 1, f"t{number}")])
                db.insert("R", batch_of(range(number, number + 50)))
                db.delete("R", [(number, f"s{number}")])
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        while any(thread.is_alive() for thread in writers):
            sum(n for _, n in db.view("v"))

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, 10_000, 20_000)]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    for thread in (*writers, reader):
        thread.join()
    assert not errors
    assert appended(db)
    expected = bag(db, "R")
    assert 1 + 3 * 20 * 52 == expected.total()
    crash(db)
    with Database(tmp_path) as again:
        assert expected == bag(again, "R")
