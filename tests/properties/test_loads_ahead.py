"""What triggers load of a batch while the batch before is applied is what they load when it is their turn."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from tests.properties.test_threads import kernel_of
from tests.sweeping import sweep

pytestmark = pytest.mark.usefixtures("shared_encoding")

SALES = {
    "id": "int",
    "shop": "int",
    "kind": "string",
    "price": "decimal(9, 2)",
    "ratio": "float",
    "day": "date",
    "note": "string",
    "unread": "decimal(5, 1)",
}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.int64()),
        ("kind", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("ratio", pa.float64()),
        ("day", pa.date32()),
        ("note", pa.string()),
        ("unread", pa.decimal128(5, 1)),
    ]
)
VIEWS = {
    "by kind": "SELECT kind, COUNT(*) AS n, SUM(price * 2 - 1) AS paid FROM sales GROUP BY kind",
    "by code": """SELECT UPPER(kind) AS k, COUNT(*) AS n FROM sales WHERE kind LIKE '%a%' OR shop = 3
        GROUP BY UPPER(kind)""",
    "cases": "SELECT shop, SUM(CASE WHEN kind IN ('a1', 'b2') THEN 1 ELSE 0 END) AS few FROM sales GROUP BY shop",
    "joined": """SELECT city, SUM(price) AS paid, MAX(sales.id) AS last FROM sales JOIN shops ON shop = shops.id
        GROUP BY city""",
    "late": "SELECT shops.id FROM shops WHERE EXISTS (SELECT 1 FROM sales WHERE shop = shops.id AND price > 50)",
    "outer": "SELECT city, COUNT(sales.id) AS n FROM shops LEFT JOIN sales ON shop = shops.id GROUP BY city",
    "floats": "SELECT shop, SUM(ratio) AS total FROM sales GROUP BY shop",
    "rows": "SELECT id, kind FROM sales WHERE day > DATE '2024-01-10'",
    "kinds": "SELECT DISTINCT kind FROM sales WHERE ratio < 0.5",
    "pairs": "SELECT COUNT(*) AS n FROM sales a JOIN sales b ON a.shop = b.id",
    "loud": 'SELECT UPPER(kind) AS k, SUM(n) AS n FROM "by kind" GROUP BY UPPER(kind)',
    "known": "SELECT COUNT(*) AS n FROM sales JOIN closed ON closed.kind = sales.kind AND closed.shop = sales.shop",
}


def made(threads: int, keep_rows: bool = True) -> Database:
    db = Database(threads=threads)
    db.create_table("shops", {"id": "int", "city": "string"}, primary_key="id")
    db.create_table("closed", {"shop": "int", "kind": "string"})
    if keep_rows:
        db.create_table("sales", SALES, primary_key="id")
    else:
        db.create_table("sales", SALES, keep_rows=False)
    for name, text in VIEWS.items():
        db.create_view(name, text)
    return db


def sales(numbers: list[int]) -> pa.RecordBatch:
    """Rows that depend on their number only, so that they can be deleted again."""
    rows = []
    for number in numbers:
        k = number * 7919
        kind = None if k % 11 == 0 else f"{'abc'[k % 3]}{k % 4 + number // 4000}"
        price = None if k % 13 == 0 else Decimal(k % 9999) / 100
        ratio = k % 97 / 96
        day = date(2024, 1, 1 + k % 28)
        rows.append((number, k % 9, kind, price, ratio, day, f"note {number}", Decimal(k % 999) / 10))
    return pa.record_batch(list(map(pa.array, zip(*rows, strict=True), SCHEMA.types)), schema=SCHEMA)


def stream(seed: int, batches: int, deletes: bool) -> list[list[tuple[str, pa.RecordBatch, int]]]:
    rng, last = random.Random(seed), 0
    there: list[int] = []
    found = [[("shops", pa.record_batch({"id": list(range(7)), "city": list("xyzxyzx")}), 1)]]
    for number in range(batches):
        size = rng.choice([1, 3, 40, 300, 1100, 2600])
        if deletes and len(there) > size and rng.random() < 0.4:
            rng.shuffle(there)
            gone, there = there[:size], there[size:]
            batch = [("sales", sales(gone), -1)]
        else:
            new = list(range(last, last + size))
            last += size
            there += new
            batch = [("sales", sales(new), 1)]
        if number % 3 == 1:
            closed = [(n % 5, f"a{n % 4}") for n in range(number * 40)]
            columns = {"shop": [shop for shop, _ in closed], "kind": [kind for _, kind in closed]}
            batch.insert(rng.randrange(2), ("closed", pa.record_batch(columns), 1))
        found.append(batch)
    return found


def contents(db: Database) -> dict[str, Any]:
    return {name: Counter(db.view(name)) for name in VIEWS}


def check(seed: int, batches: int, keep_rows: bool) -> None:
    given = stream(seed, batches, keep_rows)
    with made(1) as alone, made(2 + seed % 3, keep_rows) as shared:
        for batch in given:
            with alone.batch() as changes:
                for table, rows, sign in batch:
                    (changes.insert if sign > 0 else changes.delete)(table, rows)
        assert shared.apply_batches(iter(given)) == len(given)
        assert contents(shared) == contents(alone)
        kernel_of(shared).verify()
        assert kernel_of(alone).loads_taken == 0
        for name in VIEWS:
            alone.view(name).verify()
            if keep_rows:
                shared.view(name).verify()


@pytest.mark.parametrize("keep_rows", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_views_are_those_of_one_thread(seed: int, keep_rows: bool) -> None:
    check(seed, 12, keep_rows)


@pytest.mark.long
@pytest.mark.parametrize("keep_rows", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_views_are_those_of_one_thread_at_length(seed: int, keep_rows: bool) -> None:
    check(seed, 40, keep_rows)


def test_loads_are_done_ahead() -> None:
    """How many depends on the threads; of so many batches some are."""
    given = [{"numbers": pa.record_batch({"a": list(range(n * 3000, n * 3000 + 3000))})} for n in range(12)]
    with Database(threads=2) as db:
        db.create_table("numbers", {"a": "int"})
        db.create_view("found", "SELECT a % 1000 AS k, COUNT(*) AS n FROM numbers WHERE a % 7 < 5 GROUP BY a % 1000")
        db.apply_batches(given)
        assert kernel_of(db).loads_taken > 0
        db.view("found").verify()


@pytest.mark.parametrize("keep_rows", [True, False])
def test_operations_are_counted_once(keep_rows: bool) -> None:
    given = stream(5, 10, deletes=False)
    with made(2, keep_rows) as one_by_one, made(2, keep_rows) as ahead:
        for batch in given:
            with one_by_one.batch() as changes:
                for table, rows, _ in batch:
                    changes.insert(table, rows)
        ahead.apply_batches(given)
        assert kernel_of(one_by_one).loads_taken == 0
        assert kernel_of(ahead).operations == kernel_of(one_by_one).operations


def test_constants_whose_codes_are_others_now_are_computed_anew() -> None:
    """'a1' and 'b2' have codes that are taken back and found again between a batch's loading and its turn."""
    given = [{"sales": sales(list(range(n * 700, n * 700 + 700)))} for n in range(8)]
    with made(1) as alone, made(2) as shared:

        def sweeping() -> Iterator[Any]:
            for number, batch in enumerate(given):
                yield batch
                if number % 2:
                    sweep(shared)
                if number % 3 == 1:
                    shared.insert("closed", [(number, f"kind {number} {i}") for i in range(200)])

        for number, batch in enumerate(given):
            alone.insert("sales", batch["sales"])
            if number % 3 == 1:
                alone.insert("closed", [(number, f"kind {number} {i}") for i in range(200)])
        assert shared.apply_batches(sweeping()) == 8
        assert contents(shared) == contents(alone)


