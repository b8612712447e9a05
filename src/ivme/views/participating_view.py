"""Views that maintain themselves: they take part in batches beside the kernel, and tell their own changes."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Never

from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.transaction import Act, delivery
from ivme.errors import UnknownNameError, UnnamedValueError
from ivme.views.base_view import BaseView, Row

if TYPE_CHECKING:
    from ivme.engine.runtime.transaction import StateLock


class ParticipatingView(BaseView):
    """A view that is a participant of transactions. A directory does not keep it, and no other view is built on it."""

    is_stored: ClassVar[bool] = False

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._queues: list[deque[Any]] = []
        self._deliveries: list[Act] = []

    @property
    def lock(self) -> StateLock:
        return self._reader.catalog.lock

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        return (row for row, times in self.items(**parameters) for _ in range(times if isinstance(times, int) else 1))

    def items(self, **parameters: Any) -> Iterator[tuple[Row, Any]]:
        """The distinct rows of an access request, all of one state of the database."""
        self.check_alive()
        wrong = set(parameters).symmetric_difference(self.parameters)
        if wrong:
            listed = ", ".join(self.parameters) or "none"
            raise UnknownNameError(f"view {self.name} takes these parameters: {listed}; check {', '.join(wrong)}")
        with self.lock:
            return iter(self._items(parameters))

    @abstractmethod
    def _items(self, parameters: Mapping[str, Any]) -> list[tuple[Row, Any]]:
        """The same under the lock, for parameters that have been checked."""

    # Changes

    def follow(self, queue: deque[Any]) -> None:
        with self.lock:
            if not self._queues:
                self._follow()
            self._queues = [*self._queues, queue]

    def unfollow(self, queue: deque[Any]) -> None:
        with self.lock:
            self._queues = [other for other in self._queues if other is not queue]

    @abstractmethod
    def _follow(self) -> None:
        """From now on `_change` is called."""

    @abstractmethod
    def _change(self) -> dict[Row, Any]:
        """The change of the view's rows in the open transaction."""

    # Batches

    @abstractmethod
    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """Fills it from all rows of its relations."""

    @abstractmethod
    def apply(self, relation: str, rows: RowBatch) -> None:
        """Takes the changed rows of a relation; `commit` or `roll_back` follows."""

    def prepare(self) -> None:
        """Computes the change for its followers, as `commit` cannot fail."""
        change = self._change() if self._queues else {}
        self._deliveries = [delivery(queue, dict(change)) for queue in self._queues if change]

    def commit(self) -> None:
        """Makes what was applied last, and delivers the change; may be called again."""
        self._commit()
        for deliver in self._deliveries:
            deliver()
        self._deliveries = []

    def roll_back(self) -> None:
        """Undoes what was applied; may be called again."""
        self._roll_back()
        self._deliveries = []

    @abstractmethod
    def _commit(self) -> None: ...
    @abstractmethod
    def _roll_back(self) -> None: ...
    def held_codes(self) -> list[Codes]:
        """It has values, no codes."""
        return []

    def memory_bytes(self) -> int:
        """Its Python objects are not counted."""
        return 0


def weighted(rows: RowBatch) -> dict[Row, int]:
    """Rows as Python values with their net weights."""
    total: dict[Row, int] = {}
    for row, weight in zip(rows.rows(), rows.weights.tolist(), strict=True):
        total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}
