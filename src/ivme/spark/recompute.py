"""Views computed anew by plain Spark SQL, from the sources: what `ivme verify` compares with.

The text of an SQL view goes to Spark as it is. Rules, views with parameters (which Spark could answer only one request
at a time) and closures are put together from the parsed query, as joins and a GROUP BY over the parameters too.
Nothing of a plan or of the engine is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from ivme.compile import is_sql
from ivme.query.expression import ColumnRef, Expression
from ivme.query.model import Aggregate, Atom, Query

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]


def view_frame(spark: SparkSession, text: str, query: Query, frames: Frames) -> DataFrame:
    """The rows of a view, with the parameters in front where it has some."""
    if is_sql(text) and not query.input and not any(atom.closure for atom in query.atoms):
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"`{name}`")
        return spark.sql(text)
    return query_frame(query, frames)


def query_frame(query: Query, frames: Frames) -> DataFrame:
    """The rows of a parsed query, with the inputs in front."""
    from pyspark.sql import functions as sf

    joined = _joined([_atom_frame(atom, frames[atom.relation], query) for atom in query.atoms])
    keys = [sf.col(f"`{variable}`") for variable in (*query.input, *query.output)]
    inputs = [sf.col(f"`{v}`").alias(f"parameter {p}") for v, p in zip(query.input, query.parameters, strict=True)]
    if query.aggregates:
        made = {aggregate: f"aggregate {i}" for i, aggregate in enumerate(query.aggregates)}
        grouped = joined.groupBy(*keys).agg(*(_aggregate(a).alias(name) for a, name in made.items()))
        head = [sf.col(f"`{made[c.source] if isinstance(c.source, Aggregate) else c.source}`") for c in query.head]
        return grouped.select(*inputs, *(column.alias(c.name) for column, c in zip(head, query.head, strict=True)))
    rows = joined.select(*keys).distinct() if query.distinct else joined
    return rows.select(*inputs, *(sf.col(f"`{c.source}`").alias(c.name) for c in query.head))


def _atom_frame(atom: Atom, rows: DataFrame, query: Query) -> DataFrame:
    """The atom's variables as columns: constants and repeated variables agree, and inputs are not NULL."""
    from pyspark.sql import functions as sf

    if atom.where is not None:
        rows = rows.where(sf.expr(str(atom.where)))
    if atom.closure:
        rows = closure_frame(rows.select(*(_column(column) for column in atom.columns)))
        columns: list[Column] = [sf.col(name) for name in rows.columns]
    else:
        columns = [_column(column) for column in atom.columns]
    first: dict[str, Column] = {}
    for term, column in zip(atom.terms, columns, strict=True):
        if not isinstance(term, str):
            rows = rows.where(column == sf.lit(term.value))
        elif term in first:
            rows = rows.where(column == first[term])
        else:
            first[term] = column
            if term in query.input:
                rows = rows.where(column.isNotNull())
    return rows.select(*(column.alias(variable) for variable, column in first.items()))


def _column(expression: Expression) -> Column:
    from pyspark.sql import functions as sf

    return sf.col(f"`{expression.name}`") if isinstance(expression, ColumnRef) else sf.expr(str(expression))


def _joined(frames: list[DataFrame]) -> DataFrame:
    """The natural join, each time with a frame that shares a variable if there is one."""
    joined, rest = frames[0], frames[1:]
    while rest:
        following = next((frame for frame in rest if set(frame.columns) & set(joined.columns)), rest[0])
        rest = [frame for frame in rest if frame is not following]
        shared = [name for name in following.columns if name in joined.columns]
        joined = joined.join(following, on=shared) if shared else joined.crossJoin(following)
    return joined


def _aggregate(aggregate: Aggregate) -> Column:
    from pyspark.sql import functions as sf

    if aggregate.variable is None:
        return sf.count(sf.lit(1))
    functions = {
        "count": sf.count,
        "sum": sf.sum,
        "avg": sf.avg,
        "min": sf.min,
        "max": sf.max,
        "count_distinct": sf.count_distinct,
    }
    return functions[aggregate.function](sf.col(f"`{aggregate.variable}`"))


def closure_frame(edges: DataFrame) -> DataFrame:
    """All pairs with a path of at least one edge between them: paths are doubled until there is no new pair.

    Spark's own WITH RECURSIVE knows UNION ALL only, and does not end on cycles (SPARK.md).
    """
    from pyspark.sql import functions as sf

    names = edges.columns
    pairs = edges.toDF("one", "other").dropna().distinct().localCheckpoint()
    size, before = pairs.count(), -1
    while size != before:
        left, right = pairs.toDF("one", "middle"), pairs.toDF("middle", "other")
        longer = left.join(right, "middle").select("one", "other")
        pairs = reduce(lambda x, y: x.union(y), [pairs, longer]).distinct().localCheckpoint()
        size, before = pairs.count(), size
    return pairs.select(sf.col("one").alias(names[0]), sf.col("other").alias(names[1]))
