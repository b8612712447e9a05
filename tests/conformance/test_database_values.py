"""Values of every type, in and out, and what aggregates make of them, on both backends."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import rows_of, table_rows

# Aggregates


def test_a_sum_over_5_and_minus_5_is_a_group_with_sum_0(db: Database) -> None:
    db.create_table("R", {"a": "int", "x": "int"})
    view = db.create_view("v", "SELECT a, SUM(x) AS s, COUNT(*) AS n, AVG(x) AS m FROM R GROUP BY a")
    db.insert("R", [(1, 5), (1, -5)])
    assert list(view) == [(1, 0, 2, 0.0)]
    db.delete("R", [(1, 5), (1, -5)])
    assert list(view) == []


def test_global_aggregates_over_nothing_are_one_row(db: Database) -> None:
    db.create_table("R", {"a": "int", "x": "int"})
    text = "SELECT COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m, MIN(x) AS l, COUNT(DISTINCT x) AS d FROM R"
    view = db.create_view("v", text)
    nothing = (0, 0, None, None, None, 0)
    assert list(view) == [nothing]
    assert view.to_arrow().to_pylist() == [dict(zip(view.columns, nothing, strict=True))]
    assert nothing in view
    db.insert("R", [(1, None)])
    assert list(view) == [(1, 0, None, None, None, 0)]
    db.delete("R", [(1, None)])
    assert list(view) == [nothing]


def test_a_global_aggregate_of_an_access_request_over_nothing_is_one_row(db: Database) -> None:
    db.create_table("R", {"a": "int", "x": "int"})
    view = db.create_view("v", "SELECT COUNT(*) AS n, SUM(x) AS s FROM R WHERE a = :a")
    db.insert("R", [(1, 4)])
    assert list(view(a=1)) == [(1, 4)]
    assert list(view(a=2)) == [(0, None)]
    assert list(view(a=None)) == [(0, None)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", [3, -7, 3, 12]),
        ("string", ["b", "", "żółw", "b"]),
        ("date", [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(2024, 3, 1)]),
        (
            "timestamp",
            [datetime.datetime(2024, 1, 1, 12), datetime.datetime(1960, 1, 1), datetime.datetime(2024, 1, 2)],
        ),
        ("decimal(10, 2)", [Decimal("1.10"), Decimal("-3.00"), Decimal("99999999.99")]),
        ("decimal(38, 3)", [Decimal(10) ** 34, Decimal("-0.001"), Decimal("0.000"), -(Decimal(10) ** 34), Decimal(7)]),
        ("float", [1.5, -0.25, 1e300]),
        ("bool", [True, False, True]),
        ("binary", [b"\xff", b"", b"a\0b"]),
    ],
)
def test_min_max_and_count_distinct_follow_deletes(db: Database, kind: str, values: list[Any]) -> None:
    db.create_table("R", {"g": "int", "x": kind})
    view = db.create_view("v", "SELECT g, MIN(x) AS l, MAX(x) AS h, COUNT(DISTINCT x) AS d FROM R GROUP BY g")
    left = [*values, None]
    db.insert("R", [(1, value) for value in left])
    while left:
        known = [value for value in left if value is not None]
        expected = (1, min(known, default=None), max(known, default=None), len(set(known)))
        assert list(view) == [expected]
        assert tuple(view.to_arrow().to_pylist()[0].values()) == expected
        view.verify()
        db.delete("R", [(1, left.pop(0))])
    assert list(view) == []


def test_views_may_use_one_name_for_columns_of_different_types(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "string"})
    db.create_table("S", {"g": "int", "x": "int"})
    strings = db.create_view("v", "SELECT g, MAX(x) AS h FROM R GROUP BY g")
    numbers = db.create_view("w", "SELECT g, MAX(x) AS h FROM S GROUP BY g")
    db.insert("R", [(1, "b"), (1, "a")])
    db.insert("S", [(1, 9), (1, 70), (1, -5)])
    assert (list(strings), list(numbers)) == ([(1, "b")], [(1, 70)])


def test_decimal_sums_are_exact(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "decimal(30, 10)", "y": "decimal(12, 2)"})
    view = db.create_view("v", "SELECT g, SUM(x) AS s, SUM(y) AS t, AVG(y) AS m FROM R GROUP BY g")
    large, small = Decimal("12345678901234567890.0000000001"), Decimal("-0.0000000002")
    db.insert("R", [(1, large, Decimal("0.10")), (1, small, Decimal("0.20")), (1, None, None)])
    exact = Decimal("12345678901234567889.9999999999")
    assert list(view) == [(1, exact, Decimal("0.30"), Decimal("0.15"))]
    view.verify()
    db.delete("R", [(1, large, Decimal("0.10"))])
    assert list(view) == [(1, small, Decimal("0.20"), Decimal("0.20"))]
    assert view.to_arrow().column("s").to_pylist() == [small]


def test_a_float_group_that_is_emptied_leaves_nothing_behind(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    view = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g")
    db.insert("R", [(1, 0.1), (1, 0.2), (1, 1e17)])
    db.delete("R", [(1, 1e17), (1, 0.2), (1, 0.1)])
    assert list(view) == []
    db.insert("R", [(1, 0.5)])
    assert list(view) == [(1, 0.5)]


# NULL


def test_null_keys_never_join_and_group_with_themselves(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "int"})
    joined = db.create_view("joined", "SELECT R.a, S.c FROM R JOIN S ON R.b = S.b")
    grouped = db.create_view("grouped", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    distinct = db.create_view("distinct_", "SELECT DISTINCT b FROM R")
    changes = grouped.changes()
    db.insert("R", [(1, None), (2, None), (3, 7)])
    db.insert("S", [(None, 10), (7, 11)])
    assert list(joined) == [(3, 11)]
    assert rows_of(grouped) == [(7, 1), (None, 2)]
    assert rows_of(distinct) == [(7,), (None,)]
    assert (None, 2) in grouped
    assert (None,) in distinct
    db.delete("R", [(1, None)])
    assert list(changes) == [{(7, 1): 1, (None, 2): 1}, {(None, 2): -1, (None, 1): 1}]


def test_a_null_parameter_matches_nothing(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT b FROM R WHERE a = :a")
    db.insert("R", [(None, 1), (2, 3)])
    assert list(view(a=None)) == []
    assert list(view(a=2)) == [(3,)]
    assert view.multiplicity((1,), a=None) == 0


# Forms of data


@pytest.mark.parametrize(
    ("type_", "asked", "shown"), [("int", 3.0, "3"), ("float", 3, "3.0"), ("decimal(5,0)", 3, "3")]
)
def test_a_request_shows_the_value_of_the_column_however_it_was_asked_for(
    db: Database, type_: str, asked: Any, shown: str
) -> None:
    db.create_table("numbers", {"n": type_})
    view = db.create_view("same", "SELECT n FROM numbers WHERE n = :n")
    db.insert("numbers", [(3,)])
    assert [shown] == [str(n) for (n,) in view(n=asked)]
    assert [shown] == [str(n) for (n,), _ in view.items(n=asked)]


def test_rows_come_in_every_form(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "string"})
    view = db.create_view("v", "SELECT a, b FROM R")
    forms: list[Any] = [
        [(1, "x"), (2, None)],
        [{"b": "x", "a": 1}, {"a": 2, "b": None}],
        iter([(1, "x"), [2, None]]),
        pd.DataFrame({"b": ["x", None], "a": [1, 2]}),
        pl.DataFrame({"a": [1, 2], "b": ["x", None]}),
        pa.table({"a": [1, 2], "b": ["x", None]}),
        pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", None]}),
        pa.table({"a": pa.array([1, 2], pa.int8()), "b": pa.array(["x", None]).dictionary_encode()}),
        np.array([(1, "x"), (2, None)], dtype=[("a", "i4"), ("b", object)]),
    ]
    for form in forms:
        db.insert("R", form)
    assert dict(view.items()) == {(1, "x"): len(forms), (2, None): len(forms)}
    db.create_table("N", {"a": "int", "b": "int"})
    db.insert("N", np.array([[1, 2], [3, 4]]))
    assert table_rows(db, "N") == {(1, 2): 1, (3, 4): 1}


def test_results_come_back_in_the_types_of_the_columns(db: Database) -> None:
    types = {
        "i": "int",
        "f": "float",
        "d": "decimal(8, 3)",
        "w": "decimal(30, 2)",
        "s": "string",
        "b": "bool",
        "day": "date",
        "t": "timestamp",
        "x": "binary",
    }
    db.create_table("R", types)
    view = db.create_view("v", f"SELECT {', '.join(types)} FROM R")
    row = (
        2**63 - 1,
        -0.5,
        Decimal("1.250"),
        Decimal("-12345678901234567890.10"),
        "ż",
        True,
        datetime.date(2020, 2, 29),
        datetime.datetime(2020, 2, 29, 1, 2, 3, 4),
        b"\0",
    )
    db.insert("R", [row, (None,) * len(types)])
    assert set(view) == {row, (None,) * len(types)}
    arrow = view.to_arrow()
    assert [str(field.type) for field in arrow.schema] == [
        "int64",
        "double",
        "decimal128(8, 3)",
        "decimal128(30, 2)",
        "string",
        "bool",
        "date32[day]",
        "timestamp[us]",
        "binary",
    ]
    assert {tuple(each.values()) for each in arrow.to_pylist()} == {row, (None,) * len(types)}
    assert list(view.to_pandas().columns) == list(types)
    empty = db.create_view("w", "SELECT i, d FROM R WHERE s = :s").to_arrow(s="nowhere")
    assert (empty.num_rows, [str(f.type) for f in empty.schema]) == (0, ["int64", "decimal128(8, 3)"])


def test_columns_of_different_number_types_join(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    db.create_table("S", {"a": "decimal(10, 2)"})
    db.create_table("T", {"a": "float"})
    decimals = db.create_view("v", "SELECT COUNT(*) AS n FROM R JOIN S ON R.a = S.a")
    floats = db.create_view("w", "SELECT COUNT(*) AS n FROM R JOIN T ON R.a = T.a")
    db.insert("R", [(1,), (2,)])
    db.insert("S", [(Decimal("1.00"),), (Decimal("1.50"),)])
    db.insert("T", [(2.0,), (2.5,)])
    assert (decimals.scalar(), floats.scalar()) == (1, 1)


def test_empty_tables_and_empty_changes_are_fine(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    feed = view.changes()
    forms: list[Any] = [
        [],
        (),
        pd.DataFrame({"a": [], "b": []}),
        pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}),
    ]
    for rows in forms:
        db.insert("R", rows)
        db.delete("R", rows, strict=False)
    with db.batch():
        pass
    assert (list(view), list(feed), view.to_arrow().num_rows) == ([], [], 0)
    view.verify()


def test_a_scalar_is_the_only_value_of_the_only_row(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    forms: list[list[Any]] = [[], [(1,), (2,)]]
    for rows in forms:
        db.insert("R", rows)
        with pytest.raises(DataError, match="not a single value"):
            view.scalar()
    db.delete("R", [(1,)])
    assert view.scalar() == 2


def test_a_row_of_another_width_is_no_row_of_the_view(db: Database) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    with pytest.raises(DataError, match="1 columns: a"):
        view.multiplicity((1, 2))
    assert [1] not in view


def test_a_decimal_sum_of_more_than_38_digits_is_refused(db: Database) -> None:
    db.create_table("R", {"x": "decimal(38, 0)"})
    view = db.create_view("v", "SELECT SUM(x) AS s FROM R")
    with pytest.raises(DataError, match=r"column s of view v does not fit.*38 digits.*nothing was changed"):
        db.insert("R", [(Decimal("8e37"),), (Decimal("4e37"),)])
    db.insert("R", [(Decimal("8e37"),), (Decimal("4e37"),), (Decimal("-4e37"),)])
    db.apply("R", [(Decimal("8e37"),), (Decimal("-8e37"),)], 10**18)
    db.delete("R", [(Decimal("8e37"),)])
    assert view.scalar() == 0


@pytest.mark.parametrize("rows", [[(1, math.inf)], [(1, -math.inf)], [(1, 1e308), (1, 1.5e308)]])
def test_a_float_sum_that_is_not_finite_is_infinite_and_later_sums_are_right(db: Database, rows: list[Any]) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    db.create_table("S", {"g": "int"})
    db.insert("S", [(1,), (2,)])
    view = db.create_view("v", "SELECT R.g, SUM(x) AS s, AVG(x) AS m FROM R JOIN S ON R.g = S.g GROUP BY R.g")
    db.insert("R", [(1, 0.5), (1, 1.0)])
    db.insert("R", rows)
    assert list(view) == [(1, math.copysign(math.inf, rows[0][1]), math.copysign(math.inf, rows[0][1]))]
    view.verify()
    db.delete("R", [(1, 1.0), *rows])
    assert list(view) == [(1, 0.5, 0.5)]


def test_a_column_may_hold_infinities(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    db.insert("R", [(1, math.inf), (1, -math.inf), (1, 2.0)])
    assert list(db.create_view("v", "SELECT g, MIN(x) AS a, MAX(x) AS b, COUNT(x) AS n FROM R GROUP BY g")) == [
        (1, -math.inf, math.inf, 3)
    ]
    sums = db.create_view("s", "SELECT SUM(x) AS s FROM R")
    assert math.isnan(sums.scalar())
    sums.verify()
    db.delete("R", [(1, -math.inf)])
    assert sums.scalar() == math.inf
    db.delete("R", [(1, math.inf)])
    assert sums.scalar() == 2.0
