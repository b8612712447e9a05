"""How far each source of changes has been applied.

A source is whatever sends batches and may send one again after a failure: a stream, a file that is read on, a queue.
A batch that carries its position is applied once: the position is part of its transaction, and a batch at or below
the stored one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivme.errors import DataError, shown
from ivme.query.names import lone_surrogate

_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Progress:
    """The statement that a source has been applied up to a position."""

    source: str
    position: int


def read_progress(source: object, position: object) -> Progress | None:
    """The progress that a batch states; None if it states none.

    >>> read_progress("orders", 17)
    Progress(source='orders', position=17)
    """
    if source is None and position is None:
        return None
    if source is None or position is None:
        missing = "source" if source is None else "position"
        raise DataError(f"a batch that says how far a source has been applied needs both; its {missing} is missing")
    if not isinstance(source, str) or not source:
        raise DataError(f"a source is named by a string; it is {shown(source)}")
    if lone_surrogate(source) is not None:
        raise DataError(f"the name of source {shown(source)} has a lone surrogate, which is not a character")
    if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position <= _MOST:
        raise DataError(f"the position of source {source} is an integer from 0 to {_MOST}; it is {shown(position)}")
    return Progress(source, position)


class Positions:
    """The position of each source; they only grow. Callers hold the runtime's lock."""

    def __init__(self) -> None:
        self._reached: dict[str, int] = {}

    def of(self, source: str) -> int | None:
        return self._reached.get(source)

    def all(self) -> dict[str, int]:
        """A copy: what each source has reached."""
        return dict(self._reached)

    def check(self, progress: Progress | None) -> None:
        """Refuses what has been applied already."""
        if progress is None:
            return
        reached = self._reached.get(progress.source)
        if reached is not None and progress.position <= reached:
            raise DataError(
                f"source {progress.source} has been applied up to position {reached}, so the batch at position "
                f"{progress.position} has been applied before; nothing was changed"
            )

    def advance(self, progress: Progress | None) -> None:
        if progress is not None:
            self._reached[progress.source] = progress.position
