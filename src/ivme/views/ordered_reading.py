"""Reading a view by an order: pages, rows by their position, and samples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError, UnknownNameError
from ivme.query.order import Order, OrderKey
from ivme.views.ordered_rows import sort

Row = tuple[Any, ...]


def order_keys(view: str, columns: Sequence[str], order_by: str | Sequence[str]) -> Order:
    """The order that names of columns stand for, each with a minus sign in front if it descends.

    NULL comes first, and last with a minus sign, as in ORDER BY; equal rows come in the order of all columns.
    """
    keys = []
    for name in [order_by] if isinstance(order_by, str) else order_by:
        plain = name.removeprefix("-")
        if plain not in columns:
            raise UnknownNameError(f"view {view} has no column {plain!r} to order by: it has {', '.join(columns)}")
        keys.append(OrderKey(columns.index(plain), name.startswith("-"), not name.startswith("-")))
    return Order(tuple(keys), None, 0, "")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which rows a page has: so many in an order, from an offset on, behind the row `after`.

    Without an order they come in the view's own.
    """

    order: Order | None = None
    limit: int | None = None
    offset: int = 0
    after: Row | None = None

    def check(self) -> None:
        """Refuses a limit or an offset that is not a number of rows."""
        check_number(self.limit, "limit")
        check_number(self.offset, "offset")


def page_table(view: str, table: pa.Table, request: PageRequest) -> pa.Table:
    """The rows of a page, of a table that is in order already if no order is given; O(n log n) for n rows.

    With `after`, a row, they are those behind it and its copies. A page does not end between copies of one row, so that
    consecutive pages together hold every row of the view, with its multiplicity.
    """
    request.check()
    order, limit, after = request.order, request.limit, request.after
    start = request.offset
    if after is not None:
        given = _row_table(view, table.schema, after)
        table = _behind(view, table, tuple(after)) if order is None else pa.concat_tables([table, given])
    places = np.arange(table.num_rows) if order is None else sort(table, order)
    if after is not None and order is not None:
        behind = int(np.flatnonzero(places == table.num_rows - 1)[0])
        places = places[behind + 1 :]
    stop = len(places) if limit is None else min(start + limit, len(places))
    while limit and start < stop < len(places) and _is_same(table, places[stop - 1], places[stop]):
        stop += 1
    return table.take(pa.array(places[start:stop]))


def _behind(view: str, table: pa.Table, row: Row) -> pa.Table:
    """The rows behind one, of rows in their order."""
    rows = listed(table)
    if row not in rows:
        raise DataError(f"the row {row!r} is not in view {view}, whose own order does not place it; give order_by")
    return table.slice(len(rows) - rows[::-1].index(row))


def _is_same(table: pa.Table, one: int, other: int) -> bool:
    return bool(table.slice(int(one), 1).equals(table.slice(int(other), 1)))


def _row_table(view: str, schema: pa.Schema, row: Row) -> pa.Table:
    if not isinstance(row, tuple | list) or len(row) != len(schema.names):
        raise DataError(f"`after` is a row of view {view}, of {len(schema.names)} columns: {', '.join(schema.names)}")
    try:
        return pa.table([pa.array([v], f.type) for v, f in zip(row, schema, strict=True)], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"`after` is not a row of view {view}: {error}") from None


def placed_row(view: str, schema: pa.Schema, row: Row) -> Row:
    """A row that is given, with values of the types of the columns; DataError if it is not one."""
    (found,) = listed(_row_table(view, schema, row))
    return found


def check_number(number: object, name: str) -> None:
    """Refuses what is not a number of rows."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
        raise DataError(f"{name} is a whole number that is not negative, not {number!r}")


def check_position(key: object) -> None:
    """Refuses what is not a position of a row."""
    if not isinstance(key, int) or isinstance(key, bool):
        raise DataError(f"a row is found by its position, a whole number, or by a slice; not by {key!r}")


def listed(table: pa.Table) -> list[Row]:
    """The rows of a table as tuples."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*map(python_values, table.columns), strict=True))


def span_of(key: slice, size: int) -> tuple[int, int]:
    """From which row up to which one a slice reaches."""
    if key.step not in (None, 1):
        raise DataError("a slice of a view has no step: view[i:j]")
    for end in (key.start, key.stop):
        if end is not None:
            check_position(end)
    start, stop, _ = key.indices(size)
    return start, max(start, stop)


def drawn(size: int, count: int, seed: int | None) -> list[int]:
    """Positions of a sample without repetition, each subset of that size as likely as any other."""
    check_number(count, "the number of rows")
    return sorted(random.Random(seed).sample(range(size), min(count, size)))