def test_constants_of_strings_over_numbers_are_computed_anew() -> None:
    """No column of the table is a string, so that nothing of its rows tells that codes were taken back."""
    given = [pa.record_batch({"a": list(range(n * 1200, n * 1200 + 1200))}) for n in range(6)]
    with Database(threads=2) as db:
        db.create_table("numbers", {"a": "int"}, keep_rows=False)
        db.create_table("texts", {"t": "string"}, primary_key="t")
        db.create_view("times", "SELECT CASE WHEN a < 3600 THEN 'early' ELSE 'late' END AS s, a % 3 AS r FROM numbers")

        def batches() -> Iterator[Any]:
            for number, batch in enumerate(given):
                yield {"numbers": batch}
                time.sleep(0.01)  # the other thread computes meanwhile
                if number == 3:  # the first with 'late', which no view shows yet
                    sweep(db)
                    db.insert("texts", [(f"text {i}",) for i in range(20)])

        assert db.apply_batches(batches()) == 6
        assert Counter(db.view("times")) == Counter(("early" if a < 3600 else "late", a % 3) for a in range(7200))


def test_a_clock_that_is_moved_between_batches_counts_when_they_are_applied() -> None:
    rows = [
        pa.record_batch({"at": pa.array([datetime(2024, 1, d, tzinfo=UTC)] * 400, pa.timestamp("us", "UTC"))})
        for d in range(1, 9)
    ]
    found = []
    for threads in (1, 2):
        with Database(threads=threads) as db:
            db.create_table("events", {"at": "timestamp"})
            db.create_view("recent", "SELECT COUNT(*) AS n FROM events WHERE at > NOW() - INTERVAL 3 DAY")
            db.advance(datetime(2024, 1, 1, tzinfo=UTC))

            def moving(db: Database = db) -> Iterator[Any]:
                for number, batch in enumerate(rows):
                    yield {"events": batch}
                    db.advance(datetime(2024, 1, 1 + number, tzinfo=UTC))

            db.apply_batches(moving())
            db.view("recent").verify()
            found.append(list(db.view("recent")))
    assert found[0] == found[1]


