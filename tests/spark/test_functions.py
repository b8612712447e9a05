"""Spark answers for each call of a function what `vectors/functions.json` says, which ivme is compared with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.functions.cases import ERROR, VECTORS, shown
from tests.functions.every import CASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
