"""Where the log ends: one state for `Log`, which writes records, and for the kernel, which writes those of a few rows.

The kernel has it as `_kernel.LogEnd`; without the kernel it is a plain object, and Python writes all records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivme.store import system

if TYPE_CHECKING:
    from ivme._kernel import LogEnd

_write = system.write


@dataclass(slots=True)
class PlainLogEnd:
    """The fields of `_kernel.LogEnd`."""

    descriptor: int = -1
    first: int = 0
    place: int = 0
    written: int = 0
    durable: int = 0
    older: int = 0
    limit: int = 0
    usable: bool = False
    unfinished: bool = False
    awake: bool = False
    waits: bool = True
    told: tuple[int, int, int] = (0, 0, 0)
    taken: tuple[int, int, int] = (0, 0, 0)
    wake: Callable[[], None] | None = None


def log_state(identity: str, changed: set[str]) -> LogEnd | PlainLogEnd:
    """A state of a directory's log; the kernel adds the tables that its records change to a set."""
    try:
        from ivme._kernel import LogEnd
    except ImportError:
        return PlainLogEnd()
    return LogEnd(identity, vars(system), _write, changed)
