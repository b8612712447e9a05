"""Debezium's events: JSON with the row before and after, and an operation, in Spark SQL.

An event may be wrapped in its schema (`{"schema": ..., "payload": ...}`). Tombstones (no value) and messages of the
database (`op: m`) are left out. An update that moves a row to another key is a delete of the old key and an upsert;
whether it does is seen when the keys have been computed (`MOVED`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.pipeline.model import DEBEZIUM_LOG, ORIGIN, RAW, REASON, WEIGHT, Changes
from ivme.query.model import Table
from ivme.spark.pipeline.schema import column_type, spark_type
from ivme.spark.pipeline.text_values import narrowed, narrowed_value, text_layout
from ivme.spark.pipeline.texts import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

MOVED = -2
"""The weight of the row before an update: its key goes if it differs from that of the row after."""

TRANSACTION, NUMBER = "ivme_transaction", "ivme_number"
"""The columns with the transaction of an event, and its number there."""

_OPERATIONS = ("c", "r", "u", "d", "t")
_CORRUPT = "ivme_corrupt"


def events(texts: DataFrame, changes: Changes, table: Table, layout: StructType) -> DataFrame:
    """The rows of events (columns `value` and the origin), with weights and sequences; `layout` is that of the rows."""
    from pyspark.sql import functions as sf

    if changes.envelope == DEBEZIUM_LOG:
        return _ends(texts.where(sf.length(sf.trim("value")) > 0))
    origin = sf.col(ORIGIN) if ORIGIN in texts.columns else sf.lit(None).cast("string").alias(ORIGIN)
    parsed = sf.from_json("value", _schema(text_layout(layout)), {"columnNameOfCorruptRecord": _CORRUPT})
    told = texts.where(sf.length(sf.trim("value")) > 0).where(sf.trim("value") != "null")
    frame = told.select(sf.col("value").alias(RAW), origin, parsed.alias("e"))
    fields = ("before", "after", "op", "ts_ms", "source", "transaction")
    inner = [sf.coalesce(sf.col(f"e.payload.{name}"), sf.col(f"e.{name}")).alias(name) for name in fields]
    frame = frame.select(RAW, ORIGIN, sf.col(f"e.{_CORRUPT}").alias(_CORRUPT), *inner).where("op IS NULL OR op <> 'm'")
    sequences = [_sequence(text, table).alias(f"ivme_s{i}") for i, text in enumerate(changes.sequence_by)]
    sequences += [sf.expr(changes.transaction_by or "NULL").alias(TRANSACTION)]
    sequences += [sf.expr(changes.transaction_number or "NULL").alias(NUMBER)]
    marked = frame.select(RAW, ORIGIN, _reason().alias(REASON), *sequences, sf.explode(_rows()).alias("x"))
    names = [*(f"ivme_s{i}" for i in range(len(changes.sequence_by))), TRANSACTION, NUMBER]
    found = marked.select(RAW, ORIGIN, REASON, *names, sf.col(f"x.{WEIGHT}").alias(WEIGHT), "x.row.*")
    return narrowed(found, layout, permissive=True)


def _ends(texts: DataFrame) -> DataFrame:
    """The ends of transactions in the log, each with the numbers of its events by table, as JSON."""
    from pyspark.sql import functions as sf

    def told(name: str) -> Column:
        whole = sf.get_json_object("value", f"$.payload.{name}")
        return sf.coalesce(whole, sf.get_json_object("value", f"$.{name}"))

    origin = sf.col(ORIGIN) if ORIGIN in texts.columns else sf.lit(None).cast("string").alias(ORIGIN)
    frame = texts.select(
        sf.col("value").alias(RAW),
        origin,
        told("status").alias("status"),
        told("id").alias("id"),
        told("data_collections").alias("counts"),
    )
    is_end = (sf.col("status") == "END") & sf.col("id").isNotNull()
    reason = sf.when(~sf.coalesce(is_end, sf.lit(False)), sf.lit("malformed: it is not the end of a transaction"))
    left = frame.where(sf.coalesce(sf.col("status") != "BEGIN", sf.lit(True)))
    return left.select(RAW, ORIGIN, reason.alias(REASON), sf.lit(1).cast("bigint").alias(WEIGHT), "id", "counts")


def _schema(layout: StructType) -> StructType:
    from pyspark.sql import types as st

    ids = [("id", st.StringType()), ("total_order", st.LongType()), ("data_collection_order", st.LongType())]
    one = [
        st.StructField("before", layout),
        st.StructField("after", layout),
        st.StructField("op", st.StringType()),
        st.StructField("ts_ms", st.LongType()),
        st.StructField("source", st.MapType(st.StringType(), st.StringType())),
        st.StructField("transaction", st.StructType([st.StructField(name, kind) for name, kind in ids])),
    ]
    return st.StructType(
        [*one, st.StructField("payload", st.StructType(one)), st.StructField(_CORRUPT, st.StringType())]
    )


def _reason() -> Column:
    """Why an event cannot be taken; NULL if it can."""
    from pyspark.sql import functions as sf

    needs_after = sf.col("op").isin("c", "r", "u") & sf.col("after").isNull()
    needs_before = (sf.col("op") == "d") & sf.col("before").isNull()
    unknown = sf.col("op").isNull() | ~sf.col("op").isin(*_OPERATIONS)
    known = f" is unknown; Debezium has {', '.join(_OPERATIONS)}"
    said = sf.concat(sf.lit("malformed: the operation "), sf.coalesce("op", sf.lit("missing")), sf.lit(known))
    return (
        sf.when(sf.col(_CORRUPT).isNotNull(), sf.lit("malformed: the event is not JSON with the table's columns"))
        .when(unknown, said)
        .when(needs_after, sf.lit("malformed: the event has no row after it"))
        .when(needs_before, sf.lit("malformed: the delete has no row before it"))
    )


def _rows() -> Column:
    """The rows of an event, each with its weight: one, or two for an update that has the row before it."""
    from pyspark.sql import functions as sf

    def one(weight: int, row: str) -> Column:
        return sf.struct(sf.lit(weight).cast("bigint").alias(WEIGHT), sf.col(row).alias("row"))

    both = (sf.col("op") == "u") & sf.col("before").isNotNull() & sf.col("after").isNotNull()
    return (
        sf.when(both, sf.array(one(MOVED, "before"), one(1, "after")))
        .when(sf.col("op") == "d", sf.array(one(-1, "before")))
        .when(sf.col("op") == "t", sf.array(one(0, "after")))
        .otherwise(sf.array(one(1, "after")))
    )


def _sequence(text: str, table: Table) -> Column:
    """A sequence: a column of the row, or an expression over the event, such as source.lsn or ts_ms."""
    from pyspark.sql import functions as sf

    column = table.column(text.strip("`"))
    if column is None:
        return sf.expr(text)
    name = column.name
    kind = spark_type(column_type(column))
    both = [sf.expr(narrowed_value(f"{row}.{quoted(name)}", kind)).cast(kind) for row in ("after", "before")]
    return sf.coalesce(*both)
