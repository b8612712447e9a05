"""Batches of which the next is encoded on another thread while one is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ivme.definitions.single_changes import Changes, InBatch, changes_of
from ivme.engine.runtime.batch_ahead import BatchAhead
from ivme.engine.runtime.runtime import Runtime

_OVER = object()


def apply_ahead(batches: Iterable[Changes], runtime: Runtime, check_open: Callable[[], None]) -> int:
    """Applies batches one after the other; how many there were.

    The next batch is taken before one is applied, and everything of it is copied before another is asked for. A batch
    with rows that are not copied, such as those of a generator, is applied before another is asked for.
    """
    check_open()
    coming, waiting, applied = iter(batches), None, 0
    while True:
        following, failure = _begun(coming, runtime, applied if waiting is None else applied + 1)
        if waiting is not None:
            with InBatch(applied):
                check_open()
                waiting.make_all()
            applied += 1
        if failure is not None:
            raise failure
        if following is None:
            return applied
        waiting = following if following.take_all() else None
        if waiting is None:
            with InBatch(applied):
                check_open()
                following.make_all()
            applied += 1


def _begun(coming: Iterator[Changes], runtime: Runtime, number: int) -> tuple[BatchAhead | None, Exception | None]:
    """The next batch, if there is one, or why there is none."""
    try:
        given = next(coming, _OVER)
        if given is _OVER:
            return None, None
    except Exception as error:
        return None, error
    try:
        with InBatch(number):
            return BatchAhead(runtime, changes_of(given)), None  # type: ignore[arg-type]
    except Exception as error:
        return None, error
