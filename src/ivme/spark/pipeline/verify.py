"""`ivme verify`: every view against plain Spark SQL over the sources, row by row."""

from __future__ import annotations

import itertools
import math
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ivme.engine.codes.nested_values import comparable_table, python_values, restored
from ivme.engine.runtime.view_state import ViewState
from ivme.ordered_view import OrderedView
from ivme.pipeline.model import WEIGHT, TableSource
from ivme.query.block_names import view_of_block
from ivme.query.model import Aggregate, Query, Table
from ivme.query.parse import is_sql
from ivme.query.shape import is_shape, view_shape
from ivme.spark.pipeline.directory import Directory
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.load import load_frame
from ivme.spark.pipeline.recompute import view_frame
from ivme.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5
_GUESSES = 10_000
_COUNT = "ivme count"
_RECURSIVE = re.compile(r"\bWITH\s+RECURSIVE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Compared:
    """A table or view and what Spark says: how many rows both have, and those that only one of them has."""

    name: str
    rows: int
    seconds: float
    differences: tuple[str, ...] = ()
    note: str = ""
    """Why Spark was not asked."""


def verify_pipeline(driver: Driver) -> Iterator[Compared]:
    """Compares the tables, then the views, one after the other."""
    gone = {source.table.name: _gone(driver, source) for source in driver.pipeline.tables}
    frames = {
        source.table.name: (
            _database_frame(driver, source.table.name) if gone[source.table.name] else table_frame(driver, source)
        ).cache()
        for source in driver.pipeline.tables
    }
    known: list[Table] = [source.table for source in driver.pipeline.tables]
    try:
        for source in driver.pipeline.tables:
            if gone[source.table.name]:
                rows = int(driver.database.contents(source.table.name)[1].sum())
                note = f"as the database has it: {gone[source.table.name]} of its files are gone"
                yield Compared(source.table.name, rows, 0.0, note=note)
            elif source.changes is None or source.changes.kind != "stream":
                yield _compare_table(driver, source.table, frames[source.table.name])
        for text in driver.pipeline.views:
            start = time.perf_counter()
            functions = driver.database.definitions.functions.defined
            query = view_shape(text.query, tuple(known), text.name, functions)
            view = driver.database.definitions.map_view(text.name)
            note = _note(driver, view, query, text.query)
            if note:
                view.verify()
                rows = view.count() if not query.input else 0
                yield Compared(text.name, rows, time.perf_counter() - start, note=f"computed again by ivme: {note}")
                if not query.input:
                    frames[text.name] = _database_frame(driver, text.name)
                    known.append(driver.database.relation(text.name))
                continue
            frame = view_frame(driver.spark, text.query, query, frames, dict(text.options))
            yield _compare(view, query, frame, start)
            if not query.input:
                frames[text.name] = frame.toDF(*view.columns)
                known.append(driver.database.relation(text.name))
    finally:
        for source in driver.pipeline.tables:
            frames[source.table.name].unpersist()


def _gone(driver: Driver, source: TableSource) -> int:
    """How many files that were applied are there no longer, as they are once somebody archives them."""
    changes = driver.sources.get(source.table.name)
    if not isinstance(changes, Directory):
        return 0
    applied = driver.journal.applied(source.table.name, driver.reached)
    return sum(not (changes.folder / file.name).exists() for file in applied)


def table_frame(driver: Driver, source: TableSource) -> DataFrame:
    """The rows of a table from its sources: what was loaded, and the changes that were applied, added up.

    A stream cannot be read again, so that its table is taken from the database.
    """
    from pyspark.sql import functions as sf

    table = source.table
    if source.changes is not None and source.changes.kind == "stream":
        return _database_frame(driver, table.name)
    parts = []
    if source.load is not None:
        parts.append(load_frame(driver.spark, source.load, table, driver.loaded_version(table.name)))
        parts[0] = parts[0].withColumn(_COUNT, sf.lit(1).cast("bigint"))
    parts += _changes(driver, table)
    if not parts:
        return driver.spark.createDataFrame(driver.database.contents(table.name)[0].slice(0, 0))
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    counted = together.groupBy(*(f"`{name}`" for name in table.column_names)).agg(sf.sum(f"`{_COUNT}`").alias(_COUNT))
    only_loaded = len(parts) == 1 and source.load is not None
    return together.drop(_COUNT) if only_loaded else _expanded(counted)


def _database_frame(driver: Driver, name: str) -> DataFrame:
    """The rows of a table or view as the database has them."""
    rows, weights = driver.database.contents(name)
    return _expanded(driver.spark.createDataFrame(rows.append_column(_COUNT, pa.array(weights))))


def _note(driver: Driver, view: View, query: Query, text: str) -> str:
    """Why Spark cannot say what the rows of a view are; "" if it can."""
    if view.calls:
        return f"Spark does not have {', '.join(view.calls)}"
    if not is_shape(query):
        return ""
    if query.input:
        return "Spark has no access requests"
    if any(isinstance(state.group, OrderedView) for state in _blocks(driver, view.state)):
        return "Spark chooses other rows among equals at a LIMIT, and for ranks"
    lists = [a.text for state in _blocks(driver, view.state) for a in state.typed.query.aggregates if _is_list(a)]
    if lists:
        return f"Spark puts the values of {lists[0]} in any order"
    return "Spark's recursion does not end on cycles" if is_sql(text) and _RECURSIVE.search(text) else ""


def _blocks(driver: Driver, state: ViewState) -> Iterator[ViewState]:
    """A view and its own blocks."""
    known = driver.database.definitions.catalog.views
    owner = view_of_block(state.name) or state.name
    yield state
    for name in state.relations:
        if name in known and view_of_block(name) == owner:
            yield from _blocks(driver, known[name])


def _is_list(aggregate: Aggregate) -> bool:
    return aggregate.function in ("array_agg", "string_agg")


def _changes(driver: Driver, table: Table) -> list[DataFrame]:
    source = driver.sources.get(table.name)
    if source is None:
        return []
    if isinstance(source, Directory):
        paths = source.unchanged(driver.journal.applied(table.name, driver.reached))
        applied = [source.frame(paths).withColumnRenamed(WEIGHT, _COUNT)] if paths else []
        letters = driver.quarantine.letters(table.name, driver.reached)
        return applied + [_taken_back(driver, table, path) for path in letters]
    last = driver.journal.last_of(table.name)
    if last is None:
        return []
    delta = source.read({"first": source.first(), "last": last.plan["last"]})
    return [driver.spark.createDataFrame(delta.rows.append_column(_COUNT, pa.array(delta.weights)))]


def _taken_back(driver: Driver, table: Table, path: Path) -> DataFrame:
    """Rows of applied files that the database refused."""
    letters = pq.read_table(path)
    rows = letters.select(list(table.column_names))
    weights = pc.negate(letters.column(WEIGHT))
    return driver.spark.createDataFrame(rows.append_column(_COUNT, weights))


def _expanded(counted: DataFrame) -> DataFrame:
    """Each row, repeated by its count."""
    from pyspark.sql import functions as sf

    times = sf.explode(sf.sequence(sf.lit(1), sf.col(f"`{_COUNT}`")))
    return counted.where(sf.col(f"`{_COUNT}`") > 0).select("*", times.alias("ivme copy")).drop(_COUNT, "ivme copy")


def _compare_table(driver: Driver, table: Table, frame: DataFrame) -> Compared:
    start = time.perf_counter()
    rows, counts = driver.database.contents(table.name)
    expected = frame.toArrow().cast(rows.schema)
    whole = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), counts)))
    return Compared(table.name, whole.num_rows, time.perf_counter() - start, differences(expected, whole))


