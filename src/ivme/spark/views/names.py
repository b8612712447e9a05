"""Names for a pipeline's views in Spark SQL: a table of the catalog for each, and a function for those with parameters.

Names last as long as the catalog does: with a metastore they are there for every later session that knows the format,
and say that the pipeline does not run while it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema

from ivme.errors import IvmeError, PipelineError
from ivme.pipeline.model import Pipeline
from ivme.pipeline.read import read_pipeline
from ivme.query.names import check_name
from ivme.spark.pipeline.texts import literal, quoted
from ivme.spark.views.asking import Address, Described, Question, ask, describe
from ivme.spark.views.source import FORMAT, PipelineSource, note, noted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.udtf import UserDefinedTableFunction

PUSHED = "spark.sql.python.filterPushdown.enabled"


def know_format(spark: SparkSession) -> None:
    """Makes the format known to a session, which must push filters down for views with parameters."""
    with _active(spark):
        spark.dataSource.register(PipelineSource)
    spark.conf.set(PUSHED, "true")


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one of this thread: Spark looks for a format's name in that one, not in its own."""
    if not hasattr(spark, "_jvm"):
        yield
        return
    sessions: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


def register_views(spark: SparkSession, pipeline: Pipeline, schema: str = "ivme") -> dict[str, str]:
    """Puts the views of a running pipeline into a schema of the catalog; their names, or why they have none.

    A view with parameters is also a function, `ivme_NAME`, which takes them in their order.
    """
    check_name(schema, "a schema of the catalog")
    know_format(spark)
    address = Address.of(str(pipeline.state))
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {quoted(schema)}")
    found: dict[str, str] = {}
    for view in pipeline.views:
        name = f"{quoted(schema)}.{quoted(view.name)}"
        try:
            told = describe(address, view.name)
        except IvmeError as error:
            found[view.name] = str(error)
            continue
        _refuse_other(spark, name)
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        columns = _columns(told, note(str(pipeline.state), view.name))
        spark.sql(f"CREATE TABLE {name} ({columns}) USING {FORMAT}")
        found[view.name] = f"{schema}.{view.name}"
        if told.parameters:
            spark.udtf.register(f"ivme_{view.name}", request_function(pipeline, view.name, told))
    return found


def _columns(told: Described, comment: str) -> str:
    """The columns of a view in Spark's DDL; the first has the comment."""
    fields = from_arrow_schema(told.schema).fields
    texts = [f"{quoted(field.name)} {field.dataType.simpleString()}" for field in fields]
    return ", ".join([f"{texts[0]} COMMENT {literal(comment)}", *texts[1:]])


def _refuse_other(spark: SparkSession, name: str) -> None:
    """A table of the name that is not a view of a pipeline is not replaced."""
    if spark.catalog.tableExists(name) and noted(spark.table(name).schema) is None:
        raise PipelineError(
            f"{name} is a table of the catalog and no view of a pipeline; drop it, or choose another schema"
        )


def view_frame(spark: SparkSession, state: Path, view: str, parameters: Mapping[str, Any]) -> DataFrame:
    """The rows of a view, whole or for given parameters, as a DataFrame; each use of it reads them again."""
    from pyspark.sql import functions as sf

    know_format(spark)
    frame = spark.read.format(FORMAT).option("state", str(state)).option("view", view).load()
    for name, value in parameters.items():
        frame = frame.where(sf.col(quoted(name)).eqNullSafe(sf.lit(value)))
    return frame.drop(*parameters)


def change_frame(spark: SparkSession, pipeline: Pipeline, view: str) -> DataFrame:
    """The changes of a view as a streaming DataFrame, from the beginning of its sink of changes."""
    sinks = [s for s in pipeline.sinks_of(view) if s.mode == "changes" and s.format in ("parquet", "delta")]
    paths = [str(sink.path) for sink in sinks if sink.path is not None and "://" not in sink.path]
    if not paths:
        raise PipelineError(
            f"view {view} has no sink of changes to read from: add one (mode: changes, format: delta or parquet, on a "
            "local path), so that a stream can go on after a restart"
        )
    know_format(spark)
    return spark.readStream.format(FORMAT).option("sink", paths[0]).load()


class _Request:
    """The function's rows for one row of arguments; `request_function` says of which view."""

    state = view = ""
    parameters: tuple[str, ...] = ()

    def eval(self, *values: Any, **named: Any) -> Iterator[tuple[Any, ...]]:
        request = {**dict(zip(self.parameters, values, strict=False)), **named}
        rows = ask(Address.of(self.state), Question(self.view, [request]))
        for row in rows.drop_columns(list(self.parameters)).to_pylist():
            yield tuple(row.values())


def request_function(pipeline: Pipeline, view: str, told: Described) -> UserDefinedTableFunction:
    """A view with parameters as a table function."""
    columns = [field for field in told.schema if field.name not in told.parameters]
    about = {"state": str(pipeline.state), "view": view, "parameters": told.parameters}
    handler = type(f"Ask_{view}", (_Request,), about)
    return cast("UserDefinedTableFunction", udtf(handler, returnType=from_arrow_schema(pa.schema(columns))))


def register_running(spark: SparkSession, file: Path | str, schema: str = "ivme") -> dict[str, str]:
    """Names the views of a pipeline that runs in another process; see `Pipeline.register`."""
    return register_views(spark, read_pipeline(file), schema)
