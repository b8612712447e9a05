"""What a failure of a Spark job means: bad data, which has a reason worth reading, or Spark itself.

Spark wraps the first cause in many layers; the innermost message is the one that names the row or the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ivme.errors import DataError, SchemaError, SparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST = 600

_DATA = (
    "MALFORMED_RECORD",
    "MALFORMED_CSV",
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "CANNOT_PARSE_DECIMAL",
    "CANNOT_PARSE_INTERVAL",
    "CANNOT_PARSE_JSON_FIELD",
    "CANNOT_PARSE_TIME",
    "FAILED_READ_FILE",
    "USER_RAISED_EXCEPTION",
    "CANNOT_READ_FILE",
    "UNABLE_TO_INFER_SCHEMA",
    "INVALID_JSON",
    "FAIL_FAST",
    "CSV header",
    "is not a Parquet file",
    "ParseException",
    "DateTimeException",
    "NumberFormatException",
    "CharConversionException",
)
"""What the messages of failures that the data is to blame for contain."""


def is_data_failure(spark: SparkSession, error: BaseException) -> bool:
    """Whether the data is to blame, and not Spark, the disk or the network.

    A JVM that dies while it is asked gives errors of every kind, so that it has to be alive to blame the data.
    """
    if not isinstance(error, DataError | SchemaError) and not any(sign in str(error) for sign in _DATA):
        return False
    return not is_gone(spark, error)


def is_foreign(error: BaseException) -> bool:
    """Whether an error is Spark's, Java's or of a disk: nothing that ivme raises, and not a mistake in its code."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JError | PySparkException | OSError)


@contextmanager
def told_failures(spark: SparkSession, place: str) -> Iterator[None]:
    """Errors of Spark, Java or a disk inside become one line that starts with a place; the cause has all of it.

    The end of the JVM is told by who waits for the job.
    """
    try:
        yield
    except Exception as error:
        if not is_foreign(error) or is_gone(spark, error):
            raise
        raise SparkError(f"{place}: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """The message of the innermost cause, in one line."""
    text = str(error)
    causes = re.findall(r"^(?:Caused by)?: [\w.$]+: ([^\n]+)", text, re.MULTILINE)
    first = re.search(r"\[([A-Z_.]+)\] [^\n]+", text)
    raised = re.search(r"\[USER_RAISED_EXCEPTION\] ([^\n]+?)(?: SQLSTATE: \w+)?(?:\n|$)", text)
    if raised:
        return raised.group(1)[:_LONGEST]
    told = causes[-1] if causes else first.group(0) if first else text.split("\n")[0]
    record = re.search(r"Malformed records are detected in record parsing: (.+?)\.\n", text)
    if record:
        told = f"the record {record.group(1)} does not fit: {told}"
    return re.sub(r"\s+", " ", told)[:_LONGEST]


def is_gone(spark: SparkSession, error: BaseException) -> bool:
    """Whether the JVM behind a session is gone, which an error shows in many ways: it is asked."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    if isinstance(error, Py4JNetworkError | ConnectionError):
        return True
    if not hasattr(spark, "_jvm"):
        return False
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True
