"""Whether tables hold to what they promise: UNIQUE, NOT NULL and REFERENCES, checked on request.

No answer depends on these promises, only what updates cost. So they are not checked as rows change; a check reads whole
tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ivme.engine.read.recompute import Tables
from ivme.errors import DataError
from ivme.query.table import ForeignKey, Table

_Row = tuple[Any, ...]


def check_promises(tables: Tables, names: Iterable[str]) -> None:
    """Raises DataError, with the row, at the first promise of these tables that does not hold.

    Tables that keep no rows come last: they are refused, and the others are checked before."""
    for name in sorted(names, key=lambda name: not tables.relation(name).keep_rows):
        table = tables.relation(name)
        for broken in (*_nulls(tables, table), *_repeated(tables, table), *_dangling(tables, table)):
            raise DataError(f"{broken}; correct the rows, or declare the table without this promise")


def _values(tables: Tables, name: str, columns: Sequence[str]) -> Iterator[_Row]:
    """The values of some columns in all rows, each repeated by its multiplicity."""
    data, weights = tables.contents(name)
    known = {column.lower(): column for column in data.column_names}
    picked = [data.column(known[column.lower()]).to_pylist() for column in columns]
    for values, weight in zip(zip(*picked, strict=True), weights.tolist(), strict=True):
        for _ in range(weight):
            yield values


def _nulls(tables: Tables, table: Table) -> Iterator[str]:
    for column in table.not_null:
        if any(value is None for (value,) in _values(tables, table.name, [column])):
            yield f"column {column} of table {table.name} is declared NOT NULL, and has a NULL"


def _repeated(tables: Tables, table: Table) -> Iterator[str]:
    for key in table.unique:
        seen: set[_Row] = set()
        for values in _values(tables, table.name, key):
            if None not in values and values in seen:
                yield f"({', '.join(key)}) of table {table.name} is declared UNIQUE, and two rows have {values!r}"
            seen.add(values)


def _dangling(tables: Tables, table: Table) -> Iterator[str]:
    for foreign in table.references:
        target = tables.relation(foreign.table)
        known = set(_values(tables, target.name, _target(table, foreign, target)))
        for values in _values(tables, table.name, foreign.columns):
            if None not in values and values not in known:
                yield f"table {table.name} has {values!r} in {foreign}, and there is no such row"


def _target(table: Table, foreign: ForeignKey, target: Table) -> tuple[str, ...]:
    found = foreign.target or target.primary_key
    if found is None or len(found) != len(foreign.columns):
        raise DataError(
            f"table {table.name} has {foreign}, but {target.name} has no primary key of as many columns: name the "
            "columns that are referenced"
        )
    return found
