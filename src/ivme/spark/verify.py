"""`ivme verify`: every view against plain Spark SQL over the sources, row by row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.compile import parse
from ivme.pipeline.model import TableSource
from ivme.query.model import Query, Table
from ivme.spark.directory import Directory
from ivme.spark.driver import Driver
from ivme.spark.load import load_frame
from ivme.spark.recompute import view_frame
from ivme.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5
_COUNT = "ivme count"


@dataclass(frozen=True, slots=True)
class Compared:
    """A view and what Spark says: how many rows both have, and those that only one of them has."""

    view: str
    rows: int
    seconds: float
    differences: tuple[str, ...] = ()


def verify_pipeline(driver: Driver) -> Iterator[Compared]:
    """Compares the views one after the other."""
    frames = {source.table.name: table_frame(driver, source).cache() for source in driver.pipeline.tables}
    known: list[Table] = [source.table for source in driver.pipeline.tables]
    try:
        for text in driver.pipeline.views:
            start = time.perf_counter()
            query = replace(parse(text.query, tuple(known)), name=text.name)
            frame = view_frame(driver.spark, text.query, query, frames)
            view = driver.database.view(text.name)
            yield _compare(view, query, frame, start)
            if not query.input:
                frames[text.name] = frame.toDF(*view.columns)
                known.append(driver.database.relation(text.name))
    finally:
        for source in driver.pipeline.tables:
            frames[source.table.name].unpersist()


def table_frame(driver: Driver, source: TableSource) -> DataFrame:
    """The rows of a table from its sources: what was loaded, and the changes that were applied, added up.

    A stream cannot be read again, so that its table is taken from the database.
    """
    from pyspark.sql import functions as sf

    table = source.table
    if source.changes is not None and source.changes.kind == "stream":
        rows, weights = driver.database.contents(table.name)
        return _expanded(driver.spark.createDataFrame(rows.append_column(_COUNT, weights)))
    parts = []
    if source.load is not None:
        parts.append(load_frame(driver.spark, source.load, table, driver.loaded_version(table.name)))
        parts[0] = parts[0].withColumn(_COUNT, sf.lit(1).cast("bigint"))
    parts += _changes(driver, table)
    if not parts:
        rows, weights = driver.database.contents(table.name)
        return driver.spark.createDataFrame(rows.slice(0, 0))
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    counted = together.groupBy(*(f"`{name}`" for name in table.column_names)).agg(sf.sum(f"`{_COUNT}`").alias(_COUNT))
    return _expanded(counted) if len(parts) > 1 else together.drop(_COUNT)


def _changes(driver: Driver, table: Table) -> list[DataFrame]:
    source = driver.sources.get(table.name)
    if source is None:
        return []
    if isinstance(source, Directory):
        names = driver.journal.applied(table.name, driver.reached)
        paths = [source.folder / name for name in names]
        return [source.frame(paths).withColumnRenamed("_weight", _COUNT)] if paths else []
    last = driver.journal.last_of(table.name)
    if last is None:
        return []
    delta = source.read({"first": source.first(), "last": last.plan["last"]})
    return [driver.spark.createDataFrame(delta.rows.append_column(_COUNT, pa.array(delta.weights)))]


def _expanded(counted: DataFrame) -> DataFrame:
    """Each row as often as its count says."""
    from pyspark.sql import functions as sf

    times = sf.explode(sf.sequence(sf.lit(1), sf.col(f"`{_COUNT}`")))
    return counted.where(sf.col(f"`{_COUNT}`") > 0).select("*", times.alias("ivme copy")).drop(_COUNT, "ivme copy")


def _compare(view: View, query: Query, frame: DataFrame, start: float) -> Compared:
    schema = view.change_schema
    expected = frame.toDF(*_numbered(schema)).toArrow()
    seconds = time.perf_counter() - start
    if query.input:
        requests = expected.select(_numbered(schema)[: len(query.input)])
        requests = requests.group_by(requests.column_names).aggregate([])
        columns = {name: requests.column(i).combine_chunks() for i, name in enumerate(query.parameters)}
        columns = {name: c.cast(schema.field(i).type) for i, (name, c) in enumerate(columns.items())}
        actual = view.request_many(**columns)
    else:
        actual = view.to_arrow()
    actual = actual.rename_columns(_numbered(schema))
    types = pa.schema(zip(_numbered(schema), schema.types, strict=True))
    found = differences(expected.cast(types), actual.cast(types))
    return Compared(view.name, actual.num_rows, seconds, found)


def _numbered(schema: pa.Schema) -> list[str]:
    return [f"c{i}" for i in range(len(schema))]


def differences(expected: pa.Table, actual: pa.Table) -> tuple[str, ...]:
    """Rows that are in one table more often than in the other, as texts, the first few of them."""
    if not expected.column_names:
        return () if expected.num_rows == actual.num_rows else (f"{actual.num_rows} rows, not {expected.num_rows}",)
    signed = [
        table.append_column(_COUNT, pa.array(np.full(table.num_rows, sign, dtype=np.int64)))
        for table, sign in ((expected, -1), (actual, 1))
    ]
    net = pa.concat_tables(signed).group_by(expected.column_names).aggregate([(_COUNT, "sum")])
    left = net.filter(pc.not_equal(net.column(f"{_COUNT}_sum"), 0)).to_pylist()
    counts = [(tuple(row[name] for name in expected.column_names), row[f"{_COUNT}_sum"]) for row in left]
    return tuple(_told(row, count) for row, count in _beyond_rounding(counts)[:_SHOWN])


def _beyond_rounding(counts: list[tuple[tuple[Any, ...], int]]) -> list[tuple[tuple[Any, ...], int]]:
    """Without the rows that differ in the last digits of floats only, since sums depend on the order of additions."""
    if not any(isinstance(value, float) for row, _ in counts for value in row):
        return counts
    net: dict[tuple[Any, ...], int] = {}
    for row, count in counts:
        key = tuple(float(f"{value:.9e}") if isinstance(value, float) else value for value in row)
        net[key] = net.get(key, 0) + count
    return [(row, count) for row, count in net.items() if count]


def _told(row: tuple[Any, ...], count: int) -> str:
    return f"{row!r} is there {abs(count)} times too {'often' if count > 0 else 'seldom'}"
