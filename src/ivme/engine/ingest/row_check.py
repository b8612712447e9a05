"""Rows as Python values, one at a time or in lists: the ways of giving a row, and the check of each of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.value_check import Check, checked, value_check
from ivme.engine.ingest.files import KINDS, other_file
from ivme.errors import DataError, shown
from ivme.query.model import Table
from ivme.shown_table import counted

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]


class RowCheck:
    """The check of single rows of one table, without Arrow; make it once and call it for each row.

    >>> from ivme.query.model import table
    >>> RowCheck(table("R", {"a": "int", "b": "decimal(5, 1)"}))((1, 2))
    (1, Decimal('2.0'))
    """

    __slots__ = ("_arity", "_checks", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        self._arity = len(table.columns)
        self._checks: tuple[Check, ...] = tuple(value_check(declared_type(table, c)) for c in table.columns)

    def __call__(self, row: Any, number: int = 0) -> Row:
        """The row as it is stored: a tuple in the order of the table's columns, each value in its one form.

        Errors say that it is row `number`.
        """
        if type(row) is not tuple or len(row) != self._arity:
            row = positional([row], self._table, number)[0]
        try:
            return tuple(
                [None if value is None else check(value) for value, check in zip(row, self._checks, strict=True)]
            )
        except (TypeError, ValueError):
            for column, value in zip(self._table.columns, row, strict=True):
                checked(value, declared_type(self._table, column), place(self._table, column.name, number))
            raise


@lru_cache(maxsize=256)
def row_check(table: Table) -> RowCheck:
    """The check of a table's rows."""
    return RowCheck(table)


def check_row(row: Any, table: Table) -> Row:
    """One row, a tuple, list or mapping, as it is stored; `DataError` if it is not a row of the table.

    Callers in a loop hold on to `row_check(table)`, which saves finding it again for each row.
    """
    return row_check(table)(row)


def place(table: Table, column: str, row: int) -> str:
    """Where a value is, as messages say it; rows are counted from 0, as in Python."""
    return f"table {table.name}, column {column}, rows[{row}]"


def positional(rows: Sequence[Any], table: Table, first: int = 0) -> Sequence[Sequence[Any]]:
    """The rows as sequences in the order of the table's columns; mappings and dataclasses give their values by name.

    Errors count the rows from `first`.
    """
    if set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {len(table.columns)}:
        return rows
    readers: dict[tuple[Any, ...], Callable[[Any], Row]] = {}
    return [_sequence(row, number, table, readers) for number, row in enumerate(rows, first)]


def _sequence(
    row: Any, number: int, table: Table, readers: dict[tuple[Any, ...], Callable[[Any], Row]]
) -> Sequence[Any]:
    if isinstance(row, Mapping):
        names = tuple(row)
        reader = readers.get(names)
        if reader is None:
            order = matched(names, table, f"table {table.name}, rows[{number}]")
            reader = readers[names] = _reader([names[p] if p is not None else None for p in order], table)
        return reader(row)
    if is_dataclass(row) and not isinstance(row, type):
        names = tuple(field.name for field in fields(row))
        order = matched(names, table, f"table {table.name}, rows[{number}]")
        values = default_values(table)
        return tuple([values[i] if p is None else getattr(row, names[p]) for i, p in enumerate(order)])
    if not isinstance(row, tuple | list):
        raise DataError(
            f"table {table.name}: rows[{number}] is {shown(row)}, which is not a row; "
            f"give each row as a tuple, a dict or a dataclass, as in [{_example(table)}]"
        )
    if len(row) != len(table.columns):
        raise _wrong_arity(row, number, table)
    return row


def default_values(table: Table) -> list[Any]:
    """What each column has in rows that come now and do not give it."""
    return table.default_row(datetime.now(UTC).replace(tzinfo=None))


