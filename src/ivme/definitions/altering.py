"""How the tables of a database are altered: their columns, defaults and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ivme.definitions.table_columns import add_column, drop_column, rename_column, set_default
from ivme.engine.codes.value_check import checked
from ivme.errors import SchemaError
from ivme.query.table import Column, Default
from ivme.query.types import Type, parse_type

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions

NOW = "now()"


class Altering:
    """The part of a database that alters tables. Each change is made as a whole, also in a directory, or not at all."""

    definitions: Definitions

    def add_column(self, table: str, name: str, type: str | Type, default: object = None) -> None:
        """Adds a column to a table, after the others; existing rows get the default.

        Rows that leave the column out get the default, too, which may be `"now()"` for a timestamp or date.
        """
        add_column(self.definitions, table, name, type, read_default(default, parse_type(type)))

    def drop_column(self, table: str, name: str) -> None:
        """Drops a column and its values, unless a view reads it or it is part of the primary key."""
        drop_column(self.definitions, table, name)

    def rename_column(self, table: str, name: str, to: str) -> None:
        """Renames a column, unless a view reads it or another table references it."""
        rename_column(self.definitions, table, name, to)

    def set_default(self, table: str, name: str, default: object) -> None:
        """Sets the default of a column, for rows inserted from now on; None drops it."""
        column = self.definitions.table(table).column(name)
        type_ = None if column is None else column.type
        set_default(self.definitions, table, name, read_default(default, type_ or Type("string")))

    def rename_table(self, name: str, to: str) -> None:
        """Renames a table, also where other tables reference it, unless a view reads it."""
        self.definitions.rename_table(name, to)


def read_default(value: object, type_: Type) -> Default | None:
    """A default as Python has it: a value, or `"now()"` for the time when rows come; None for NULL."""
    if value is None:
        return None
    is_time = type_.kind in ("timestamp", "date") and isinstance(value, str) and value.lower() == NOW
    return Default(is_time=True) if is_time else Default(value)


def read_defaults(
    table: str, columns: Iterable[Column], given: Mapping[str, object]
) -> tuple[tuple[str, Default], ...]:
    """The defaults of a table's columns, each of its column's type."""
    found = {column.name.lower(): column for column in columns}
    made = []
    for name, value in given.items():
        column = found.get(name.lower()) if isinstance(name, str) else None
        if column is None or column.type is None:
            raise SchemaError(f"table {table} has no column {name!r} to have a default")
        default = read_default(value, column.type)
        if default is not None and not default.is_time:
            default = Default(checked(value, column.type, f"the default of column {column.name} of table {table}"))
        if default is not None:
            made.append((column.name, default))
    return tuple(made)
