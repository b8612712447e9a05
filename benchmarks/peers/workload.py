"""What all contenders are given: tables, a view in SQL, and rounds of changes and requests.

Columns are integers and strings only, and one text of SQL serves all systems, so that nobody computes something else.
Prices are in cents and dates are numbers such as 19950315: integers are quick everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `key` names a row, and `indexes` are what a careful administrator would make for the view."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, ...], ...] = ()

    def places(self) -> list[int]:
        """Where the key's columns are in a row."""
        return [list(self.columns).index(name) for name in self.key]


@dataclass(frozen=True, slots=True)
class Change:
    """Rows to insert (sign 1) or to delete (-1), in both forms, so that no clock runs while they are converted."""

    table: str
    rows: pa.Table
    sign: int
    tuples: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Round:
    """What is timed: changes in one transaction, then requests whose answers are read whole."""

    changes: tuple[Change, ...]
    requests: tuple[Request, ...] = ({},)


@dataclass(frozen=True, slots=True)
class Workload:
    """A view over loaded tables, and rounds, of which each second one undoes the one before.

    `views` are those of ivme if they are more than `sql`, the last of which is read by `reading`: "rows", "scalar" or
    "count". `turn` rounds are taken by one contender before the next. `triggers` is what SQLite's triggers keep, and
    `kept` how the answer is read from it; `pathway` names the plan of pathway_rounds.py.
    """

    key: str
    title: str
    sql: str
    tables: tuple[Table, ...]
    loaded: Mapping[str, pa.Table]
    rounds: tuple[Round, ...]
    views: tuple[tuple[str, str], ...] = ()
    reading: str = "rows"
    turn: int = 1
    triggers: str = ""
    kept: str = ""
    pathway: str = ""
    refreshed: bool = True

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.loaded.values())

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.rounds[0].requests[0])

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)


def change(table: str, rows: pa.Table, sign: int) -> Change:
    """A change with its rows as tuples too."""
    return Change(table, rows, sign, list(zip(*(column.to_pylist() for column in rows.columns), strict=True)))


def toggled(
    parts: Iterable[Mapping[str, pa.Table]], *, present: bool, requests: tuple[Request, ...] = ({},)
) -> tuple[Round, ...]:
    """Each part comes in one round and goes in the next, or the other way round if it is `present`.

    The tables stay as large as they were, and as many deletes as inserts are timed.
    """
    signs = (-1, 1) if present else (1, -1)
    return tuple(
        Round(tuple(change(name, rows, sign) for name, rows in part.items()), requests)
        for part in parts
        for sign in signs
    )
