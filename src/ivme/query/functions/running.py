"""Which function of a user this thread is in: it computes a value, and must leave the databases alone meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ivme.errors import DataError


class _Running(threading.local):
    name = ""


RUNNING = _Running()
"""Its `name` is that of the function that this thread is in, or empty."""


def called(name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The value of a user's function."""
    before, RUNNING.name = RUNNING.name, name
    try:
        return function(*arguments)
    finally:
        RUNNING.name = before


def refuse_within_functions() -> None:
    """Refuses to use a database from within a user's function, since it may be in the middle of a change."""
    if RUNNING.name:
        raise DataError(f"the function {RUNNING.name} may not use a database while it is called; it only computes")
