"""Changes of one table as batches of their own, for whatever has batches: a database here, or one behind a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol

from ivme.errors import DataError

Change = tuple[str, Any, Any]
"""A table, rows, and their weight."""

Changes = Mapping[str, Any] | Iterable[tuple[str, Any] | Change]
"""A batch: rows to insert by table, or changes."""


class Changing(Protocol):
    """What a batch can do to a table."""

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None: ...
    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None: ...

    def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None: ...
    def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None: ...
    def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None: ...
    def update(
        self,
        table: str,
        /,
        *,
        set: Mapping[str, Any],
        where: str | None = None,
        round_floats: bool = False,
        **parameters: Any,
    ) -> None: ...
    def delete_where(self, table: str, where: str, /, **parameters: Any) -> None: ...
    def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None: ...
    def truncate(self, table: str) -> None: ...


class SingleChanges(ABC):
    """Each method is a batch with one change."""

    @abstractmethod
    def batch(self, source: str | None = None, position: int | None = None) -> AbstractContextManager[Changing]:
        """Several changes, all or nothing."""

    def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None:
        """Deletes the rows with the given primary keys; a missing key is an error, unless strict=False."""
        with self.batch() as batch:
            batch.delete_keys(table, keys, strict=strict)

    def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None:
        """Inserts as many copies of each row as its weight; a negative weight deletes copies."""
        with self.batch() as batch:
            batch.apply(table, rows, weights, round_floats=round_floats)

    def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows, each in place of the row with the same primary key."""
        with self.batch() as batch:
            batch.upsert(table, rows, round_floats=round_floats)

    def update(
        self,
        table: str,
        /,
        *,
        set: Mapping[str, Any],
        where: str | None = None,
        round_floats: bool = False,
        **parameters: Any,
    ) -> None:
        """Sets columns to new values in the rows that meet a condition, or in all rows; see `Batch.update`."""
        with self.batch() as batch:
            batch.update(table, set=set, where=where, round_floats=round_floats, **parameters)

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> None:
        """Deletes the rows that meet a condition: SQL over the table's columns, with `:name` for parameters."""
        with self.batch() as batch:
            batch.delete_where(table, where, **parameters)

    def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Replaces all rows of the table by these; views and followers get the difference."""
        with self.batch() as batch:
            batch.replace(table, rows, round_floats=round_floats)

    def truncate(self, table: str) -> None:
        """Deletes all rows of a table."""
        with self.batch() as batch:
            batch.truncate(table)

    def apply_batches(self, batches: Iterable[Changes]) -> int:
        """Applies batches one after the other, each all or nothing, and returns how many there were.

        A batch is a dict from tables to the rows to insert, or a list of changes: the table, the rows and, unless they
        are inserted, their weight, which is -1 for rows to delete (or a list with a weight for each row). On several
        threads, one batch is taken from `batches` ahead: while a batch is applied, the Arrow data of the next are
        copied and encoded on another thread. So `batches` may use the memory of a batch again when it makes the next.

        If a batch fails, those before it have been applied, and those behind it have not.
        """
        return self._apply_each(batches)

    def _apply_each(self, batches: Iterable[Changes]) -> int:
        applied = 0
        for each in batches:
            with InBatch(applied):
                self._apply_changes(changes_of(each))
            applied += 1
        return applied

    def _apply_changes(self, changes: Sequence[Change]) -> None:
        with self.batch() as batch:
            for table, rows, weight in changes:
                if type(weight) is not int or abs(weight) != 1:
                    batch.apply(table, rows, weight)
                else:
                    (batch.insert if weight > 0 else batch.delete)(table, rows)


class InBatch:
    """What fails in a batch says which one it was. A generator that does the same takes four times as long."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            error.add_note(f"in batch {self._number} (from 0) of apply_batches; those before it have been applied")


def changes_of(batch: Changes) -> list[Change]:
    """The changes of a batch, each with its weight."""
    if isinstance(batch, Mapping):
        return [(table, rows, 1) for table, rows in batch.items()]
    changes: list[Change] = []
    given: list[Any] = list(batch) if isinstance(batch, Iterable) else [batch]
    for number, change in enumerate(given):
        if not isinstance(change, tuple) or len(change) not in (2, 3) or not isinstance(change[0], str):
            raise DataError(
                f"change {number} of a batch is not (table, rows) or (table, rows, weight), as in "
                f'("orders", rows) or ("orders", rows, -1); a batch of inserts may also be a dict: {{"orders": rows}}'
            )
        changes.append((change[0], change[1], change[2] if len(change) == 3 else 1))
    return changes