def test_views_and_tables_may_change_while_a_batch_is_loaded() -> None:
    given = [{"sales": sales(list(range(n * 900, n * 900 + 900)))} for n in range(10)]
    with made(2) as db:

        def changing() -> Iterator[Any]:
            for number, batch in enumerate(given):
                yield batch
                if number == 2:
                    db.drop_view("by code")
                if number == 4:
                    db.create_view(
                        "by code", "SELECT note, COUNT(*) AS n FROM sales WHERE UPPER(note) > 'NOTE 5' GROUP BY note"
                    )
                if number == 6:
                    db.drop_view("cases")
                    db.create_view("cases", VIEWS["cases"])

        assert db.apply_batches(changing()) == 10
        for name in VIEWS:
            db.view(name).verify()


def test_columns_that_are_left_out_may_be_used_again_and_batches_still_take_the_other_path() -> None:
    """A reader that is open sends batches to the path of Python; the memory of all columns is used again."""
    ids, unread, rows = np.zeros(600, np.int64), np.zeros(600, np.float64), 0
    with Database(threads=2) as db:
        db.create_table(
            "events",
            {
                "id": "int",
                "ratio": "float",
                "text": "string",
                "day": "date",
                "flag": "bool",
                "at": "timestamp",
                "d": "decimal(4, 1)",
            },
            keep_rows=False,
        )
        db.create_view("ids", "SELECT id % 10 AS k, COUNT(*) AS n FROM events GROUP BY id % 10")

        def batches() -> Iterator[Any]:
            nonlocal rows
            reader = None
            for number in range(12):
                size = 100 + number * 40
                ids[:size], unread[:size] = range(rows, rows + size), number
                others = [
                    pa.array([f"text {number}"] * size),
                    pa.array([date(2024, 1, 1)] * size),
                    pa.array([True] * size),
                    pa.array([datetime(2024, 1, 1)] * size, pa.timestamp("us")),
                    pa.array([Decimal("1.5")] * size, pa.decimal128(4, 1)),
                ]
                yield {
                    "events": pa.record_batch(
                        [pa.array(ids[:size]), pa.array(unread[:size]), *others],
                        names=["id", "ratio", "text", "day", "flag", "at", "d"],
                    )
                }
                rows += size
                if number % 4 == 2:
                    reader = iter(db.view("ids"))
                    next(reader, None)
                elif number % 4 == 0:
                    reader = None

        db.apply_batches(batches())
        assert dict(db.view("ids")) == Counter(i % 10 for i in range(rows))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("unread", pa.array([123456], pa.decimal128(38, 1)).cast(pa.decimal128(6, 1), safe=False)),
        ("day", pa.array([10**9], pa.int32()).cast(pa.date32())),
    ],
)
def test_what_nobody_reads_is_refused_ahead_as_elsewhere(column: str, value: Any) -> None:
    with Database(threads=2) as db:
        db.create_table("sales", SALES, keep_rows=False)
        db.create_view("by shop", "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop")
        good = [sales(list(range(n * 500, n * 500 + 500))) for n in range(4)]
        place = SCHEMA.get_field_index(column)
        bad = good[2].slice(0, 1).set_column(place, SCHEMA.field(column).with_type(value.type), value)
        if value.type != SCHEMA.field(column).type:  # the same bits under the declared type, as Arrow does not look
            bits = pa.Array.from_buffers(SCHEMA.field(column).type, 1, value.buffers())
            bad = good[2].slice(0, 1).set_column(place, SCHEMA.field(column), bits)
        with pytest.raises(IvmeError) as caught:
            db.apply_batches([{"sales": good[0]}, {"sales": good[1]}, {"sales": bad}, {"sales": good[3]}])
        assert "in batch 2 (from 0)" in caught.value.__notes__[0]
        assert sum(n for _, n in db.view("by shop")) == 1000


