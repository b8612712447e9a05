"""Aggregates against Spark itself: its values, its types, and the texts that `ivme verify` makes of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ivme.database import Database
from ivme.query.model import table
from ivme.query.parse import parse
from ivme.spark.pipeline.recompute import query_frame
from tests.aggregate_calls import CALLS, SCHEMA, assert_same, some_rows

NOT_SPARKS = ("GROUP_CONCAT", "STRING_AGG(t.s, '' ORDER BY", "LISTAGG(t.s, ',') WITHIN GROUP (ORDER BY t.i DESC)")
OPEN = ("ANY_VALUE", "STRING_AGG", "ARRAY_AGG", "COLLECT", "MAX_BY", "MIN_BY", "MODE(t", "APPROX")
"""Where Spark has no such text, or may answer otherwise with the same rows."""

COLUMNS = "g BIGINT, b BOOLEAN, i BIGINT, f DOUBLE, d DECIMAL(6, 2), s STRING, day DATE"


def selected(calls: list[str]) -> str:
    return f"SELECT g, {', '.join(f'{call} AS c{number}' for number, call in enumerate(calls))} FROM t GROUP BY g"


def filled(calls: list[str]) -> tuple[list[Any], Any]:
    db = Database()
    db.create_table("t", SCHEMA)
    view = db.create_view("v", selected(calls))
    rows = some_rows(random.Random(8), 60)
    db.insert("t", rows)
    return rows, view


def compare(calls: list[str], wanted: list[Any], found: Any) -> None:
    mine = {row[0]: row[1:] for row in found}
    assert len(wanted) == len(mine) == 3
    for row in wanted:
        for call, value, other in zip(calls, row[1:], mine[row[0]], strict=True):
            assert_same(call.replace("MODE", "mode"), value, other)


def parts(calls: list[str]) -> list[list[str]]:
    """Calls that Spark takes together: with DISTINCT each alone."""
    distinct = [call for call in calls if "DISTINCT" in call]
    return [[call for call in calls if call not in distinct], *([call] for call in distinct)]


SPARKS = [call for call in CALLS if not call.startswith(OPEN) and not call.startswith(NOT_SPARKS)]


@pytest.mark.parametrize("calls", parts(SPARKS), ids=lambda calls: calls[0])
def test_values_and_types_are_those_of_spark(spark: SparkSession, calls: list[str]) -> None:
    rows, view = filled(calls)
    spark.createDataFrame(rows, COLUMNS).createOrReplaceTempView("t")
    frame = spark.sql(selected(calls))
    compare(calls, [tuple(row) for row in frame.collect()], view)
    types = [field.dataType.simpleString().split("(")[0] for field in frame.schema]
    named = {"int64": "bigint", "double": "double", "bool": "boolean", "string": "string", "date32[day]": "date"}
    mine = [named.get(str(field.type), str(field.type).split("128")[0]) for field in view.to_arrow().schema]
    assert types == mine


@pytest.mark.long
@pytest.mark.parametrize("calls", parts(list(CALLS)), ids=lambda calls: calls[0])
def test_every_aggregate_has_a_text_that_spark_verifies_it_by(spark: SparkSession, calls: list[str]) -> None:
    rows, view = filled(calls)
    frames = {"t": spark.createDataFrame(rows, COLUMNS)}
    query = parse(selected(calls), (table("t", SCHEMA),))
    compare(calls, [tuple(row) for row in query_frame(query, frames).collect()], view)
