"""What a load that failed is told as: the place in the pipeline's file, what is wrong there, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ivme.errors import DataError, IvmeError, SchemaError, SparkError
from ivme.pipeline.model import Rows
from ivme.query.model import Table
from ivme.spark.pipeline.change_files import header_of
from ivme.spark.pipeline.load import first_misfit
from ivme.spark.pipeline.schema import check_names
from ivme.spark.session.failure import is_data_failure, is_foreign, is_gone, reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def loading(spark: SparkSession, rows: Rows, table: Table) -> Iterator[None]:
    """Tells what goes wrong inside by the place of the load in the pipeline's file."""
    place = f"{rows.place}: tables.{table.name}.load"
    try:
        yield
    except (SchemaError, DataError) as error:
        raise type(error)(f"{place}: {error}") from error
    except Exception as error:
        if not is_foreign(error) or is_gone(spark, error):
            raise
        raise _told(spark, rows, table, place, error) from error


def _told(spark: SparkSession, rows: Rows, table: Table, place: str, error: Exception) -> IvmeError:
    text = str(error)
    if "[PATH_NOT_FOUND]" in text:
        return SparkError(f"{place}.path: there is no {rows.path}; check the path")
    if "[DATA_SOURCE_NOT_FOUND]" in text:
        return SparkError(f"{place}.format: Spark has no format {rows.format}, and no package with it")
    header = _header_error(spark, rows, table, text)
    if header is not None:
        return SchemaError(f"{place}: {header}")
    if is_data_failure(spark, error):
        return DataError(f"{place}: {_misfit(spark, rows, table) or reason_of(error)}; {rows.path} cannot be loaded")
    return SparkError(f"{place}: Spark cannot read {rows.path or rows.table or rows.format}: {reason_of(error)}")


def _misfit(spark: SparkSession, rows: Rows, table: Table) -> str | None:
    """The first value that does not fit; None if reading the rows one by one does not tell."""
    try:
        return first_misfit(spark, rows, table)
    except Exception as error:
        if not is_data_failure(spark, error):
            raise
        return None


def _header_error(spark: SparkSession, rows: Rows, table: Table, text: str) -> str | None:
    """What is wrong with the header of a CSV file that Spark does not take."""
    found = re.search(r"CSV file: (\S+)", text) if "CSV header" in text else None
    if found is None:
        return None
    line = spark.read.text(found.group(1)).head()
    header = header_of([] if line is None else [str(line[0])], dict(rows.options))
    try:
        check_names(f"the header of {rows.path}", header, table.column_names, exactly=True, is_first=True)
    except SchemaError as error:
        return str(error)
    told = f"the columns of {rows.path} are {', '.join(header)}, and the table has {', '.join(table.column_names)}"
    return f"{told}: they must be in the same order"
