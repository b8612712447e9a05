"""JSON lines with every key accounted for: Spark's own reader drops keys that it does not expect, silently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ivme.pipeline.model import ORIGIN, RAW, REASON, Rows
from ivme.spark.pipeline.texts import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read_lines(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """The lines of files that are not empty, with the files that they are from."""
    from pyspark.sql import functions as sf

    lines = spark.read.text(list(paths)).select("value", sf.col("_metadata.file_path").alias(ORIGIN))
    return lines.where(sf.length(sf.trim("value")) > 0)


def judged_json(spark: SparkSession, rows: Rows, layout: StructType, paths: Iterable[str]) -> DataFrame:
    """The lines of the files as rows of a layout; lines that are not rows, or have other keys, have a reason."""
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StringType, StructType

    keys = sf.map_keys(sf.from_json("value", "map<string,string>"))
    wanted = sf.array(*(sf.lit(name) for name in layout.names))
    drift = sf.concat_ws(", ", sf.array_except(keys, wanted), sf.array_except(wanted, keys))
    reason = sf.when(sf.length(drift) > 0, sf.concat(sf.lit("schema drift: the line has too much or lacks "), drift))
    whole = StructType(list(layout)).add(CORRUPT, StringType())
    parsed = sf.from_json("value", whole, {**dict(rows.options), "columnNameOfCorruptRecord": CORRUPT})
    lines = read_lines(spark, paths)
    return lines.select(sf.col("value").alias(RAW), ORIGIN, reason.alias(REASON), parsed.alias("row")).select(
        RAW, ORIGIN, REASON, "row.*"
    )


def read_json(spark: SparkSession, rows: Rows, layout: StructType, paths: Iterable[str]) -> DataFrame:
    """The lines of the files as rows of a layout; a line with a key too many or too few ends the reading."""
    from pyspark.sql import functions as sf

    lines = read_lines(spark, paths)
    keys = sf.map_keys(sf.from_json("value", "map<string,string>", {"mode": "FAILFAST"}))
    wanted = sf.array(*(sf.lit(name) for name in layout.names))
    drift = sf.concat_ws(", ", sf.array_except(keys, wanted), sf.array_except(wanted, keys))
    message = sf.concat(sf.lit("schema drift: a line has too much or lacks "), drift)
    checked = sf.when(sf.length(drift) > 0, sf.raise_error(message).cast("boolean")).otherwise(sf.lit(True))
    options = {"mode": "FAILFAST", **dict(rows.options)}
    parsed = sf.from_json("value", layout, options).alias("row")
    return lines.where(checked).select(parsed, ORIGIN).select("row.*", ORIGIN)
