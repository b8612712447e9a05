"""Bulk rows from anything that Spark reads: cleaning, casting, pruning and predicates happen there.

A frame that leaves this module has exactly a table's columns, in their types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import DataError, SparkError
from ivme.pipeline.frames import frame_of
from ivme.pipeline.model import FRAME, REASON, Rows, Settings
from ivme.query.model import Table
from ivme.spark.pipeline.event_texts import exact_cast
from ivme.spark.pipeline.schema import check_columns, column_type, exact_columns, file_schema
from ivme.spark.pipeline.text_values import narrowed, text_layout
from ivme.spark.pipeline.texts import CORRUPT, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

SELF_DESCRIBING = ("parquet", "orc", "avro", "jdbc", "delta", "iceberg")
"""Formats that know their own columns; others are read by the layout that the pipeline states."""

TEXTS = ("csv", "json")
"""Formats whose values are texts."""


def load_frame(
    spark: SparkSession, rows: Rows, table: Table, version: int | None = None, *, is_first: bool = False
) -> DataFrame:
    """The rows that a table is loaded with; the source may have further columns, which are not read."""
    what = f"the source of table {table.name}"
    if rows.format == FRAME:
        frame = frame_of(rows, table.name, streaming=False)
    elif rows.table is not None:
        frame = table_frame(spark, rows, version)
    elif rows.format == "delta" and not has_delta(spark):
        frame = delta_frame(spark, rows.path or "", version)
    else:
        frame = _read(spark, rows, file_schema(table))
    if not rows.select:
        check_columns(what, frame.schema, file_schema(table), exactly=False, is_first=is_first)
    return shaped(frame, rows, table)


def _read(spark: SparkSession, rows: Rows, layout: StructType, *, permissive: bool = False) -> DataFrame:
    """What Spark's reader gives; files of text in the types of their layout."""
    from pyspark.sql.types import StructType as Struct

    if rows.schema is not None:
        stated = Struct.fromDDL(rows.schema)
        assert isinstance(stated, Struct)
        layout = stated
    paths = [rows.path] if rows.path else []
    if rows.select and rows.schema is None:
        return _reader(spark, rows, None).load(*paths)
    if rows.format not in TEXTS:
        return _reader(spark, rows, layout).load(*paths)
    frame = _reader(spark, rows, text_layout(layout, rows), CORRUPT if permissive else None).load(*paths)
    return narrowed(frame, layout, rows, permissive=permissive)


def first_misfit(spark: SparkSession, rows: Rows, table: Table) -> str | None:
    """The reason for which a row of files of text cannot be loaded; None if none is found."""
    if rows.format not in TEXTS or rows.select:
        return None
    bad = _read(spark, rows, file_schema(table), permissive=True).where(f"{quoted(REASON)} IS NOT NULL")
    found = bad.select(REASON).head()
    return None if found is None else str(found[0])


def table_frame(spark: SparkSession, rows: Rows, version: int | None = None) -> DataFrame:
    """The rows of a table of Spark's catalog, or of the Iceberg catalog whose properties are the options."""
    if is_pyiceberg(rows.format, rows.options):
        from ivme.spark.pipeline.iceberg import snapshot_rows

        return spark.createDataFrame(snapshot_rows(rows.options, str(rows.table), version))
    return spark.table(str(rows.table))


def is_pyiceberg(format_: str, options: Settings) -> bool:
    """Whether pyiceberg reads and writes a table: Iceberg with the properties of a catalog, not one of Spark's own."""
    return format_ == "iceberg" and bool({"catalog", "type", "uri"} & dict(options).keys())


def has_delta(spark: SparkSession) -> bool:
    """Whether this Spark has Delta's jar; without it deltalake reads and writes."""
    return "delta" in (spark.conf.get("spark.sql.extensions", "") or "").lower()


def delta_frame(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """The rows of a Delta table, read by Spark from the files that deltalake names where that is exact."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        table = DeltaTable(path, version=version)
        return spark.createDataFrame(plain_arrow(table.to_pyarrow_table()))
    except DeltaError as error:
        raise SparkError(f"the Delta table {path} cannot be read: {error}") from error


def plain_arrow(table: pa.Table) -> pa.Table:
    """The table without Arrow types that Spark does not know."""
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.uint64(): pa.int64()}
    schema = pa.schema([pa.field(f.name, plain.get(f.type, f.type)) for f in table.schema])
    return table.cast(schema)


def _reader(spark: SparkSession, rows: Rows, layout: StructType | None, corrupt: str | None = None) -> DataFrameReader:
    from pyspark.sql.types import StringType
    from pyspark.sql.types import StructType as Struct

    reader = spark.read.format(rows.format)
    if rows.format == "csv":
        reader = reader.option("header", "true").option("enforceSchema", "false")
    if rows.format in ("csv", "json"):
        reader = reader.option("mode", "FAILFAST" if corrupt is None else "PERMISSIVE")
    if corrupt is not None and layout is not None:
        reader = reader.option("columnNameOfCorruptRecord", corrupt)
        return reader.schema(Struct(list(layout)).add(corrupt, StringType())).options(**dict(rows.options))
    if rows.schema is not None and rows.format not in TEXTS:
        reader = reader.schema(rows.schema)
    elif layout is not None and rows.format not in SELF_DESCRIBING:
        reader = reader.schema(layout)
    for name, value in rows.options:
        reader = reader.option(name, value)
    return reader


def read_files(
    spark: SparkSession,
    rows: Rows,
    layout: StructType,
    paths: Iterable[str],
    corrupt: str | None = None,
    own: StructType | None = None,
) -> DataFrame:
    """The files as one frame, by a stated layout; the first row that does not fit it ends the reading.

    With a column for `corrupt` text (of csv and json), that column has such rows instead. `own` are the columns of
    files that know them, where they are known here, too: Spark then needs no job to find them.
    """
    reader = _reader(spark, rows, layout, corrupt)
    return (reader if own is None else reader.schema(own)).load(list(paths))


def shaped(frame: DataFrame, rows: Rows, table: Table) -> DataFrame:
    """The columns of the table in their types."""
    if rows.where is not None:
        frame = frame.where(rows.where)
    computed = {name.lower(): f"(\n{text}\n)" for name, text in rows.select}
    exact = exact_columns(frame.schema, table) - computed.keys()
    columns = [
        f"{exact_cast(value, name, column_type(column), is_exact=name.lower() in exact)} AS {quoted(name)}"
        for column in table.columns
        for name in [column.name]
        for value in [computed.get(name.lower(), quoted(name))]
    ]
    return frame.selectExpr(*columns)


def conformed(rows: pa.Table, table: Table) -> pa.Table:
    """The rows in exactly the Arrow types of the table; Spark's differ in time zones and widths of text."""
    try:
        return rows.cast(arrow_schema(table))
    except (pa.ArrowInvalid, ValueError) as error:
        raise DataError(f"rows for table {table.name} do not have its types: {error}") from error
