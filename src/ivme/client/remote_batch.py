"""A batch of changes for a server: collected here, and sent as one request."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ivme.client.client_values import listed_keys, listed_rows
from ivme.engine.runtime.open_batch import OpenBatch
from ivme.errors import DataError, shown
from ivme.serve.tagged_values import tagged

if TYPE_CHECKING:
    from ivme.client.remote_connection import RemoteConnection


class RemoteBatch(OpenBatch):
    """Changes to several tables that take effect together when the `with` block ends; see `Batch`."""

    def __init__(
        self, connection: RemoteConnection | None, source: str | None = None, position: int | None = None
    ) -> None:
        super().__init__()
        self._connection = connection
        self._progress = {} if source is None and position is None else {"source": source, "position": position}
        self._steps: list[dict[str, Any]] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._connection is not None:
                self.send(self._connection)
        finally:
            self._over = True

    def send(self, connection: RemoteConnection) -> None:
        """Sends the changes, unless there is nothing to send."""
        self._check_open()
        if self._steps or self._progress:
            connection.request("POST", "/batch", {"changes": self._steps, **self._progress})

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows."""
        self._add(table, "insert", rows=listed_rows(rows), round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows."""
        self._add(table, "delete", rows=listed_rows(rows), strict=strict)

    def delete_keys(self, table: str, keys: Any, *, strict: bool = True) -> None:
        """Deletes the rows with the given primary keys."""
        self._add(table, "delete_keys", keys=listed_keys(keys), strict=strict)

    def apply(self, table: str, rows: Any, weights: Any, *, round_floats: bool = False) -> None:
        """Inserts as many copies of each row as its weight; a negative weight deletes copies."""
        listed = listed_rows(rows)
        given = [weights] * len(listed) if isinstance(weights, int) else _integers(weights)
        self._add(table, "apply", rows=listed, weights=given, round_floats=round_floats)

    def upsert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows, each in place of the row with the same primary key."""
        self._add(table, "upsert", rows=listed_rows(rows), round_floats=round_floats)

    def replace(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Replaces all rows of the table by these; only the difference changes."""
        self._add(table, "replace", rows=listed_rows(rows), round_floats=round_floats)

    def truncate(self, table: str) -> None:
        """Deletes all rows."""
        self._add(table, "truncate")

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> None:
        """Deletes the rows that meet a condition: SQL over the table's columns, with `:name` for parameters."""
        self._add(table, "delete_where", where=where, parameters=_tagged(parameters))

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
        given = {"set": _tagged(set), "parameters": _tagged(parameters), "round_floats": round_floats}
        self._add(table, "update", **given, **({} if where is None else {"where": where}))

    def discard(self) -> None:
        """Discards the changes so far."""
        self._check_open()
        self._steps, self._progress = [], {}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the batch changes."""
        return tuple(dict.fromkeys(step["table"] for step in self._steps))

    def _add(self, table: str, change: str, **given: Any) -> None:
        self._check_open()
        if not isinstance(table, str):
            raise DataError(f"a table is named by a string; it is {shown(table)}")
        self._steps.append({"table": table, "change": change, **given})


def _tagged(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tagged(value) for name, value in values.items()}


def _integers(weights: Any) -> list[Any]:
    try:
        return list(weights.tolist() if hasattr(weights, "tolist") else weights)
    except TypeError:
        raise DataError(f"weights are a list of integers, not {type(weights).__name__}") from None
