"""Batches whose rows fall into few groups, or come in runs, and are summed by the chunk: as if each row came alone."""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.example_counts import some_of

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("g", pa.int64()),
        ("h", pa.string()),
        ("a", pa.decimal128(15, 2)),
        ("b", pa.decimal128(15, 2)),
        ("i", pa.int64()),
    ]
)
DECLARED = {"id": "int", "g": "int", "h": "string", "a": "decimal(15, 2)", "b": "decimal(15, 2)", "i": "int"}
SUMS = "COUNT(*) AS n, SUM(a) AS a, COUNT(a) AS k, SUM(a * (1 - b)) AS ab, SUM(a * b * b) AS abb, SUM(i) AS i"
VIEWS = {
    "by_both": f"SELECT g, h, {SUMS} FROM t WHERE id % 7 <> 3 GROUP BY g, h",
    "by_one": f"SELECT g, {SUMS} FROM t GROUP BY g",
    "by_none": f"SELECT {SUMS} FROM t",
    "there": "SELECT COUNT(*) AS n, SUM(g) AS s FROM (SELECT DISTINCT g FROM t WHERE id % 7 <> 3) AS d",
}
Row = tuple[int, int, str | None, Decimal | None, Decimal, int | None]

# Groups of 1,024 rows: up to a third of a chunk are summed in it. Sorted rows of more come in short runs.
GROUPS = [1, 2, 7, 100, 340, 341, 342, 343, 700, 5000]


def a_row(rng: random.Random, number: int, groups: int) -> Row:
    group = rng.randrange(groups)
    cents = rng.choice([0, 10**15 - 1, -(10**15) + 1, rng.randrange(-(10**6), 10**6)])
    a = None if rng.random() < 0.1 else Decimal(cents).scaleb(-2)
    b = Decimal(rng.choice([0, 5, 10**15 - 1, rng.randrange(100)])).scaleb(-2)
    i = rng.choice([None, 1, -(2**62), 2**62, rng.randrange(100)])
    return number, group, rng.choice([None, "x", "y" * (group % 3)]), a, b, i


def arrow(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], SCHEMA)


def sums(rows: list[Row]) -> tuple[Any, ...]:
    with localcontext(prec=100):
        return exact_sums(rows)


def exact_sums(rows: list[Row]) -> tuple[Any, ...]:
    a = [row[3] for row in rows if row[3] is not None]
    both = [(row[3], row[4]) for row in rows if row[3] is not None]
    whole = [row[5] for row in rows if row[5] is not None]
    return (
        len(rows),
        sum(a) if a else None,
        len(a),
        sum(x * (1 - y) for x, y in both) if both else None,
        sum(x * y * y for x, y in both) if both else None,
        sum(whole) if whole else None,
    )


def expected(name: str, rows: list[Row]) -> list[tuple[Any, ...]]:
    if name == "by_none":
        return [sums(rows)]
    if name == "there":
        there = {row[1] for row in rows if row[0] % 7 != 3}
        return [(len(there), sum(there) if there else None)]
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if name == "by_one":
            groups[(row[1],)].append(row)
        elif row[0] % 7 != 3:
            groups[row[1:3]].append(row)
    return [(*key, *sums(group)) for key, group in groups.items()]


def check(seed: int, groups: int, threads: int, steps: int) -> None:
    rng = random.Random(seed * 1000 + groups)
    with Database(threads=threads) as db:
        db.create_table("t", DECLARED)
        for name, query in VIEWS.items():
            db.create_view(name, query)
        there: list[Row] = []
        refused: list[str] = []
        number = 0
        for _ in range(steps):
            size = rng.choice([3, 1023, 1025, 2500])
            if there and rng.random() < 0.4:
                going = rng.sample(there, min(size, len(there)))
                db.delete("t", arrow(going))
                gone = {row[0] for row in going}
                there = [row for row in there if row[0] not in gone]
            else:
                coming = [a_row(rng, number + k, groups) for k in range(size)]
                number += size
                if rng.random() < 0.5:
                    coming.sort(key=lambda row: row[1])
                try:
                    db.insert("t", arrow(coming))
                except DataError as error:
                    refused.append(str(error))  # a sum of integers
                    continue
                there += coming
            for name in VIEWS:
                assert sorted(expected(name, there), key=repr) == sorted(db.view(name), key=repr)
        assert all("fit" in each for each in refused), refused


@pytest.mark.parametrize("groups", some_of(GROUPS, 2, 341, 342, 700))
def test_sums_over_few_groups(groups: int) -> None:
    check(0, groups, 1, 4)


@pytest.mark.long
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("seed", range(1, 4))
def test_sums_over_few_groups_at_length(seed: int, groups: int) -> None:
    check(seed, groups, 1 + seed % 2, 15)


def test_weights_of_a_group_that_do_not_fit_are_refused_and_others_count() -> None:
    with Database() as db:
        db.create_table("t", {"g": "int", "c": "int"})
        view = db.create_view("v", "SELECT g, COUNT(*) AS n, SUM(c) AS s FROM t WHERE c > 0 GROUP BY g")
        rows = [(0, 1), (0, 2), (1, 3), (0, 1)] * 16
        with pytest.raises(DataError):
            db.apply("t", rows, [2**60] * len(rows))
        db.apply("t", rows, [3] * len(rows))
        assert sorted(view) == [(0, 144, 192), (1, 48, 144)]
