"""Decimals that do not fit their column are refused, and none becomes another number.

Arrow does not look at the digits of numbers in CSV that it moves the point of, nor at those of data that come from
elsewhere, and what goes over the end of 128 bits is lost. 12 was stored in a column `decimal(3, 2)`;
999999999999999999 was 186471204942301.4128 in a column `decimal(18, 4)`, and 27737044 was 628.2722 in a column
`decimal(38, 35)`, from CSV, from JSON, and from numbers of Arrow of another type; 7e-34 was 0.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ivme
from ivme.errors import DataError

ROWS = [1, 3000]


def table_of(digits: str, **options: Any) -> ivme.Database:
    db = ivme.Database(**options)
    db.create_table("t", {"a": f"decimal({digits})"})
    db.create_view("total", "SELECT SUM(a) AS a, COUNT(*) AS n FROM t")
    return db


def decimals(precision: int, scale: int, numbers: Sequence[int | None]) -> pa.Array:
    """Numbers without their points, whatever they are; where there is none, there are other digits."""
    words = b"".join((12**30 if n is None else n).to_bytes(16, "little", signed=True) for n in numbers)
    valid = pa.py_buffer(np.packbits([n is not None for n in numbers], bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(numbers), [valid, pa.py_buffer(words)])


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        ("8, 2", "1000000"),
        ("3, 2", "12"),
        ("3, 2", "1e1"),
        ("18, 4", "999999999999999999"),
        ("18, 18", "-5"),
        ("30, 10", "99999999999999999999999999"),
        ("38, 38", "1"),
        ("38, 35", "27737044"),
        ("38, 21", "9774330324467377927e17"),
        ("18, 3", "710952025e-42"),
    ],
)
@pytest.mark.parametrize("rows", ROWS)
def test_a_number_of_a_csv_file_with_too_many_digits_is_refused(
    digits: str, text: str, rows: int, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "0\n" * (rows - 1) + f"{text}\n")
    db = table_of(digits)
    for load in (lambda: db.insert("t", path), lambda: db.sql(f"COPY t FROM '{path}'")):
        with pytest.raises(DataError, match="is not of type decimal"):
            load()
    assert not list(db.table("t"))


@pytest.mark.parametrize(("precision", "scale"), [(8, 2), (18, 4), (18, 0), (19, 3), (30, 4), (38, 0)])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_of_arrow_with_too_many_digits_are_refused(precision: int, scale: int, rows: int, threads: int) -> None:
    most = 10**precision - 1
    db = table_of(f"{precision}, {scale}", threads=threads)
    for number in (most + 1, -most - 1, 2**64 + 5, -(2**64), 2**63, -(2**63), 2**127 - 1):
        if abs(number) <= most:
            continue
        batch = pa.record_batch([decimals(precision, scale, [0] * (rows - 1) + [number])], ["a"])
        pieces = pa.table({"a": pa.chunked_array([batch.column(0), batch.column(0)])})
        for given in (batch, batch.slice(rows - 1), pa.Table.from_batches([batch]), pieces):
            with pytest.raises(DataError, match="more digits than decimal"):
                db.insert("t", given)
            with pytest.raises(DataError, match="more digits than decimal"):
                db.apply_batches([{"t": given}])
    assert [(None, 0)] == list(db.view("total"))


NUMBERS = [
    pa.array([27737044], pa.int64()),
    pa.array([27737044], pa.uint64()),
    pa.array([Decimal(27737044)], pa.decimal128(38, 0)),
    pa.array([Decimal(27737044)], pa.decimal128(10, 2)),
    pa.array([Decimal(27737044)], pa.decimal256(76, 2)),
]


@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda each: str(each.type))
def test_a_number_of_another_type_that_does_not_fit_is_refused(numbers: pa.Array) -> None:
    db = table_of("38, 35")
    with pytest.raises(DataError, match="more digits than decimal"):
        db.insert("t", pa.table({"a": numbers}))
    other = table_of("38, 30")
    other.insert("t", pa.table({"a": numbers}))
    assert [(Decimal(27737044), 1)] == list(other.view("total"))


@pytest.mark.parametrize("text", ["27737044", "33747943046976", "1e30", "710952025e-60"])
def test_a_number_of_a_json_file_that_does_not_fit_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(f'{{"a": "{text}"}}\n')
    db = table_of("38, 35")
    with pytest.raises(DataError, match="cannot be read as json"):
        db.insert("t", path)


def test_numbers_of_many_digits_that_fit_are_taken_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    texts = ["123.5" + "0" * 60, "0.1e2", " 7 ", "-999." + "9" * 35, "0e99", "1e-35", ".5", ""]
    path.write_text("n,a\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts)))
    db = ivme.Database()
    db.create_table("t", {"n": "int", "a": "decimal(38, 35)"})
    db.insert("t", path)
    with localcontext(prec=100):
        expected = [(number, Decimal(text) if text else None) for number, text in enumerate(texts)]
        assert expected == sorted(db.table("t"))


@pytest.mark.parametrize(("precision", "scale"), [(8, 2), (18, 4), (19, 3), (30, 4)])
def test_the_largest_numbers_are_taken_and_what_is_behind_a_null_does_not_count(precision: int, scale: int) -> None:
    most, some = 10**precision - 1, random.Random(precision)
    numbers = [some.choice([most, -most, 0, None, some.randrange(-most, most)]) for _ in range(3000)]
    rows = pa.record_batch([decimals(precision, scale, numbers)], ["a"]).slice(7)
    db = table_of(f"{precision}, {scale}")
    db.insert("t", rows)
    with localcontext(prec=100):
        expected = sum((Decimal(n).scaleb(-scale) for n in numbers[7:] if n is not None), Decimal(0))
        assert [(expected, 2993)] == list(db.view("total"))
