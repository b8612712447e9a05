"""What a pipeline file says about its sinks, and whether their views can be written so."""

from __future__ import annotations

from pathlib import Path

from ivme.database import Database
from ivme.definitions.user_functions import imported
from ivme.pipeline.document import Node
from ivme.pipeline.model import BATCH, Sink
from ivme.pipeline.read_changes import located, settings
from ivme.pipeline.state_database import StateDatabase
from ivme.views.base_view import BaseView

_SINK = ("view", "mode", "what", "format", "path", "table", "call", "key", "options", "every", "duplicates")
_LOCAL = ("parquet", "delta", "csv", "json", "orc", "text", "avro", "xml")
PYTHON = "python"
"""The format of sinks that call a function."""


def read_sink(name: str, node: Node, home: Path) -> Sink:
    """A sink as the file has it. `what` is the older name of `mode`."""
    fields = node.fields(_SINK, ("view",))
    if "mode" in fields and "what" in fields:
        fields["what"].refuse(f"{node.name} has a mode; leave what out, which is its older name")
    mode = fields.get("mode", fields.get("what"))
    call = fields["call"].text() if "call" in fields else None
    if "format" not in fields and call is None:
        node.refuse(f"{node.name} needs the field format")
    if call is not None and {"format", "path", "table"} & fields.keys():
        fields["call"].refuse(f"{node.name} calls a function, which writes where it likes; leave format and path out")
    return Sink(
        name,
        fields["view"].text(),
        mode.choice("changes", "rows", "merge") if mode is not None else "changes",
        PYTHON if call is not None else fields["format"].format().lower(),
        located(fields["path"].text(), home) if "path" in fields else None,
        node.place,
        settings(fields["options"]) if "options" in fields else (),
        fields["every"].number() if "every" in fields else 1,
        "duplicates" in fields and fields["duplicates"].choice("refused", "accepted") == "accepted",
        tuple(item.text() for item in fields["key"].items()) if "key" in fields else (),
        fields["table"].text() if "table" in fields else None,
        call,
    )


def check_sink(sink: Sink, node: Node, database: Database) -> None:
    """Refuses a sink that its view cannot be written to, or that would lose or repeat something."""
    fields = dict(node.entries())
    view = fields["view"].within(lambda: database.view(sink.view))
    if sink.mode != "changes" and view.parameters:
        fields["view"].refuse(
            f"view {sink.view} has parameters, so it has rows only for given values; write its changes"
        )
    if sink.mode != "rows":
        fields["view"].within(lambda: view.changes().close())
    if sink.key and sink.mode != "merge":
        fields["key"].refuse("a key is for mode: merge")
    if sink.mode == "merge":
        _check_merge(sink, node, view, database)
    elif sink.call is not None:
        fields["call"].within(lambda: imported(str(sink.call), f"of sink {sink.name}"))
    else:
        _check_format(sink, node, fields)


def _check_format(sink: Sink, node: Node, fields: dict[str, Node]) -> None:
    if sink.format == "memory":
        fields["format"].refuse("Spark writes the format memory from streams only; write parquet or delta")
    if sink.path is None and sink.table is None and sink.format in _LOCAL:
        node.refuse(f"{node.name} needs a path to write {sink.format} to")
    once = (sink.format in _LOCAL and sink.table is None) or _is_pyiceberg(sink)
    if sink.mode == "changes" and not once and not sink.duplicates:
        fields["format"].refuse(
            f"changes in the format {sink.format} cannot be written exactly once: after a crash the last "
            "batch may have been written twice; if the readers check the column "
            f"{BATCH}, say so with `duplicates: accepted`"
        )


def _check_merge(sink: Sink, node: Node, view: BaseView, database: Database) -> None:
    """A merge is by a key of the view: one that is known, or that the file promises."""
    fields = dict(node.entries())
    by_known_key = (sink.format == "jdbc" and sink.table is not None and "url" in dict(sink.options)) or _is_pyiceberg(
        sink
    )
    if not by_known_key and (sink.format != "delta" or sink.path is None):
        fields.get("format", node).refuse(
            "mode: merge keeps a table equal to a view: say format: delta and a path, format: iceberg, a table, and "
            "its catalog among the options, or format: jdbc, a table, and the url among its options"
        )
    known = {column.lower() for column in view.columns}
    for column in sink.key:
        if column.lower() not in known:
            fields["key"].refuse(f"view {sink.view} has no column {column}; it has: {', '.join(view.columns)}")
    if by_known_key and sink.key and not merge_key(sink, database)[1]:
        fields["key"].refuse(
            f"nothing says that {', '.join(sink.key)} is a key of view {sink.view}, which such a merge needs"
        )
    if not sink.key and not database.relation(sink.view).keys:
        node.refuse(
            f"{node.name} needs a key: nothing says by which columns rows of view {sink.view} are found; name them, "
            "as in key: [a, b]"
        )


def _is_pyiceberg(sink: Sink) -> bool:
    """Whether a sink is a table of an Iceberg catalog that its options say how to reach."""
    known = {"catalog", "type", "uri"} & dict(sink.options).keys()
    return sink.format == "iceberg" and sink.table is not None and bool(known)


def merge_key(sink: Sink, database: StateDatabase) -> tuple[tuple[str, ...], bool]:
    """The columns that a sink merges by, and whether they are known to be a key of its view."""
    keys = database.relation(sink.view).keys
    columns = {column.lower(): column for column in database.view(sink.view).columns}
    if not sink.key:
        return tuple(columns[name.lower()] for name in min(keys, key=len)), True
    named = {name.lower() for name in sink.key}
    return tuple(columns[name.lower()] for name in sink.key), any({n.lower() for n in key} <= named for key in keys)
