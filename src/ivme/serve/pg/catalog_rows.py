"""The rows of PostgreSQL's catalog for the tables and views of a database: what clients list and describe.

Columns that no row of ours fills are there with a fixed value: clients read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ivme.query.model import Table
from ivme.query.types import Type
from ivme.serve.pg import values
from ivme.serve.pg.text import DATABASE, SCHEMA

_PUBLIC, _CATALOG, _INFORMATION = 2200, 11, 13000
_FIRST = 16384

Rows = list[tuple[Any, ...]]

TYPES: dict[str, tuple[int, str, int, str]] = {
    "bool": (values.BOOL, "boolean", 1, "B"),
    "binary": (values.BYTEA, "bytea", -1, "U"),
    "int": (values.INT8, "bigint", 8, "N"),
    "string": (values.TEXT, "text", -1, "S"),
    "float": (values.FLOAT8, "double precision", 8, "N"),
    "date": (values.DATE, "date", 4, "D"),
    "timestamp": (values.TIMESTAMP, "timestamp without time zone", 8, "D"),
    "decimal": (values.NUMERIC, "numeric", -1, "N"),
}
"""For each kind of type: its number, its name in SQL, the bytes of its values, and its category."""

_JSON = (values.JSON, "json", -1, "U")
_NAMES = {
    16: "bool",
    17: "bytea",
    20: "int8",
    25: "text",
    701: "float8",
    1082: "date",
    1114: "timestamp",
    1700: "numeric",
}
_OTHERS = (
    (19, "name", 64, "S"),
    (21, "int2", 2, "N"),
    (23, "int4", 4, "N"),
    (26, "oid", 4, "N"),
    (700, "float4", 4, "N"),
)

_SETTINGS = {
    "default_table_access_method": "heap",
    "max_index_keys": "32",
    "max_identifier_length": "255",
    "search_path": SCHEMA,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "TimeZone": "UTC",
}


def type_of(type_: Type | None) -> tuple[int, str, int, int]:
    """The number, the name, the bytes and the modifier of a type."""
    number, name, size, _ = TYPES.get(type_.kind, _JSON) if type_ is not None else TYPES["string"]
    if type_ is not None and type_.precision is not None and type_.scale is not None:
        return number, f"numeric({type_.precision},{type_.scale})", size, ((type_.precision << 16) | type_.scale) + 4
    return number, name, size, -1


def catalog_rows(tables: Sequence[Table], views: Sequence[tuple[Table, str]]) -> dict[str, Rows]:
    """The rows of each table of the catalog, with the first columns of its schema."""
    keyed = [(number, table) for number, table in enumerate(tables) if table.primary_key]
    index = {table.name: _FIRST + 2 * number + 1 for number, table in keyed}
    relations = [(_FIRST + 2 * number, table) for number, table in enumerate([*tables, *(table for table, _ in views)])]
    oids = {table.name: oid for oid, table in relations}
    return {
        "pg.pg_namespace": [(_CATALOG, "pg_catalog"), (_PUBLIC, SCHEMA), (_INFORMATION, "information_schema")],
        "pg.pg_class": [
            *(_class(oids[t.name], t.name, "r", len(t.columns), t.name in index) for t in tables),
            *(_class(oids[t.name], t.name, "v", len(t.columns), False) for t, _ in views),
            *(_class(index[t.name], f"{t.name}_pkey", "i", len(t.primary_key or ()), False) for _, t in keyed),
        ],
        "pg.pg_attribute": [row for oid, table in relations for row in _attributes(oid, table)],
        "pg.pg_type": [
            *((number, _NAMES[number], size, category) for number, _, size, category in TYPES.values()),
            (values.JSON, "json", -1, "U"),
            *_OTHERS,
        ],
        "pg.pg_constraint": [_key(index[t.name], oids[t.name], t) for _, t in keyed],
        "pg.pg_index": [(index[t.name], oids[t.name], _places(t), *[len(_places(t))] * 2) for _, t in keyed],
        "pg.pg_database": [(1, DATABASE)],
        "pg.pg_roles": [(10, DATABASE)],
        "pg.pg_tables": [(SCHEMA, t.name, DATABASE, t.name in index) for t in tables],
        "pg.pg_views": [(SCHEMA, t.name, DATABASE, text) for t, text in views],
        "pg.pg_am": [(2, "heap", "t"), (403, "btree", "i")],
        "pg.pg_settings": list(_SETTINGS.items()),
        "info.schemata": [(DATABASE, name, DATABASE) for name in (SCHEMA, "pg_catalog", "information_schema")],
        **_information(tables, views, keyed),
    }


def _information(
    tables: Sequence[Table], views: Sequence[tuple[Table, str]], keyed: Iterable[tuple[int, Table]]
) -> dict[str, Rows]:
    where, every = (DATABASE, SCHEMA), [*tables, *(table for table, _ in views)]
    keys = [(f"{table.name}_pkey", table) for _, table in keyed]
    return {
        "info.tables": [
            *((*where, t.name, "BASE TABLE", "YES") for t in tables),
            *((*where, t.name, "VIEW", "NO") for t, _ in views),
        ],
        "info.views": [(*where, t.name, text) for t, text in views],
        "info.columns": [(*where, t.name, *row) for t in every for row in _columns(t)],
        "info.table_constraints": [(*where, key, SCHEMA, t.name, "PRIMARY KEY") for key, t in keys],
        "info.key_column_usage": [
            (*where, key, SCHEMA, t.name, column, n)
            for key, t in keys
            for n, column in enumerate(t.primary_key or (), 1)
        ],
    }


def _class(oid: int, name: str, kind: str, columns: int, has_index: bool) -> tuple[Any, ...]:
    return (oid, name, _PUBLIC, kind, columns, has_index, -1.0)


def _attributes(oid: int, table: Table) -> Rows:
    firm = {*(table.primary_key or ()), *table.not_null}
    made = []
    for number, column in enumerate(table.columns, 1):
        type_, _, size, modifier = type_of(column.type)
        made.append((oid, column.name, type_, size, number, modifier, column.name in firm))
    return made


def _columns(table: Table) -> Rows:
    firm, defaults = {*(table.primary_key or ()), *table.not_null}, dict(table.defaults)
    made = []
    for number, column in enumerate(table.columns, 1):
        type_, name, _, _ = type_of(column.type)
        default = str(defaults[column.name]) if column.name in defaults else None
        decimal = column.type is not None and column.type.kind == "decimal"
        digits = (column.type.precision, column.type.scale) if decimal and column.type is not None else (None, None)
        nullable, kind = "NO" if column.name in firm else "YES", name.partition("(")[0]
        rest = (_NAMES.get(type_, "json"), *digits, None, None, "NO", "NEVER")
        made.append((column.name, number, default, nullable, kind, *rest))
    return made


def _places(table: Table) -> list[int]:
    return [table.column_names.index(name) + 1 for name in table.primary_key or ()]


def _key(index: int, oid: int, table: Table) -> tuple[Any, ...]:
    return (index, f"{table.name}_pkey", _PUBLIC, "p", oid, index, _places(table))
