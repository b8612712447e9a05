"""Changes of the catalog that are in memory and in the log, or in neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ivme.store.store import Store


def keep(store: Store | None, record: Callable[[Store], None], undo: Callable[[], None]) -> None:
    """Logs a change of the catalog that has been made; if that fails, undoes it."""
    if store is None:
        return
    mark = store.mark()
    try:
        record(store)
    except BaseException:
        undo()
        store.take_back(mark)
        raise


@contextmanager
def dropped(store: Store | None, kind: str, name: str) -> Iterator[None]:
    """Logs that a table or view is dropped, and takes that back if the dropping fails."""
    if store is None:
        yield
        return
    mark = store.mark()
    try:
        store.drop(kind, name)
        yield
    except BaseException:
        store.take_back(mark)
        raise
    if kind == "view":
        store.forget_view(name)
