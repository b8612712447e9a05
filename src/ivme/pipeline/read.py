"""From the text of a pipeline file to a `Pipeline`; everything that can be known without Spark is checked here."""

from __future__ import annotations

from pathlib import Path

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.pipeline.document import Node, read_document
from ivme.pipeline.model import BATCH, WEIGHT, Changes, Pipeline, Rows, Settings, Sink, TableSource, ViewText
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.table import promises
from ivme.user_functions import UserFunction

_ROOT = ("name", "state", "on_bad", "spark", "tables", "functions", "views", "sinks")
_FUNCTION = ("call", "arguments", "returns", "called_with_null")
_TABLE = (
    *("columns", "primary_key", "append_only", "static", "references", "unique", "not_null"),
    *("load", "changes"),
)
_ROWS = ("format", "path", "options", "schema", "select", "where")
_KINDS = ("directory", "stream", "delta", "view")
_CHANGES = (*_KINDS, "format", "options", "schema", "select", "where", "operation", "weight")
_FILES = ("files_per_batch", "order", "duplicates")
_VIEW = ("sql", "rule", "strategy", "epsilon", "semantics", "space", "rebalance", "graph", "favour")
_SINK = ("view", "what", "format", "path", "options", "every", "duplicates")


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
        tuple(_sink(each, node, home) for each, node in fields["sinks"].entries()) if "sinks" in fields else (),
        "on_bad" in fields and fields["on_bad"].choice("quarantine", "stop") == "stop",
        _settings(fields["spark"]) if "spark" in fields else (),
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
    load = _rows(fields["load"], fields["load"].fields(_ROWS, ("format",)), table, home) if "load" in fields else None
    changes = _changes(fields["changes"], table, home) if "changes" in fields else None
    return TableSource(table, node.place, load, changes)


def _rows(node: Node, fields: dict[str, Node], table: Table, home: Path, path: Node | None = None) -> Rows:
    where = path or fields.get("path")
    select = _settings(fields["select"]) if "select" in fields else ()
    for column, _ in select:
        if table.column(column) is None:
            fields["select"].refuse(f"table {table.name} has no column {column} to select")
    return Rows(
        fields["format"].text() if "format" in fields else "",
        None if where is None else _located(where.text(), home),
        node.place,
        _settings(fields["options"]) if "options" in fields else (),
        fields["schema"].text() if "schema" in fields else None,
        select,
        fields["where"].text() if "where" in fields else None,
    )


def _changes(node: Node, table: Table, home: Path) -> Changes:
    given = [kind for kind, _ in node.entries() if kind in _KINDS]
    if len(given) != 1:
        node.refuse(f"{node.name} needs one of {', '.join(_KINDS)}; it has {', '.join(given) or 'none'}")
    kind = given[0]
    if kind in ("delta", "view"):
        fields = node.fields((kind, "starting_version") if kind == "delta" else (kind,))
        rows = _rows(node, {}, table, home, fields[kind])
        start = fields["starting_version"].number(0) if "starting_version" in fields else None
        return Changes(kind, rows, starting_version=start)
    fields = node.fields(_CHANGES + (_FILES if kind == "directory" else ()))
    if "operation" in fields and "weight" in fields:
        fields["weight"].refuse(f"{node.name} has an operation column or a weight column, not both")
    if kind == "directory" and "format" not in fields:
        node.refuse(f"{node.name} needs the format of its files, such as csv, json or parquet")
    rows = _rows(node, fields, table, home, fields["directory"] if kind == "directory" else None)
    if kind == "stream":
        stream = fields["stream"].fields(("format", "path", "options"), ("format",))
        rows = _rows(node, {**fields, **stream}, table, home)
    return Changes(
        kind,
        rows,
        fields["operation"].text() if "operation" in fields else None,
        fields["weight"].text() if "weight" in fields else None,
        fields["files_per_batch"].number() if "files_per_batch" in fields else 100,
        "order" in fields and fields["order"].choice("name", "any") == "name",
        "duplicates" in fields and fields["duplicates"].choice("quarantine", "apply") == "quarantine",
    )


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


def _sink(name: str, node: Node, home: Path) -> Sink:
    fields = node.fields(_SINK, ("view", "format"))
    return Sink(
        name,
        fields["view"].text(),
        fields["what"].choice("rows", "changes") if "what" in fields else "changes",
        fields["format"].text().lower(),
        _located(fields["path"].text(), home) if "path" in fields else None,
        node.place,
        _settings(fields["options"]) if "options" in fields else (),
        fields["every"].number() if "every" in fields else 1,
        "duplicates" in fields and fields["duplicates"].choice("refused", "accepted") == "accepted",
    )


def _settings(node: Node) -> Settings:
    return tuple((key, value.text()) for key, value in node.entries())


def _located(path: str, home: Path) -> str:
    """A path relative to the file's folder; addresses with a scheme stay as they are."""
    return path if "://" in path else str(home / path)


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
            _check_sink(sink, dict(fields["sinks"].entries())[sink.name], database)


_LOCAL = ("parquet", "delta", "csv", "json", "orc", "text", "avro", "xml")


def _check_sink(sink: Sink, node: Node, database: Database) -> None:
    fields = dict(node.entries())
    view = fields["view"].within(lambda: database.view(sink.view))
    if sink.what == "rows" and view.parameters:
        fields["view"].refuse(f"view {sink.view} has parameters, so that it has no rows of its own; write its changes")
    if sink.what == "changes":
        fields["view"].within(lambda: view.changes().close())
    if sink.format == "memory":
        fields["format"].refuse("Spark writes the format memory from streams only; write parquet or delta")
    if sink.path is None and sink.format in _LOCAL:
        node.refuse(f"{node.name} needs a path to write {sink.format} to")
    if sink.what == "changes" and sink.format not in _LOCAL and not sink.duplicates:
        fields["format"].refuse(
            f"changes in the format {sink.format} cannot be written twice without harm, so that after a crash the last "
            "batch may be there twice; if those who read them look at the column "
            f"{BATCH}, say so with `duplicates: accepted`"
        )
