"""Comparisons between types are Spark's: views answer what Spark answers for the same texts and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ivme.query.model import table
from ivme.query.parse import parse
from ivme.spark.pipeline.recompute import view_frame
from tests.regressions.test_equalities_between_types import ANSWERS, REQUESTS, ROWS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK = {"int": "bigint", "float": "double", "timestamp": "timestamp_ntz"}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    made = {}
    for name, schema in TABLES.items():
        columns = ", ".join(f"{column} {SPARK.get(type_, type_)}" for column, type_ in schema.items())
        made[name] = spark.createDataFrame(ROWS[name], columns).coalesce(1)
    return made


def read(spark: SparkSession, frames: dict[str, DataFrame], query: str) -> list[tuple[Any, ...]]:
    parsed = parse(query, tuple(table(name, schema) for name, schema in TABLES.items()))
    return [tuple(row) for row in view_frame(spark, query, parsed, frames).collect()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [pytest.param(*each, marks=pytest.mark.long if number % 2 else ()) for number, each in enumerate(ANSWERS)],
)
def test_spark_answers_alike(
    spark: SparkSession, frames: dict[str, DataFrame], query: str, expected: list[Any]
) -> None:
    found = read(spark, frames, query)
    assert sorted(found) == sorted(expected)
    assert {tuple(map(type, row)) for row in found} == {tuple(map(type, row)) for row in expected}


@pytest.mark.parametrize(("query", "request_", "expected"), REQUESTS[:3])
def test_spark_answers_requests_alike(
    spark: SparkSession, frames: dict[str, DataFrame], query: str, request_: dict[str, Any], expected: list[Any]
) -> None:
    given = tuple(request_.values())
    found = [row[len(given) :] for row in read(spark, frames, query) if row[: len(given)] == given]
    assert sorted(found) == expected