def _reader(names: list[Any], table: Table) -> Callable[[Any], Row]:
    if None in names:
        values = default_values(table)
        return lambda row: tuple(values[i] if name is None else row[name] for i, name in enumerate(names))
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)


def _wrong_arity(row: Sequence[Any], number: int, table: Table) -> DataError:
    return DataError(
        f"table {table.name}: rows[{number}] has {counted(len(row), 'value')}, {shown(row)}; "
        f"the table has {len(table.columns)} columns: {', '.join(table.column_names)}"
    )


def matched(names: Iterable[Any], table: Table, where: str) -> list[int | None]:
    """For each of the table's columns the position of its name among `names`, whatever the case of letters.

    None stands for a column that is not among them and has a default. Raises `DataError`, starting with `where`, if a
    column is missing, unknown, or there twice.
    """
    given: dict[str, int] = {}
    for position, name in enumerate(names):
        column = table.column(name) if isinstance(name, str) else None
        if column is None:
            raise DataError(f"{where}: there is no column {name!r}; the columns are {', '.join(table.column_names)}")
        if column.name in given:
            raise DataError(f"{where}: the column {column.name} is given twice")
        given[column.name] = position
    defaults = dict(table.defaults)
    missing = [name for name in table.column_names if name not in given and name not in defaults]
    if missing:
        raise DataError(
            f"{where}: the column {missing[0]} is missing; give None (null in JSON) for NULL{_by_key(table, given)}"
        )
    return [given.get(name) for name in table.column_names]


def _by_key(table: Table, given: Iterable[str]) -> str:
    """What else may have been meant by rows that have the primary key and lack other columns."""
    if table.primary_key is None or not set(table.primary_key) <= set(given):
        return ""
    return "; to change some columns of a row, use update; to delete rows by their primary key, use delete_keys"


def keyed_rows(table: Table, keys: Any) -> list[Row]:
    """Rows that have primary keys, each a value, a tuple or a mapping, and NULL in all other columns.

    Values of a tuple are in the order in which the primary key was declared."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise DataError(f"table {table.name}: {shown(keys)} is not a list of keys; wrap it in a list")
    part = Table(table.name, table.declared_key)
    places = [table.columns.index(column) for column in part.columns]
    listed = [key if isinstance(key, tuple | list | Mapping) else (key,) for key in keys]
    made = []
    for key in positional(listed, part):
        row: list[Any] = [None] * len(table.columns)
        for position, value in zip(places, key, strict=True):
            row[position] = value
        made.append(tuple(row))
    return made


_LONGEST_NAME = 256
"""A text of so many characters is not the name of a file."""


def refuse_single(rows: Any, table: Table) -> None:
    """Raises `DataError` if what was given is one row, or text, and not a collection of rows."""
    if isinstance(rows, Mapping) or (
        isinstance(rows, tuple) and rows and not any(isinstance(row, tuple | list | Mapping) for row in rows)
    ):
        raise DataError(f"table {table.name}: {shown(rows)} is one row; wrap it in a list: [{shown(rows)}]")
    if isinstance(rows, str) and len(rows) < _LONGEST_NAME and (Path(rows).suffix or Path(rows).is_dir()):
        raise DataError(f"table {table.name}: {other_file(rows)}")
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(
            f"table {table.name}: {shown(rows)} holds no rows; give a list of tuples or dicts, a pandas or polars "
            f"DataFrame, an Arrow table, a NumPy array, or the name of a file that ends in {KINDS}"
        )


def _example(table: Table) -> str:
    return f"({', '.join(table.column_names)}{',' if len(table.columns) == 1 else ''})"


def check_key(table: Table, data: pa.Table | pa.RecordBatch) -> None:
    """As in SQL, the columns of a primary key are never NULL."""
    for number in table.key_positions:
        if data.column(number).null_count:
            row = data.column(number).is_null().to_pylist().index(True)
            raise DataError(f"{place(table, table.columns[number].name, row)}: a primary key cannot be NULL")
