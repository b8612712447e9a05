"""What a pipeline file says about the rows that a table is loaded with, and about its changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ivme.pipeline.delays import read_delay
from ivme.pipeline.document import Node
from ivme.pipeline.model import DEBEZIUM, DEBEZIUM_LOG, FRAME, LOG, Changes, Rows, Settings, TableSource
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.types import Type, parse_type

ROWS = ("format", "path", "table", "options", "schema", "select", "where")
_KINDS = ("directory", "stream", "frame", "delta", "iceberg", "view", "jdbc")
_KEYED = ("upsert", "envelope", "sequence_by", "sequence_type", "history")
_TOGETHER = ("transaction_by", "transaction_number", "collection")
_CHANGES = (*_KINDS, "format", "options", "schema", "select", "where", "operation", "weight", *_KEYED, *_TOGETHER)
_FILES = ("files_per_batch", "order", "duplicates", "snapshot")
_JDBC = ("cursor", "delay")

ICEBERG = "iceberg"

LOG_TABLE = declare(LOG, {"id": "string", "counts": "string"})
"""What is read of the log: a transaction, and how many events it has in each table, as JSON."""


def read_rows(node: Node, fields: dict[str, Node], table: Table, home: Path, path: Node | None = None) -> Rows:
    """Rows that Spark reads, with what the table makes of their columns."""
    where = path or fields.get("path")
    select = settings(fields["select"]) if "select" in fields else ()
    for column, _ in select:
        if table.column(column) is None:
            fields["select"].refuse(f"table {table.name} has no column {column} to select")
    return Rows(
        fields["format"].format() if "format" in fields else "",
        None if where is None else located(where.text(), home),
        node.place,
        settings(fields["options"]) if "options" in fields else (),
        fields["schema"].text() if "schema" in fields else None,
        select,
        fields["where"].text() if "where" in fields else None,
        table=fields["table"].text() if "table" in fields else None,
    )


def read_changes(node: Node, table: Table, home: Path) -> Changes:
    """Where the changes of a table come from, and what their rows mean."""
    given = [kind for kind, _ in node.entries() if kind in _KINDS]
    if len(given) != 1:
        node.refuse(f"{node.name} needs one of {', '.join(_KINDS)}; it has {', '.join(given) or 'none'}")
    kind = given[0]
    if kind == ICEBERG:
        return _iceberg(node, table, home)
    if kind in ("delta", "view"):
        return _numbered(node, kind, table, home)
    further = {"directory": _FILES, "jdbc": _JDBC}.get(kind, ())
    fields = node.fields(_CHANGES + further, _JDBC[:1] if kind == "jdbc" else ())
    if "operation" in fields and "weight" in fields:
        fields["weight"].refuse(f"{node.name} has an operation column or a weight column, not both")
    if kind == "directory" and "format" not in fields:
        node.refuse(f"{node.name} needs the format of its files, such as csv, json or parquet")
    rows = read_rows(node, fields, table, home, fields["directory"] if kind == "directory" else None)
    if kind == "stream":
        stream = fields["stream"].fields(("format", "path", "options"), ("format",))
        rows = read_rows(node, {**fields, **stream}, table, home)
    if kind == "jdbc":
        rows = _jdbc(node, fields, table, home)
    if kind == FRAME:
        rows, kind = named_frame(node, fields, table, home), "stream"
    upsert, envelope = _keyed(node, fields, table, rows)
    sequence_by, sequence_types = _sequence(fields, table, keyed=upsert or envelope is not None)
    by, number = _together(fields, envelope)
    return Changes(
        kind,
        rows,
        fields["operation"].text() if "operation" in fields else None,
        fields["weight"].text() if "weight" in fields else None,
        fields["files_per_batch"].number() if "files_per_batch" in fields else 100,
        "order" in fields and fields["order"].choice("name", "any") == "name",
        "duplicates" in fields and fields["duplicates"].choice("quarantine", "apply") == "quarantine",
        upsert=upsert,
        envelope=envelope,
        snapshot=_snapshot(fields, table),
        sequence_by=sequence_by,
        sequence_types=sequence_types,
        cursor=fields["cursor"].text() if "cursor" in fields else None,
        delay=fields["delay"].text() if "delay" in fields else None,
        history=_history(fields, table, sequence_types),
        transaction_by=by,
        transaction_number=number,
        collection=fields["collection"].text() if "collection" in fields else None,
    )


def named_frame(node: Node, fields: dict[str, Node], table: Table, home: Path) -> Rows:
    """Rows of a DataFrame that Python gives under a name."""
    for other in ("format", "path", "options", "schema"):
        if other in fields:
            fields[other].refuse(f"{node.name} is a DataFrame, which knows its own columns; leave {other} out")
    return replace(read_rows(node, fields, table, home), format=FRAME, path=fields[FRAME].text())


def _iceberg(node: Node, table: Table, home: Path) -> Changes:
    """The snapshots of an Iceberg table; options are the properties of its catalog."""
    fields = node.fields((ICEBERG, "options"), (ICEBERG,))
    rows = read_rows(node, {"options": fields["options"]} if "options" in fields else {}, table, home)
    return Changes(ICEBERG, replace(rows, format=ICEBERG, table=fields[ICEBERG].text()))


def _jdbc(node: Node, fields: dict[str, Node], table: Table, home: Path) -> Rows:
    """Where the other database is: Spark's options for JDBC, of which url and dbtable are needed."""
    if "envelope" in fields or "format" in fields:
        fields.get("envelope", fields.get("format", node)).refuse("rows of JDBC have neither a format nor an envelope")
    if "delay" in fields:
        fields["delay"].within(lambda: read_delay(fields["delay"].text()))
    options = dict(settings(fields["jdbc"]))
    missing = [name for name in ("url", "dbtable") if name not in options]
    if missing:
        fields["jdbc"].refuse(f"{node.name}.jdbc needs {' and '.join(missing)}, as Spark's JDBC does")
    found = read_rows(node, {name: field for name, field in fields.items() if name != "path"}, table, home)
    return replace(found, format="jdbc", options=tuple(options.items()))


