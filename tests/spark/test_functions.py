"""Spark answers for each call of a function what `vectors/functions.json` says, which ivme is compared with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from ivme.query.expression import Call
from ivme.query.model import table
from ivme.query.table_expression import Parameters, parse_condition
from tests.functions.cases import ERROR, VECTORS, Case, literal, shown
from tests.functions.every import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NAMES = "abcdef"


def answer(spark: SparkSession, sql: str) -> str:
    from pyspark.errors import PySparkException

    try:
        value = spark.sql(f"SELECT {sql}").collect()[0][0]
    except PySparkException:
        return ERROR
    return shown(bytes(value) if isinstance(value, bytearray) else value)


@pytest.mark.long
def test_spark_answers_as_the_file_says(spark: SparkSession) -> None:
    """One session for all; about three minutes. A call that the file lacks is asked for with IVME_UPDATE_GOLDEN=1."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    known: dict[str, str] = json.loads(VECTORS.read_text("utf-8"))
    calls = [case.written(row) for cases in CASES.values() for case in cases for row in case.with_nulls()]
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        known = {sql: known.get(sql) or answer(spark, sql) for sql in calls}
        VECTORS.write_text(json.dumps(known, indent=0, ensure_ascii=False) + "\n", "utf-8")
    assert {} == {sql: found for sql in calls if (found := answer(spark, sql)) != known[sql]}


def recomputed(spark: SparkSession, case: Case) -> str:
    """A call of columns as ivme writes it for Spark, on the first row."""
    tested = parse_condition(
        f"({case.sql.format(*NAMES)}) IS NULL",
        table("T", dict(zip(NAMES, case.types, strict=False))),
        Parameters({}),
    )
    assert isinstance(tested, Call)
    columns = ", ".join(
        f"{literal(*pair)} AS {name}" for name, *pair in zip(NAMES, case.rows[0], case.types, strict=False)
    )
    return answer(spark, f"{tested.arguments[0]} FROM (SELECT {columns})")


@pytest.mark.long
def test_spark_computes_what_ivme_writes_for_it(spark: SparkSession) -> None:
    """`ivme verify` on Spark and views with parameters recompute from the calls as they are shown."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    known: dict[str, str] = json.loads(VECTORS.read_text("utf-8"))
    every = [case for cases in CASES.values() for case in cases]
    found = {case.sql: (known[case.written(case.rows[0])], recomputed(spark, case)) for case in every}
    assert {} == {sql: pair for sql, pair in found.items() if pair[0] != pair[1]}