def test_a_view_that_comes_before_the_first_rows_are_applied_reads_all_columns() -> None:
    """The first batch is taken before the view is there, and applied behind it."""
    given = [{"sales": sales(list(range(n * 1200, n * 1200 + 1200)))} for n in range(3)]
    with Database(threads=2) as db:
        db.create_table("sales", SALES, keep_rows=False)
        db.create_view("by shop", "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop")

        def batches() -> Iterator[Any]:
            yield given[0]
            db.create_view("notes", "SELECT note, COUNT(*) AS n FROM sales GROUP BY note")
            yield from given[1:]

        assert db.apply_batches(batches()) == 3
        assert Counter(dict(db.view("notes"))) == Counter(f"note {n}" for n in range(3600))


@pytest.mark.parametrize("keep_rows", [True, False])
def test_rows_of_a_table_that_keeps_none_do_not_go_to_another_one_of_its_name(keep_rows: bool) -> None:
    """Columns that no view read were not taken, so that the new table would be given NULLs."""
    given = [{"sales": sales(list(range(n * 1500, n * 1500 + 1500)))} for n in range(4)]
    with Database(threads=2) as db:
        db.create_table("sales", SALES, keep_rows=False)
        db.create_view("by shop", "SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop")

        def batches() -> Iterator[Any]:
            yield from given[:3]
            db.drop_view("by shop")
            db.drop_table("sales")
            db.create_table("sales", SALES, keep_rows=keep_rows)
            db.create_view("notes", "SELECT note, COUNT(*) AS n FROM sales GROUP BY note")
            yield given[3]

        with pytest.raises(IvmeError, match="sales was dropped while a batch") as caught:
            db.apply_batches(batches())
        assert "in batch 2 (from 0)" in caught.value.__notes__[0]
        assert list(db.view("notes")) == []
        assert db.apply_batches(given[3:]) == 1
        assert Counter(dict(db.view("notes"))) == Counter(f"note {n}" for n in range(4500, 6000))
