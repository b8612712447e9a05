"""From the text of a pipeline file to a `Pipeline`; everything that can be known without Spark is checked here."""

from __future__ import annotations

from pathlib import Path

from ivme.database import Database
from ivme.engine.codes.value_check import checked
from ivme.errors import IvmeError
from ivme.pipeline.document import Node, read_document
from ivme.pipeline.model import BATCH, WEIGHT, Pipeline, TableSource, ViewText
from ivme.pipeline.read_changes import ROWS, read_changes, read_rows, settings
from ivme.pipeline.read_sinks import check_sink, read_sink
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.table import promises
from ivme.user_functions import UserFunction

_ROOT = ("name", "state", "on_bad", "bad_limit", "spark", "tables", "functions", "views", "sinks")
_FUNCTION = ("call", "arguments", "returns", "called_with_null")
_TABLE = (
    *("columns", "primary_key", "append_only", "static", "references", "unique", "not_null"),
    *("load", "changes", "defaults"),
)
_VIEW = ("sql", "rule", "strategy", "epsilon", "semantics", "space", "rebalance", "graph", "favour")


def read_pipeline(path: Path | str) -> Pipeline:
    """The pipeline of a file, or `PipelineError` with the line and column of what is wrong."""
    file = Path(path)
    root = read_document(file)
    fields = Node(root.file, "the pipeline", root.raw).fields(_ROOT, ("tables", "views"))
    fields = {name: Node(node.file, name, node.raw) for name, node in fields.items()}
    home = file.resolve().parent
    name = fields["name"].text() if "name" in fields else file.stem
    pipeline = Pipeline(
        name,
        file.resolve(),
        home / (fields["state"].text() if "state" in fields else f"{name}.state"),
        tuple(_table(each, node, home) for each, node in fields["tables"].entries()),
        tuple(_view(each, node, home) for each, node in fields["views"].entries()),
        tuple(read_sink(each, node, home) for each, node in fields["sinks"].entries()) if "sinks" in fields else (),
        "on_bad" in fields and fields["on_bad"].choice("quarantine", "stop") == "stop",
        fields["bad_limit"].number(0) if "bad_limit" in fields else None,
        settings(fields["spark"]) if "spark" in fields else (),
        tuple(_function(each, node) for each, node in fields["functions"].entries()) if "functions" in fields else (),
    )
    _check(pipeline, fields)
    return pipeline


def _table(name: str, node: Node, home: Path) -> TableSource:
    fields = node.fields(_TABLE, ("columns",))
    columns = {column: kind.text() for column, kind in fields["columns"].entries()}
    for column, kind in fields["columns"].entries():
        kind.within(lambda column=column: declare(name, {column: columns[column]}))  # type: ignore[misc]
        if column in (WEIGHT, BATCH):
            kind.refuse(f"{column} is a name that sinks use; call the column something else")
    key = [item.text() for item in fields["primary_key"].items()] if "primary_key" in fields else None
    table = node.within(
        lambda: declare(
            name,
            columns,
            primary_key=key,
            append_only="append_only" in fields and fields["append_only"].boolean(),
            static="static" in fields and fields["static"].boolean(),
            references={k: v.text() for k, v in fields["references"].entries()} if "references" in fields else None,
            unique=[_names(item) for item in fields["unique"].items()] if "unique" in fields else (),
            not_null=[item.text() for item in fields["not_null"].items()] if "not_null" in fields else (),
        )
    )
    if table.static and "changes" in fields:
        fields["changes"].refuse(f"table {name} is static, so that nothing can change it")
    load = (
        read_rows(fields["load"], fields["load"].fields(ROWS, ("format",)), table, home) if "load" in fields else None
    )
    changes = read_changes(fields["changes"], table, home) if "changes" in fields else None
    defaults = tuple((key, _default(table, key, each)) for key, each in _entries(fields, "defaults"))
    return TableSource(table, node.place, load, changes, defaults)


def _entries(fields: dict[str, Node], name: str) -> list[tuple[str, Node]]:
    return list(fields[name].entries()) if name in fields else []


def _default(table: Table, column: str, node: Node) -> object:
    """The value of a column in rows that came without it."""
    found = table.column(column)
    if found is None or found.type is None:
        node.refuse(f"table {table.name} has no column {column} to have a default")
    type_ = found.type
    return node.within(lambda: checked(node.value(), type_, f"the default of column {column}"))


def _function(name: str, node: Node) -> UserFunction:
    """A function that views call; `call` says where to import it from, as in module:function."""
    fields = node.fields(_FUNCTION, ("call", "arguments", "returns"))
    arguments = tuple(item.text() for item in fields["arguments"].items())
    called_with_null = "called_with_null" in fields and fields["called_with_null"].boolean()
    made = UserFunction(name, fields["call"].text(), arguments, fields["returns"].text(), called_with_null)
    node.within(made.definition)
    return made


def _view(name: str, node: Node, home: Path) -> ViewText:
    fields = node.fields(_VIEW)
    texts = [key for key in ("sql", "rule") if key in fields]
    if len(texts) != 1:
        node.refuse(f"{node.name} needs its query: sql or rule, one of them")
    text = fields[texts[0]]
    query = text.text()
    if query.endswith(".sql") and "\n" not in query:
        query = text.within(lambda: _file(home / query))
    options = tuple((key, field.value()) for key, field in fields.items() if key not in ("sql", "rule"))
    return ViewText(name, query, text.place, options)


def _file(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise IvmeError(f"{path} cannot be read: {error}") from error


def declare_all(pipeline: Pipeline, database: Database) -> None:
    """Makes the pipeline's tables and views in an empty database."""
    for source in pipeline.tables:
        create_table(database, source.table)
    for view in pipeline.views:
        database.create_view(view.name, view.query, **dict(view.options))


def _names(node: Node) -> list[str]:
    """The columns of a key: `a, b`."""
    return [name.strip() for name in node.text().split(",")]


def create_table(database: Database, table: Table) -> None:
    """Makes one table as it was declared."""
    database.create_table(
        table.name,
        {column.name: column.type for column in table.columns if column.type is not None},
        **promises(table),
    )


def _check(pipeline: Pipeline, fields: dict[str, Node]) -> None:
    """Tries tables, views and sinks on an empty database in memory: what it refuses points at its line."""
    views = dict(fields["views"].entries())
    tables = dict(fields["tables"].entries())
    with Database(functions=pipeline.functions) as database:
        for source in pipeline.tables:
            tables[source.table.name].within(lambda source=source: create_table(database, source.table))  # type: ignore[misc]
        for view in pipeline.views:
            text = dict(views[view.name].entries())
            node = text.get("sql", text.get("rule", views[view.name]))
            node.within(lambda v=view: database.create_view(v.name, v.query, **dict(v.options)))  # type: ignore[misc]
        for sink in pipeline.sinks:
            check_sink(sink, dict(fields["sinks"].entries())[sink.name], database)