def _together(fields: dict[str, Node], envelope: str | None) -> tuple[str | None, str | None]:
    """What says the transaction of an event and its number there; events of Debezium have places for both."""
    by, number = (fields[name].text() if name in fields else None for name in _TOGETHER[:2])
    if by is None and envelope is not None:
        return "transaction.id", number or "transaction.total_order"
    if by is None and number is not None:
        fields["transaction_number"].refuse("a transaction_number needs transaction_by")
    if by is not None and "snapshot" in fields:
        fields["transaction_by"].refuse("a snapshot is all rows of a table, of no transaction; leave it out")
    return by, number


def read_log(node: Node, home: Path) -> TableSource:
    """The log of transactions: Debezium's transaction metadata, as lines of JSON or the values of a topic."""
    given = [kind for kind, _ in node.entries() if kind in ("directory", "stream")]
    if len(given) != 1:
        node.refuse("transactions need their log: a directory of JSON, or a stream")
    fields = node.fields((given[0], "format", "files_per_batch"))
    if "format" in fields:
        fields["format"].choice("json")
    if given[0] == "directory":
        rows = Rows("json", located(fields["directory"].text(), home), node.place)
    else:
        rows = read_rows(node, fields["stream"].fields(("format", "path", "options"), ("format",)), LOG_TABLE, home)
    files = fields["files_per_batch"].number() if "files_per_batch" in fields else 100
    return TableSource(LOG_TABLE, node.place, None, Changes(given[0], rows, None, None, files, envelope=DEBEZIUM_LOG))


def _history(fields: dict[str, Node], table: Table, sequences: tuple[Type, ...]) -> str | None:
    """The name of the view with all versions of rows."""
    if "history" not in fields:
        return None
    if len(sequences) != 1:
        fields["history"].refuse(
            f"a history of table {table.name} needs one sequence_by, which says when versions start"
        )
    return fields["history"].text()


def _numbered(node: Node, kind: str, table: Table, home: Path) -> Changes:
    """The feed of a Delta table, or the sink of another pipeline."""
    fields = node.fields((kind, "starting_version", "snapshot") if kind == "delta" else (kind,))
    rows = read_rows(node, {}, table, home, fields[kind])
    start = fields["starting_version"].number(0) if "starting_version" in fields else None
    return Changes(kind, rows, starting_version=start, snapshot=_snapshot(fields, table))


def _snapshot(fields: dict[str, Node], table: Table) -> bool:
    """Whether each file or version is all that the table holds."""
    if "snapshot" not in fields:
        return False
    fields["snapshot"].choice("replace")
    for other in ("operation", "weight", *_KEYED):
        if other in fields:
            fields[other].refuse(f"a snapshot is all rows of table {table.name}; leave {other} out")
    if table.append_only:
        fields["snapshot"].refuse(f"table {table.name} is append-only; rows that a snapshot lacks could not go")
    return True


def _keyed(node: Node, fields: dict[str, Node], table: Table, rows: Rows) -> tuple[bool, str | None]:
    """Whether rows go by their primary key, and the envelope that they come in."""
    upsert = "upsert" in fields and fields["upsert"].boolean()
    envelope = fields["envelope"].choice(DEBEZIUM) if "envelope" in fields else None
    if not upsert and envelope is None:
        return False, None
    field = fields["envelope"] if envelope is not None else fields["upsert"]
    if not table.primary_key:
        field.refuse(f"table {table.name} needs a primary_key, by which its rows are found")
    if table.append_only:
        field.refuse(f"table {table.name} is append-only; upserts take rows away")
    if "weight" in fields:
        fields["weight"].refuse(f"{node.name} is applied by key, so every key has one row; leave weight out")
    if envelope is not None:
        if "operation" in fields:
            fields["operation"].refuse("the envelope says what happens to a row; leave operation out")
        if "directory" in fields and rows.format != "json":
            fields["format"].refuse("Debezium's events are JSON; say format: json")
    return upsert, envelope


def _sequence(fields: dict[str, Node], table: Table, *, keyed: bool) -> tuple[tuple[str, ...], tuple[Type, ...]]:
    """The expressions that order events, and the types of their values."""
    if "sequence_by" not in fields:
        if "sequence_type" in fields:
            fields["sequence_type"].refuse("a sequence_type needs sequence_by")
        return (), ()
    if not keyed:
        fields["sequence_by"].refuse(
            f"sequence_by orders the events of a key; say `upsert: true`, or which envelope table {table.name} has"
        )
    texts = tuple(item.text() for item in fields["sequence_by"].items())
    given = fields["sequence_type"].items() if "sequence_type" in fields else []
    if given and len(given) != len(texts):
        fields["sequence_type"].refuse(f"there are {len(texts)} sequences and {len(given)} types")
    named = [item.within(lambda item=item: parse_type(item.text())) for item in given]  # type: ignore[misc]
    return texts, tuple(named) or tuple(_type_of(text, table) for text in texts)


def _type_of(expression: str, table: Table) -> Type:
    """The type of a sequence: that of the table's column of that name, or whole numbers."""
    column = table.column(expression.strip("`"))
    return column.type if column is not None and column.type is not None else Type("int")


def settings(node: Node) -> Settings:
    """Names and values, as they are written."""
    return tuple((key, value.text()) for key, value in node.entries())


def located(path: str, home: Path) -> str:
    """A path relative to the file's folder; addresses with a scheme stay as they are."""
    return path if "://" in path else str(home / path)
