"""Values, tables and options as JSON has them, and back, exactly.

A value's form depends on its column's type alone: what JSON knows stays as it is, and the rest is a string.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.value_check import checked
from ivme.errors import PlanError, StorageError
from ivme.query.model import Table, table
from ivme.query.table import Default, plain_promises, read_promises
from ivme.query.types import Type

Convert = Callable[[Any], Any]

_WRITE: dict[str, Convert] = {
    "decimal": str,
    "date": datetime.date.isoformat,
    "timestamp": datetime.datetime.isoformat,
    "binary": bytes.hex,
}
_READ: dict[str, Convert] = {
    "decimal": Decimal,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "binary": bytes.fromhex,
}


def writers(of: Table) -> list[tuple[int, Convert]]:
    """The columns whose values have another form in JSON, and how to get it.

    >>> [(place, write(b"\\x01")) for place, write in writers(table("R", {"a": "int", "b": "binary"}))]
    [(1, '01')]
    """
    return _converted(of, _writer)


def readers(of: Table) -> list[tuple[int, Convert]]:
    """The columns whose values have another form in JSON, and how to read it."""
    return _converted(of, _reader)


def _converted(of: Table, by_type: Callable[[Type], Convert | None]) -> list[tuple[int, Convert]]:
    found = [by_type(declared_type(of, column)) for column in of.columns]
    return [(place, change) for place, change in enumerate(found) if change is not None]


def _writer(type_: Type) -> Convert | None:
    """How a value is written, None if JSON has it as it is; arrays and structs are lists of their parts."""
    if type_.element is not None:
        write = _of_parts(_writer(type_.element))
        return lambda value: [write(each) for each in value]
    if type_.fields:
        writes = [_of_parts(_writer(each)) for _, each in type_.fields]
        return lambda value: [write(each) for write, each in zip(writes, value.parts, strict=True)]
    return _WRITE.get(type_.kind)


def _reader(type_: Type) -> Convert | None:
    """How a value is read, in the form that Arrow takes."""
    if type_.element is not None:
        read = _of_parts(_reader(type_.element))
        return lambda value: [read(each) for each in value]
    if type_.fields:
        reads = [(name, _of_parts(_reader(each))) for name, each in type_.fields]
        return lambda value: {name: read(each) for (name, read), each in zip(reads, value, strict=True)}
    return _READ.get(type_.kind)


def _of_parts(change: Convert | None) -> Convert:
    """The same for a part of a value, which may be NULL."""
    return lambda value: value if value is None or change is None else change(value)


def convert(rows: list[list[Any]], conversions: list[tuple[int, Convert]]) -> list[list[Any]]:
    """The rows with some columns in another form; NULL is null in every form. Changes the rows that are given."""
    for row in rows:
        for place, change in conversions:
            if row[place] is not None:
                row[place] = change(row[place])
    return rows


def plain_table(of: Table) -> dict[str, Any]:
    """A table's declaration. One that keeps no rows is refused: views are built from tables when all else fails."""
    if not of.keep_rows:
        raise PlanError(
            f"table {of.name} has to keep its rows in a directory: views that a later version of ivme plans anew are "
            "built from them; leave keep_rows out, or use a database in memory"
        )
    return {
        "name": of.name,
        "columns": [[column.name, str(declared_type(of, column))] for column in of.columns],
        **plain_promises(of),
        **({"defaults": [*map(list, _plain_defaults(of))]} if of.defaults else {}),
    }


def _plain_defaults(of: Table) -> Iterator[tuple[str, Any]]:
    """The columns with a default: a list with its value, or "time" for the time when rows come."""
    writes = dict(writers(of))
    for name, default in of.defaults:
        write = writes.get(of.column_names.index(name), _same)
        yield name, "time" if default.is_time else [write(default.value)]


def read_table(given: Mapping[str, Any]) -> Table:
    read = table(given["name"], dict(given["columns"]), **read_promises(given))
    defaults = [(name, _read_default(read, name, plain)) for name, plain in given.get("defaults", ())]
    return replace(read, defaults=tuple(defaults))


def _read_default(of: Table, name: str, plain: Any) -> Default:
    """A default in the form that rows have: what Arrow takes for arrays and structs could not be compared."""
    if plain == "time":
        return Default(is_time=True)
    place = of.column_names.index(name)
    value = dict(readers(of)).get(place, _same)(plain[0])
    return Default(checked(value, declared_type(of, of.columns[place]), f"the default of column {name}"))


def _same(value: Any) -> Any:
    return value


def plain_option(name: str, value: object) -> Any:
    """An option of a view; a number that JSON does not have goes under its type's name."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Fraction | Decimal):
        return {type(value).__name__.lower(): str(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[plain_option(name, key), plain_option(name, each)] for key, each in value.items()]}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_option(name, each) for each in value]
    raise StorageError(
        f"option {name} is a {type(value).__name__}, which a durable database cannot keep; "
        "use numbers, strings, lists or mappings"
    )


def read_option(given: Any) -> Any:
    if isinstance(given, list):
        return [read_option(each) for each in given]
    if not isinstance(given, dict):
        return given
    ((kind, value),) = given.items()
    if kind == "mapping":
        return {read_option(key): read_option(each) for key, each in value}
    return {"fraction": Fraction, "decimal": Decimal}[kind](value)