def _compare(view: View, query: Query, frame: DataFrame, start: float) -> Compared:
    schema = view.change_schema
    names = _numbered(schema)
    types = pa.schema(zip(names, schema.types, strict=True))
    expected = frame.toDF(*names).toArrow().cast(types)
    seconds = time.perf_counter() - start
    if query.input:
        requests = _requests(expected.select(names[: len(query.input)]), query)
        columns = (requests.column(i).combine_chunks() for i in range(len(query.input)))
        actual = view.request_many(**dict(zip(query.parameters, columns, strict=True)))
    else:
        actual = view.to_arrow()
    found = differences(expected, actual.rename_columns(names).cast(types))
    return Compared(view.name, actual.num_rows, seconds, found)


def _requests(inputs: pa.Table, query: Query) -> pa.Table:
    """Every access request that has an answer, and many that have none: other combinations of the same values.

    Requests of an aggregate over everything have an answer even where there are no rows, so that they are left out.
    """
    schema, inputs = inputs.schema, comparable_table(inputs)
    found = _comparable_requests(inputs, query)
    columns = [restored(column, field.type) for column, field in zip(found.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def _comparable_requests(inputs: pa.Table, query: Query) -> pa.Table:
    answered = inputs.group_by(inputs.column_names).aggregate([])
    if query.aggregates and not query.output:
        return answered
    values = [pc.unique(column).to_pylist() for column in inputs.columns]
    chosen = random.Random(answered.num_rows)
    if math.prod(map(len, values)) <= _GUESSES:
        others = set(itertools.product(*values))
    else:
        others = {tuple(chosen.choice(column) for column in values) for _ in range(_GUESSES)}
    known = set(zip(*(column.to_pylist() for column in answered.columns), strict=True))
    new = [dict(zip(inputs.column_names, other, strict=True)) for other in others - known]
    return pa.concat_tables([answered, pa.Table.from_pylist(new, schema=answered.schema)])


def _numbered(schema: pa.Schema) -> list[str]:
    return [f"c{i}" for i in range(len(schema))]


def differences(expected: pa.Table, actual: pa.Table) -> tuple[str, ...]:
    """Rows that are in one table more often than in the other, as texts, the first few of them."""
    if not expected.column_names:
        return () if expected.num_rows == actual.num_rows else (f"{actual.num_rows} rows, not {expected.num_rows}",)
    signed = [
        comparable_table(table).append_column(_COUNT, pa.array(np.full(table.num_rows, sign, dtype=np.int64)))
        for table, sign in ((expected, -1), (actual, 1))
    ]
    net = pa.concat_tables(signed).group_by(expected.column_names).aggregate([(_COUNT, "sum")])
    left = net.filter(pc.not_equal(net.column(f"{_COUNT}_sum"), 0))
    columns = [python_values(restored(left.column(field.name), field.type)) for field in expected.schema]
    counts = list(zip(zip(*columns, strict=True), left.column(f"{_COUNT}_sum").to_pylist(), strict=True))
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
