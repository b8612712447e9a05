"""From the text of a pipeline file to a `Pipeline`; everything that can be known without Spark is checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ivme.database import Database
from ivme.definitions.user_functions import UserFunction
from ivme.errors import IvmeError
from ivme.pipeline.document import Node, read_document
from ivme.pipeline.frames import with_frames
from ivme.pipeline.history import history_view
from ivme.pipeline.model import Pipeline, Sharded, TableSource, ViewText
from ivme.pipeline.read_changes import located, read_log, settings
from ivme.pipeline.read_sinks import check_sink, read_sink
from ivme.pipeline.read_tables import create_table, read_table
from ivme.pipeline.tables_of_source import tables_of

_ROOT = (
    *("name", "state", "copy", "staging", "engine", "on_bad", "bad_limit", "spark"),
    *("tables", "transactions", "functions", "views", "sinks"),
)
_FUNCTION = ("call", "arguments", "returns", "called_with_null")
_VIEW = (
    "sql",
    "rule",
    "dialect",
    "strategy",
    "epsilon",
    "semantics",
    "space",
    "rebalance",
    "graph",
    "favour",
    "expire",
)


def read_pipeline(path: Path | str, frames: Mapping[str, Any] | None = None) -> Pipeline:
    """The pipeline of a file, or `PipelineError` with the line and column of what is wrong.

    `frames` are the DataFrames that the file names; without them the pipeline can be looked at, and not be run.
    """
    file = Path(path)
    root = read_document(file)
    fields = Node(root.file, "the pipeline", root.raw).fields(_ROOT, ("tables", "views"))
    fields = {name: Node(node.file, name, node.raw) for name, node in fields.items()}
    home = file.resolve().parent
    name = fields["name"].text() if "name" in fields else file.stem
    tables = tuple(read_table(each, node, home) for each, node in fields["tables"].entries())
    tables = with_frames(tables, frames)
    pipeline = Pipeline(
        name,
        file.resolve(),
        home / (fields["state"].text() if "state" in fields else f"{name}.state"),
        tables,
        (
            *_histories(tables, fields["views"]),
            *(_view(each, node, home, tables) for each, node in fields["views"].entries()),
        ),
        tuple(read_sink(each, node, home) for each, node in fields["sinks"].entries()) if "sinks" in fields else (),
        "on_bad" in fields and fields["on_bad"].choice("quarantine", "stop") == "stop",
        fields["bad_limit"].number(0) if "bad_limit" in fields else None,
        settings(fields["spark"]) if "spark" in fields else (),
        tuple(_function(each, node) for each, node in fields["functions"].entries()) if "functions" in fields else (),
        read_log(fields["transactions"], home) if "transactions" in fields else None,
        located(fields["copy"].text(), home) if "copy" in fields else None,
        located(fields["staging"].text(), home) if "staging" in fields else None,
        _engine(fields["engine"], home) if "engine" in fields else None,
    )
    if pipeline.transactions is not None and not pipeline.together:
        fields["transactions"].refuse("no table has a transaction_by, so there are no transactions to apply together")
    _check(pipeline, fields)
    return pipeline


def _engine(node: Node, home: Path) -> Sharded:
    from ivme.pipeline.read_engine import read_engine

    return read_engine(node, home)


def _histories(tables: tuple[TableSource, ...], views: Node) -> tuple[ViewText, ...]:
    """The views of all versions of rows, which come before those that the file writes out."""
    found = tuple(history_view(each) for each in tables if each.changes is not None and each.changes.history)
    written = dict(views.entries())
    for view in found:
        if view.name in written:
            written[view.name].refuse(f"{view.name} is the name of a table's history; call the view something else")
    return found


def _function(name: str, node: Node) -> UserFunction:
    """A function that views call; `call` says where to import it from, as in module:function."""
    fields = node.fields(_FUNCTION, ("call", "arguments", "returns"))
    arguments = tuple(item.text() for item in fields["arguments"].items())
    called_with_null = "called_with_null" in fields and fields["called_with_null"].boolean()
    made = UserFunction(name, fields["call"].text(), arguments, fields["returns"].text(), called_with_null)
    node.within(made.definition)
    return made


def _view(name: str, node: Node, home: Path, tables: Sequence[TableSource]) -> ViewText:
    fields = node.fields(_VIEW)
    texts = [key for key in ("sql", "rule") if key in fields]
    if len(texts) != 1:
        node.refuse(f"{node.name} needs its query: sql or rule, one of them")
    text = fields[texts[0]]
    query = text.text()
    if query.endswith(".sql") and "\n" not in query:
        query = text.within(lambda: _file(home / query))
    options: Mapping[str, object] = {key: field.value() for key, field in fields.items() if key not in ("sql", "rule")}
    if "dialect" in options:
        from ivme.query.dialects import in_spark

        query, options = fields["dialect"].within(lambda: in_spark(query, options, [each.table for each in tables]))
    return ViewText(name, query, text.place, tuple(options.items()))


def _file(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise IvmeError(f"{path} cannot be read: {error}") from error


def declare_all(pipeline: Pipeline, database: Database) -> None:
    """Makes the pipeline's tables and views in an empty database."""
    for source in pipeline.tables:
        for table in tables_of(pipeline, source):
            create_table(database, table)
    for view in pipeline.views:
        database.create_view(view.name, view.query, **dict(view.options))


def _check(pipeline: Pipeline, fields: dict[str, Node]) -> None:
    """Tries tables, views and sinks on an empty database in memory: what it refuses points at its line."""
    views = dict(fields["views"].entries())
    tables = dict(fields["tables"].entries())
    with Database(functions=pipeline.functions) as database:
        for source in pipeline.tables:
            for each in tables_of(pipeline, source):
                tables[source.table.name].within(partial(create_table, database, each))
        for view in pipeline.views:
            if view.name not in views:
                database.create_view(view.name, view.query)
                continue
            text = dict(views[view.name].entries())
            node = text.get("sql", text.get("rule", views[view.name]))
            node.within(lambda v=view: database.create_view(v.name, v.query, **dict(v.options)))  # type: ignore[misc]
        for sink in pipeline.sinks:
            check_sink(sink, dict(fields["sinks"].entries())[sink.name], database)
        if pipeline.engine is not None:
            from ivme.pipeline.read_engine import refuse_unsharded

            refuse_unsharded(pipeline, fields, database)
