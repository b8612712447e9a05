"""What a pipeline file says about a table: its columns and promises, where its rows come from, and its watermark."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from ivme.engine.codes.value_check import checked
from ivme.pipeline.delays import read_delay
from ivme.pipeline.document import Node
from ivme.pipeline.model import BATCH, FRAME, WEIGHT, Rows, TableSource, Watermark
from ivme.pipeline.read_changes import ROWS, named_frame, read_changes, read_rows
from ivme.pipeline.state_database import StateDatabase
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.table import promises

_TABLE = (
    *("columns", "primary_key", "append_only", "static", "references", "unique", "not_null"),
    *("load", "changes", "defaults", "watermark"),
)
_TIMES = ("timestamp", "date")


def read_table(name: str, node: Node, home: Path) -> TableSource:
    """A table as the file has it."""
    fields = node.fields(_TABLE, ("columns",))
    columns = {column: _type_text(column, kind) for column, kind in fields["columns"].entries()}
    for column, kind in fields["columns"].entries():
        kind.within(partial(declare, name, {column: columns[column]}))
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
        fields["changes"].refuse(f"table {name} is static, so it cannot have changes")
    load = _load(fields["load"], table, home) if "load" in fields else None
    changes = read_changes(fields["changes"], table, home) if "changes" in fields else None
    if changes is not None and changes.kind == "jdbc" and not changes.upsert and load is not None:
        fields["load"].refuse(f"the first batch of table {name} has all rows of the other database; leave load out")
    if changes is not None and changes.history is not None and load is not None:
        fields["load"].refuse(
            f"rows that are loaded have no sequence, so the history of table {name} could not say when they "
            "started; give them as changes"
        )
    defaults = tuple((key, _default(table, key, each)) for key, each in _entries(fields, "defaults"))
    watermark = _watermark(table, fields["watermark"]) if "watermark" in fields else None
    return TableSource(table, node.place, load, changes, defaults, watermark)


def _type_text(column: str, node: Node) -> str:
    """The type of a column as it is written; one that a comma cut off is told apart from one that is wrong."""
    text = node.text()
    if any(text.count(left) > text.count(right) for left, right in ("()", "<>")):
        node.refuse(
            f'{node.name} is {text}, cut off at a comma: put the type in quotes, as in {column}: "decimal(8, 2)"; in '
            "{...}, a comma begins the next field"
        )
    return text


def _load(node: Node, table: Table, home: Path) -> Rows:
    """What a table starts with: rows in a format, or a DataFrame."""
    fields = node.fields((*ROWS, FRAME))
    if FRAME in fields:
        return named_frame(node, fields, table, home)
    found = read_rows(node, node.fields(ROWS, () if "table" in fields else ("format",)), table, home)
    if found.table is not None and found.path is not None:
        fields["path"].refuse(f"{node.name} has a table or a path, not both")
    return found


def _watermark(table: Table, node: Node) -> Watermark:
    """Which column says when a row happened, and how late rows may come."""
    fields = node.fields(("column", "delay", "keep"), ("column",))
    column = table.column(fields["column"].text())
    if column is None or column.type is None or column.type.kind not in _TIMES:
        fields["column"].refuse(f"a watermark needs a column of dates or timestamps of table {table.name}")
    delay = fields["delay"].within(lambda: read_delay(fields["delay"].text())) if "delay" in fields else timedelta()
    keep = fields["keep"].within(lambda: read_delay(fields["keep"].text())) if "keep" in fields else None
    if keep is not None and (table.append_only or not keep):
        why = "it is append-only" if table.append_only else "the time is zero"
        fields["keep"].refuse(f"table {table.name} cannot delete old rows: {why}")
    return Watermark(column.name, delay, keep)


def _entries(fields: dict[str, Node], name: str) -> list[tuple[str, Node]]:
    return list(fields[name].entries()) if name in fields else []


def _default(table: Table, column: str, node: Node) -> object:
    """The value of a column in rows that came without it."""
    found = table.column(column)
    if found is None or found.type is None:
        node.refuse(f"table {table.name} has no column {column} to have a default")
    type_ = found.type
    return node.within(lambda: checked(node.value(), type_, f"the default of column {column}"))


def _names(node: Node) -> list[str]:
    """The columns of a key: `a, b`."""
    return [name.strip() for name in node.text().split(",")]


def create_table(database: StateDatabase, table: Table) -> None:
    """Makes one table as it was declared."""
    database.create_table(
        table.name,
        {column.name: column.type for column in table.columns if column.type is not None},
        **promises(table),
    )
