"""Changes of one table as batches of their own, for whatever has batches: a database here, or one behind a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Changing(Protocol):
    """What a batch can do to a table."""

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
