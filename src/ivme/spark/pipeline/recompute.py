"""Views recomputed by plain Spark SQL, from the sources: what `ivme verify` compares with.

The text of an SQL view goes to Spark as it is, or in Spark's words if it cannot read it, and so does the SQL that rules
stand for which are more than one join; their closures are frames. Other rules, views with parameters (which Spark could
answer only one request at a time), closures, and views with aggregates whose answer Spark leaves open, such as
ANY_VALUE, are put together from the parsed query, as joins and a GROUP BY over the parameters too.
Nothing of a plan or of the engine is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ivme.query.expression import ColumnRef, Expression
from ivme.query.model import Aggregate, Atom, Query
from ivme.query.one_type import one_type_each
from ivme.query.parse import as_asked, is_sql
from ivme.query.rule_sql import rule_sql
from ivme.query.shape import is_shape
from ivme.query.spark_text import spark_text
from ivme.spark.pipeline.aggregate_text import aggregate_text, is_key, key_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Frames = Mapping[str, "DataFrame"]


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The rows of a view by Spark, and the text that it ran where that is not the view's own."""

    frame: DataFrame
    text: str = ""


def view_frame(
    spark: SparkSession, text: str, query: Query, frames: Frames, options: Mapping[str, object] = MappingProxyType({})
) -> DataFrame:
    """The rows of a view by Spark."""
    return recomputed(spark, text, query, frames, options).frame


def recomputed(
    spark: SparkSession, text: str, query: Query, frames: Frames, options: Mapping[str, object] = MappingProxyType({})
) -> Recomputed:
    """The rows of a view, with the parameters in front where it has some; `query` is its text as it was parsed.

    Of the view's options those matter that say what its rows are: `semantics`, and `graph` of a closure.
    """
    asked = as_asked(query, options.get("semantics"))
    undirected = options.get("graph") == "undirected"
    is_plain = asked == query and not query.input and not query.has_closures and not _leaves_open(query)
    if is_shape(query) or (is_sql(text) and is_plain):
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"`{name}`")
        if is_sql(text):
            made = _text_frame(spark, text, query)
        else:
            made = Recomputed(_rule_frame(spark, text, query, frames, undirected=undirected))
        return made if asked == query else Recomputed(made.frame.distinct(), made.text)
    return Recomputed(query_frame(asked, frames, undirected=undirected))


def _text_frame(spark: SparkSession, text: str, query: Query) -> Recomputed:
    """The rows of a text, in Spark's words if it has others; AnalysisException if Spark cannot read that."""
    asked = spark_text(text, query.tables)
    made = spark.sql(asked)
    assert made.schema is not None  # through Spark Connect, it is known only now whether it can be read
    return Recomputed(made, "" if asked == text else asked)


def _rule_frame(spark: SparkSession, text: str, query: Query, frames: Frames, *, undirected: bool) -> DataFrame:
    rules = rule_sql(text, query.tables)
    for name, edges in rules.closures:
        columns = frames[edges.name].select(*(f"`{column}`" for column in edges.column_names))
        closure_frame(columns, undirected=undirected).createOrReplaceTempView(name)
    made = spark.sql(rules.select)
    return made.select() if rules.is_bare else made


def query_frame(query: Query, frames: Frames, *, undirected: bool = False) -> DataFrame:
    """The rows of a parsed query, with the inputs in front; `undirected` closures go along edges both ways."""
    from pyspark.sql import functions as sf

    query = one_type_each(query)
    joined = _joined([_atom_frame(atom, frames[atom.relation], query, undirected=undirected) for atom in query.atoms])
    keys = [sf.col(f"`{variable}`") for variable in (*query.input, *query.output)]
    inputs = [sf.col(f"`{v}`").alias(f"parameter {p}") for v, p in zip(query.input, query.parameters, strict=True)]
    if query.aggregates:
        made = {aggregate: f"aggregate {i}" for i, aggregate in enumerate(query.aggregates)}
        grouped = joined.groupBy(*keys).agg(*(_aggregate(a).alias(name) for a, name in made.items()))
        head = [sf.col(f"`{made[c.source] if isinstance(c.source, Aggregate) else c.source}`") for c in query.head]
        return grouped.select(*inputs, *(column.alias(c.name) for column, c in zip(head, query.head, strict=True)))
    rows = joined.select(*keys).distinct() if query.distinct else joined
    return rows.select(*inputs, *(sf.col(f"`{c.source}`").alias(c.name) for c in query.head))


def _atom_frame(atom: Atom, rows: DataFrame, query: Query, *, undirected: bool) -> DataFrame:
    """The atom's variables as columns: constants and repeated variables agree, and inputs are not NULL."""
    from pyspark.sql import functions as sf

    if atom.where is not None:
        rows = rows.where(sf.expr(str(atom.where)))
    if atom.closure:
        rows = closure_frame(rows.select(*(_column(column) for column in atom.columns)), undirected=undirected)
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

    if isinstance(expression, ColumnRef):
        return sf.col(f"`{expression.name}`")
    return sf.expr(key_text(expression) if is_key(expression) else str(expression))


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

    return sf.expr(aggregate_text(aggregate))


def _leaves_open(query: Query) -> bool:
    """Whether Spark may answer with any of several values, or knows an aggregate by another name."""
    return any(aggregate.text for aggregate in query.aggregates)


def closure_frame(edges: DataFrame, *, undirected: bool = False) -> DataFrame:
    """All pairs with a path of at least one edge between them, by plain joins, each round with the pairs that are new.

    Semi-naive: every pair is extended by one edge once, in the round after the one that found it, so that all rounds
    together make as many rows as there are pairs times edges from their ends. As many rounds as the longest of the
    shortest paths has edges; a round is a join, an anti-join and a copy of what is known, since Spark would else repeat
    the rounds before. Spark's own WITH RECURSIVE knows UNION ALL only, and does not end on cycles.
    """
    names = edges.columns
    parts = int(edges.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    steps = edges.toDF("middle", "last")
    if undirected:
        steps = steps.dropna().union(steps.dropna().select("last", "middle"))
    steps = steps.distinct().localCheckpoint()
    found = new = steps.toDF("one", "other")
    while not new.isEmpty():
        made = new.toDF("first", "middle").join(steps, "middle").select("first", "last").distinct()
        known = found["one"].eqNullSafe(made["first"]) & found["other"].eqNullSafe(made["last"])
        new = made.join(found, known, "left_anti").toDF("one", "other").localCheckpoint()
        found = found.union(new).coalesce(parts).localCheckpoint()
    return found.toDF(*names)
