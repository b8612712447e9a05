"""Arrays and structs are compared and ordered as Spark does, and go through a pipeline."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest.rows import to_arrow
from ivme.pipeline import read_pipeline
from ivme.query.model import table
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.verify import verify_pipeline
from tests.nested_values import EQUALITIES, ORDERS, R, S, some_others, some_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple) and not hasattr(value, "asDict"):
        return [_plain(each) for each in value]
    found = value.asDict() if hasattr(value, "asDict") else value
    return {name: _plain(each) for name, each in found.items()} if hasattr(found, "items") else found


def _shown(rows: Any) -> list[str]:
    return sorted(repr([_plain(value) for value in row]) for row in rows)


def test_views_are_sparks(spark: SparkSession) -> None:
    choose, db = random.Random(3), Database()
    made = {"r": (R, some_rows(choose, 60)), "s": (S, some_others(choose, 20))}
    for name, (schema, rows) in made.items():
        db.create_table(name, schema)
        db.insert(name, rows)
        spark.createDataFrame(to_arrow(rows, table(name, schema))).createOrReplaceTempView(name)
    for name, text in {**EQUALITIES, **ORDERS}.items():
        written = text.replace("VARCHAR[]", "ARRAY<STRING>")
        view = db.create_view(name.replace(" ", "_"), written)
        assert _shown(map(tuple, spark.sql(written).collect())) == _shown(view), name
    ordered = "SELECT tags, id FROM r ORDER BY tags DESC, id"
    view = db.create_view("ordered", ordered)
    assert [_plain(row) for row in map(tuple, spark.sql(ordered).collect())] == [_plain(row) for row in view]


PIPELINE = """\
name: nested
state: {folder}/state
tables:
  r:
    columns:
      id: int
      tags: array<string>
      place: struct<x int, y float>
    load:
      format: parquet
      path: {folder}/rows.parquet
views:
  counted:
    sql: SELECT tags, place, COUNT(*) AS n FROM r GROUP BY tags, place
sinks:
  out:
    view: counted
    format: parquet
    path: {folder}/out
"""


def test_arrays_go_through_a_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    declared = table("r", S)
    rows = to_arrow(some_others(random.Random(8), 40), declared)
    pq.write_table(rows.cast(arrow_schema(declared)), tmp_path / "rows.parquet")
    (tmp_path / "pipeline.yml").write_text(PIPELINE.format(folder=tmp_path), "utf-8")
    driver = Driver(spark, read_pipeline(tmp_path / "pipeline.yml"))
    try:
        run(driver, once=True)
        assert [()] * 2 == [compared.differences for compared in verify_pipeline(driver)]
        expected = driver.database.view("counted").to_arrow()
    finally:
        driver.close()
    found = spark.read.parquet(f"{tmp_path}/out").toArrow()
    assert expected.num_rows == found.num_rows
    assert pa.types.is_list(found.schema.field("tags").type)
