"""`ivme verify`: every view against plain Spark SQL over the sources, row by row."""

from __future__ import annotations

import itertools
import math
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.nested_values import comparable_table, python_values, restored
from ivme.engine.runtime.view_state import ViewState
from ivme.pipeline.history import history_table
from ivme.pipeline.model import ViewText
from ivme.pipeline.state_database import StateView
from ivme.query.block_names import view_of_block
from ivme.query.model import Aggregate, Query, Table
from ivme.query.names import CLOCK
from ivme.query.parse import is_sql
from ivme.query.shape import is_shape, view_shape
from ivme.shown_table import counted
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.recompute import Frames, Recomputed, recomputed
from ivme.spark.pipeline.verify_tables import COUNT, database_frame, history_frame, table_frame, why_unknown
from ivme.view import View
from ivme.views.ordered_view import OrderedView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 5
_GUESSES = 10_000
_RECURSIVE = re.compile(r"\bWITH\s+RECURSIVE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Compared:
    """A table or view and what Spark says: how many rows both have, and those that only one of them has."""

    name: str
    rows: int
    seconds: float
    differences: tuple[str, ...] = ()
    note: str = ""
    """Why Spark did not run it."""

    text: str = ""
    """The text that Spark ran, where that is not the view's own."""


def verify_pipeline(driver: Driver) -> Iterator[Compared]:
    """Compares the tables, then the views, one after the other."""
    unknown = {source.table.name: why_unknown(driver, source) for source in driver.pipeline.tables}
    frames = {
        source.table.name: (
            database_frame(driver, source.table.name) if unknown[source.table.name] else table_frame(driver, source)
        ).cache()
        for source in driver.pipeline.tables
    }
    known: list[Table] = [source.table for source in driver.pipeline.tables]
    for source in driver.pipeline.tables:
        if source.changes is not None and source.changes.history is not None:
            known.append(history_table(source.table, source.changes.sequence_types[0]))
            frames[known[-1].name] = history_frame(driver, source)
    try:
        for source in driver.pipeline.tables:
            if unknown[source.table.name]:
                rows = int(driver.database.contents(source.table.name)[1].sum())
                note = f"as the database has it: {unknown[source.table.name]}"
                yield Compared(source.table.name, rows, 0.0, note=note)
            elif source.changes is None or source.changes.kind != "stream":
                yield _compare_table(driver, source.table, frames[source.table.name])
        for text in driver.pipeline.views:
            start = time.perf_counter()
            functions = driver.database.definitions.functions.defined
            query = view_shape(text.query, tuple(known), text.name, functions)
            known_view, view = driver.database.definitions.map_view(text.name), driver.database.view(text.name)
            note = _note(driver, known_view, query, text.query)
            found = None if note else _asked(driver, text, query, frames)
            if isinstance(found, str):
                note = found
            if found is None or isinstance(found, str):
                view.verify()
                rows = view.count() if not query.input else 0
                yield Compared(text.name, rows, time.perf_counter() - start, note=f"computed again by ivme: {note}")
                if not query.input:
                    frames[text.name] = database_frame(driver, text.name)
                    known.append(driver.database.relation(text.name))
                continue
            compared = _compare(view, known_view.change_schema, query, found.frame, start)
            yield replace(compared, text=found.text)
            if not query.input:
                frames[text.name] = found.frame.toDF(*view.columns)
                known.append(driver.database.relation(text.name))
    finally:
        for source in driver.pipeline.tables:
            frames[source.table.name].unpersist()


def _asked(driver: Driver, view: ViewText, query: Query, frames: Frames) -> Recomputed | str:
    """The rows of a view by Spark, or why it cannot read the view's text."""
    from pyspark.errors import AnalysisException

    try:
        return recomputed(driver.spark, view.query, query, frames, dict(view.options))
    except AnalysisException as error:
        return f"Spark does not read its text: {str(error).strip().splitlines()[0]}"


def _note(driver: Driver, view: View, query: Query, text: str) -> str:
    """Why Spark cannot say what the rows of a view are; "" if it can."""
    if view.calls:
        return f"Spark does not have {', '.join(view.calls)}"
    if any(CLOCK in state.relations for state in _blocks(driver, view.state)):
        return "it compares rows with the clock of the database"
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


def _compare_table(driver: Driver, table: Table, frame: DataFrame) -> Compared:
    start = time.perf_counter()
    rows, counts = driver.database.contents(table.name)
    expected = frame.toArrow().cast(rows.schema)
    whole = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), counts)))
    return Compared(table.name, whole.num_rows, time.perf_counter() - start, differences(expected, whole))


def _compare(view: StateView, schema: pa.Schema, query: Query, frame: DataFrame, start: float) -> Compared:
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
        comparable_table(table).append_column(COUNT, pa.array(np.full(table.num_rows, sign, dtype=np.int64)))
        for table, sign in ((expected, -1), (actual, 1))
    ]
    net = pa.concat_tables(signed).group_by(expected.column_names).aggregate([(COUNT, "sum")])
    left = net.filter(pc.not_equal(net.column(f"{COUNT}_sum"), 0))
    columns = [python_values(restored(left.column(field.name), field.type)) for field in expected.schema]
    counts = list(zip(zip(*columns, strict=True), left.column(f"{COUNT}_sum").to_pylist(), strict=True))
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
    return f"{row!r} has {counted(abs(count), 'copy', 'copies')} too {'many' if count > 0 else 'few'}"
