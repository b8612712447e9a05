"""Codes that are taken back whenever they can be, whether that pays or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime import runtime
from ivme.engine.runtime.reclaim import reclaim


def sweep(db: Database) -> None:
    """Takes back all codes that nothing holds, now."""
    with db._runtime.lock:
        reclaim(db._runtime.catalog, now=True)


def values(db: Database) -> int:
    """How many values have codes in dictionaries."""
    return sum(map(len, db._runtime.domains.dictionaries().values()))


@contextmanager
def sweeping_always() -> Iterator[None]:
    """From here on codes are taken back after each change."""

    def always(*_: Any) -> bool:
        return True

    with (
        patch.object(NativeBackend, "is_sweep_due", always),
        patch.object(PureBackend, "is_sweep_due", always),
        patch.object(runtime, "ROWS_BETWEEN", 1),
    ):
        yield
