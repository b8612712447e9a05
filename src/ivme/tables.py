"""Tables as users declare them: Python values, CREATE TABLE statements, or a file of either."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ivme.errors import SchemaError
from ivme.query.model import Table, check_table, table
from ivme.query.types import Type

Schema = Table | Mapping[str, Any] | Iterable[str]
"""A table, its columns with their types, just the names of its columns, or the long form: a mapping with `columns`
in either of these forms, and where it applies `primary_key`, `append_only`, `static`, `keep_rows`, `references`,
`unique`, `not_null`, `rows` and `distinct`."""

Tables = Mapping[str, Schema] | Iterable[Table]

_MOST_ROWS = 10**18
"""The largest statistic: plans compute with its powers."""

_FIELDS = (
    *("columns", "primary_key", "append_only", "static", "keep_rows", "references", "unique", "not_null"),
    *("rows", "distinct"),
)


def read_tables(tables: Tables | None) -> tuple[Table, ...]:
    """The declared tables; none if the query's own text is all that is known.

    >>> [str(t.columns[0].type) for t in read_tables({"R": {"a": "int"}, "S": ["b", "c"]})]
    ['int', 'None']
    """
    if tables is None:
        return ()
    if isinstance(tables, Mapping):
        declared = tuple(_declared(name, schema) for name, schema in tables.items())
        for each in declared:
            check_table(each)
        return declared
    if isinstance(tables, str | bytes) or not isinstance(tables, Iterable):
        raise SchemaError(
            f"tables must map names to schemas, or list Table objects; it is {tables!r}; over the tables of a "
            'database, run db.sql("EXPLAIN SELECT ...")'
        )
    found = tuple(tables)
    for each in found:
        if not isinstance(each, Table):
            raise SchemaError(f"tables must map names to schemas, or list Table objects; {each!r} is not a Table")
    return found


def _declared(name: object, schema: object) -> Table:
    """A table from any form of a schema; one with `columns` that are a mapping or a list is the long form."""
    if not isinstance(name, str):
        raise SchemaError(f"the name of a table must be a string; it is {name!r}")
    if isinstance(schema, Table):
        if schema.name != name:
            raise SchemaError(f"the table {schema.name} is declared under the name {name}; use one name")
        return schema
    if isinstance(schema, Mapping) and isinstance(schema.get("columns"), Mapping | list | tuple):
        return _described(name, schema)
    return table(name, _columns(name, schema))


def _columns(name: str, schema: object) -> Mapping[str, str | type | Type] | tuple[str, ...]:
    if isinstance(schema, Mapping):
        for column, kind in schema.items():
            if not isinstance(column, str) or not isinstance(kind, str | type | Type):
                nested = column in _FIELDS or isinstance(kind, Mapping | list | tuple)
                hint = f"; a table that says more has `columns` among {', '.join(_FIELDS)}" if nested else ""
                raise SchemaError(
                    f"table {name} needs a type for each column, such as 'int'; {column} has {kind!r}{hint}"
                )
        return schema
    if isinstance(schema, str | bytes) or not isinstance(schema, Iterable):
        raise SchemaError(f"table {name} needs its columns: a mapping to types, or a list of names; it has {schema!r}")
    columns = tuple(schema)
    if not all(isinstance(column, str) for column in columns):
        raise SchemaError(f"table {name} needs the names of its columns as strings; it has {list(columns)!r}")
    return columns


def load_tables(path: Path) -> tuple[Table, ...]:
    """The tables of a file: CREATE TABLE statements in `.sql`; in `.yml`, `.yaml` or `.json` a mapping from names
    to schemas, as `read_tables` takes them. A file without tables is refused: nothing would be checked against it."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"the file of tables {path} cannot be read: {error}") from error
    if path.suffix.lower() == ".sql":
        from ivme.query.ddl import parse_create_tables

        found = parse_create_tables(text)
    else:
        content = _parsed(path, text)
        if not isinstance(content, Mapping | None):
            raise SchemaError(f"{path} must map the names of tables to their columns")
        found = read_tables(content)
    if not found:
        raise SchemaError(f"{path} has no tables; write CREATE TABLE statements, or map names to columns")
    return found


def _parsed(path: Path, text: str) -> object:
    kind = path.suffix.lower()
    if kind not in (".yml", ".yaml", ".json"):
        raise SchemaError(f"{path} must be a .sql, .yml or .json file")
    import yaml

    try:
        return json.loads(text) if kind == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SchemaError(f"{path} is not valid {kind[1:]}: {error}") from error


def _described(name: str, entry: Mapping[Any, Any]) -> Table:
    """A table in the long form: its columns, and what it promises."""
    for field in entry:
        if field not in _FIELDS:
            raise SchemaError(f"table {name} has an unknown field {field!r}; known are {', '.join(_FIELDS)}")
    columns = _columns(name, entry["columns"])
    plain = table(name, columns)
    key = entry.get("primary_key")
    if key is not None and not isinstance(key, str | list | tuple):
        raise SchemaError(f"the primary_key of table {name} must be a column or a list of columns; it is {key!r}")
    for field in ("append_only", "static", "keep_rows"):
        if not isinstance(entry.get(field, False), bool):
            raise SchemaError(f"{field} of table {name} must be true or false; it is {entry[field]!r}")
    for field in ("unique", "not_null"):
        if not isinstance(entry.get(field) or [], str | list | tuple):
            raise SchemaError(f"{field} of table {name} must list columns; it is {entry[field]!r}")
    if not isinstance(entry.get("references") or {}, Mapping):
        raise SchemaError(f"references of table {name} must map columns to tables; it is {entry['references']!r}")
    rows, distinct = entry.get("rows"), entry.get("distinct") or {}
    if not _is_count(rows, optional=True) or not isinstance(distinct, Mapping):
        raise SchemaError(
            f"rows of table {name} must be a number up to 10^18, and distinct a mapping from columns to numbers"
        )
    if not all(plain.column(str(column)) and _is_count(number) for column, number in distinct.items()):
        raise SchemaError(f"distinct of table {name} must give a number for columns that it has; it is {distinct!r}")
    return table(
        name,
        columns,
        primary_key=key,
        append_only=entry.get("append_only", False),
        static=entry.get("static", False),
        keep_rows=entry.get("keep_rows", True),
        references=entry.get("references"),
        unique=entry.get("unique") or (),
        not_null=entry.get("not_null") or (),
        rows=rows,
        distinct=distinct,
    )


def _is_count(value: object, *, optional: bool = False) -> bool:
    if value is None:
        return optional
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_ROWS
