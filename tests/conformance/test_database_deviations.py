"""STDDEV and VARIANCE as Spark has them: of a sample, NULL for one value, floats from exact sums. On both backends."""

from __future__ import annotations

import math
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import SchemaError, UnsupportedError
from tests.databases import rows_of

LARGEST = 2**63 - 1
BOTH = "SELECT k, VARIANCE(x) AS v, STDDEV(x) AS s FROM R GROUP BY k"


def exact(values: list[Any]) -> float:
    """The sample variance by definition, rounded once."""
    mean = sum(map(Fraction, values)) / len(values)
    return float(sum((Fraction(value) - mean) ** 2 for value in values) / (len(values) - 1))


def made(db: Database, type_: str, query: str = BOTH) -> Any:
    db.create_table("R", {"k": "int", "x": type_})
    return db.create_view("v", query)


def test_the_spellings_are_those_of_spark(db: Database) -> None:
    db.create_table("R", {"x": "int"})
    calls = ("STDDEV(x)", "STDDEV_SAMP(x)", "VARIANCE(x)", "VAR_SAMP(x)")
    view = db.create_view("v", f"SELECT {', '.join(f'{call} AS c{i}' for i, call in enumerate(calls))} FROM R")
    rules = [db.create_view(f"w{i}", f"Q({call.upper()}) = R(X)") for i, call in enumerate(calls)]
    db.insert("R", [(2,), (4,), (4,), (4,), (5,), (5,), (7,), (9,)])
    assert [(math.sqrt(32 / 7), math.sqrt(32 / 7), 32 / 7, 32 / 7)] == list(view)
    assert [math.sqrt(32 / 7), math.sqrt(32 / 7), 32 / 7, 32 / 7] == [rule.scalar() for rule in rules]
    assert ["double"] * 4 == [str(field.type) for field in view.to_arrow().schema]


def test_one_value_has_none_and_nulls_do_not_count(db: Database) -> None:
    view = made(db, "int")
    total = db.create_view("total", "SELECT STDDEV(x) AS s FROM R")
    assert [(None,)] == list(total)
    db.insert("R", [(1, 5), (1, None), (2, None), (3, 1), (3, None), (3, 2)])
    assert [(1, None, None), (2, None, None), (3, 0.5, math.sqrt(0.5))] == rows_of(view)
    db.insert("R", [(1, 5)])
    assert (1, 0.0, 0.0) in view
    db.delete("R", [(1, 5), (3, 1), (3, 2)])
    assert [(1, None, None), (2, None, None), (3, None, None)] == rows_of(view)
    view.verify()
    total.verify()


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int", [LARGEST, -LARGEST, LARGEST - 1, 0]),
        ("int", [LARGEST, LARGEST, LARGEST - 1]),
        ("decimal(12, 2)", [Decimal("0.01"), Decimal("9999999999.99"), Decimal("-3.50")]),
        ("decimal(19, 19)", [Decimal("0.9999999999999999999"), Decimal("0.9999999999999999998"), Decimal(0)]),
        ("decimal(19, 0)", [Decimal(10**19 - 1), Decimal(1 - 10**19), Decimal(7)]),
        ("float", [1e9 + 1, 1e9 + 2, 1e9 + 4]),
        ("float", [0.1, 0.2, 0.30000000000000004, -1e-9]),
        ("float", [1e150, -1e150, 3.0]),
    ],
)
def test_sums_are_exact_and_the_quotient_is_rounded_once(db: Database, type_: str, values: list[Any]) -> None:
    view = made(db, type_)
    db.insert("R", [(1, value) for value in values])
    db.insert("R", pa.table({"k": [2] * len(values), "x": values}))
    variance = exact(values)
    assert [(k, variance, math.sqrt(variance)) for k in (1, 2)] == rows_of(view)
    assert [variance] * 2 == view.to_arrow().column("v").to_pylist()
    view.verify()


def test_a_value_that_came_and_went_leaves_no_trace(db: Database) -> None:
    view = made(db, "float")
    db.insert("R", [(1, 0.5), (1, 1.5)])
    for extreme in (1e308, 1e155, 1e-300):
        db.insert("R", [(1, extreme)])
        view.verify()
        db.delete("R", [(1, extreme)])
    assert [(1, 0.5, math.sqrt(0.5))] == rows_of(view)


def test_a_square_beyond_the_floats_is_infinite(db: Database) -> None:
    view = made(db, "float")
    db.insert("R", [(1, 1e200), (1, 2e200)])
    assert [(1, math.inf, math.inf)] == rows_of(view)
    view.verify()


def test_over_joins_each_value_counts_as_often_as_it_is_joined(db: Database) -> None:
    view_text = (
        "SELECT S.g, STDDEV(R.x) AS s, VARIANCE(S.w) AS w, SUM(R.x) AS t FROM R JOIN S ON R.k = S.k GROUP BY S.g"
    )
    db.create_table("S", {"k": "int", "g": "int", "w": "float"})
    view = made(db, "int", view_text)
    db.insert("R", [(1, 10), (1, 20), (2, 30)])
    db.insert("S", [(1, 7, 0.5), (1, 7, 1.5), (2, 7, 2.0), (2, 8, 1.0)])
    joined, weights = [10, 20, 10, 20, 30], [0.5, 0.5, 1.5, 1.5, 2.0]
    assert [(7, statistics.stdev(joined), exact(weights), 90), (8, None, None, 30)] == rows_of(view)
    view.verify()
    db.delete("S", [(1, 7, 0.5)])
    view.verify()


@pytest.mark.parametrize("strategy", ["view-tree", "skew", "classical", "recursive", "factorised", "recompute"])
def test_every_strategy_keeps_them(db: Database, strategy: str) -> None:
    db.create_table("S", {"b": "int", "y": "int"})
    db.create_table("T", {"a": "int", "b": "int", "x": "float"})
    query = "SELECT a, STDDEV(x) AS s, VARIANCE(y) AS v FROM T JOIN S ON T.b = S.b GROUP BY a"
    view = db.create_view("v", query, strategy=strategy)
    db.insert("T", [(i % 3, i % 4, i / 7) for i in range(40)])
    db.insert("S", [(i % 4, i * i) for i in range(20)])
    view.verify()
    db.delete("T", [(i % 3, i % 4, i / 7) for i in range(0, 40, 3)])
    view.verify()


def test_changes_of_a_followed_view_are_told(db: Database) -> None:
    view = made(db, "int")
    changes = view.changes()
    db.insert("R", [(1, 1)])
    db.insert("R", [(1, 3)])
    assert [{(1, None, None): 1}, {(1, None, None): -1, (1, 2.0, math.sqrt(2.0)): 1}] == [
        dict(each) for each in changes
    ]
    above = db.create_view("above", "SELECT COUNT(*) AS n FROM v WHERE s > 1")
    assert [(1,)] == list(above)


def test_what_they_do_not_take_is_refused(db: Database) -> None:
    db.create_table("R", {"t": "string", "d": "decimal(20, 0)"})
    with pytest.raises(UnsupportedError, match="CAST the column to a number"):
        db.create_view("v", "SELECT STDDEV(t) AS s FROM R")
    with pytest.raises(SchemaError, match="CAST it to DOUBLE"):
        db.create_view("v", "SELECT STDDEV(d) AS s FROM R")
    db.create_view("v", "SELECT STDDEV(CAST(d AS DOUBLE)) AS s FROM R")
    with pytest.raises(SchemaError, match="CAST it to DOUBLE"):
        db.create_view("w", "SELECT STDDEV(DISTINCT d) AS s FROM R")
