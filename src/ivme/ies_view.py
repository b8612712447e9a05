"""The answer of a user's own incremental evaluation system as a view of the database (source 004, section 6)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ivme.closure.executor import Executor
from ivme.closure.ies import IES, Row
from ivme.engine.runtime.transaction import Act, delivery, taken


class IesView:
    """The rows of an IES's answer, kept fresh by its programs in the same batches as all other views.

    It takes part in batches as ring views do: changes are staged, and kept or undone with the batch. Other views cannot
    be built on it, and it cannot be verified: nobody but its programs says what it should be.
    """

    def __init__(self, ies: IES, tables: Mapping[str, str], executor: Executor) -> None:
        self.name = ies.name
        self.relations = tuple(tables)
        self._tables = dict(tables)
        self._executor = executor
        self._open = False
        self._queues: list[deque[dict[Row, int]]] = []
        self._rows: Counter[Row] = Counter()
        self._prepared: tuple[Counter[Row], list[Act]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._executor.ies.answer.column_names

    def __iter__(self) -> Iterator[Row]:
        return iter(self._executor.answer())

    def items(self) -> Iterator[tuple[Row, int]]:
        """The distinct rows with their multiplicities."""
        return iter(Counter(self._executor.answer()).items())

    def __contains__(self, row: object) -> bool:
        return row in self._executor.answer()

    def count(self) -> int:
        """How many rows there are."""
        return len(self._executor.answer())

    def table(self, name: str) -> list[Row]:
        """The rows of an auxiliary table, sorted."""
        return self._executor.rows(name.lower())

    def changes(self) -> IesChanges:
        """A feed of the answer's own changes: one for each batch from now on that changes it."""
        if not self._queues:
            self._rows = Counter(self._executor.answer())
        queue: deque[dict[Row, int]] = deque()
        self._queues.append(queue)
        return IesChanges(queue, lambda: self._queues.remove(queue))

    # Batches

    def build(self, database: Mapping[str, Mapping[Row, int]]) -> None:
        self._executor.start()
        for relation, rows in database.items():
            self.stage(relation, rows)
        self.keep()

    def stage(self, relation: str, changes: Mapping[Row, int]) -> None:
        if not self._open:
            self._open = True
            self._executor.begin()
        self._executor.change(self._tables[relation], changes)

    def prepare(self) -> None:
        if not self._open or not self._queues:
            return
        before, after = self._rows, Counter(self._executor.answer())
        change = {row: after[row] - before[row] for row in {**before, **after} if after[row] != before[row]}
        self._prepared = after, [delivery(queue, dict(change)) for queue in self._queues if change]

    def keep(self) -> None:
        if self._open:
            self._executor.commit()
            if self._prepared is not None:
                rows, deliveries = self._prepared
                for deliver in deliveries:
                    deliver()
                self._rows, self._prepared = rows, None
            self._open = False

    def undo(self) -> None:
        if self._open:
            self._executor.roll_back()
            self._prepared = None
            self._open = False


class IesChanges:
    """The changes of an IES's answer, batch by batch. Iterating yields what has come since the last time."""

    def __init__(self, queue: deque[dict[Row, int]], close: Callable[[], Any]) -> None:
        self._queue, self._close = queue, close

    def __iter__(self) -> Iterator[dict[Row, int]]:
        return taken(self._queue)

    def close(self) -> None:
        """Stops following the answer."""
        self._close()
