"""What a pipeline reports while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch. `seconds` is all of it, `engine_seconds` the database's durable commit within; `lag` is
    what waits at its source. `changes_out` are rows that sinks of changes got, `rewritten` the number of sinks that got
    all rows of their view."""

    number: int
    source: str
    rows_in: int
    changes_out: int
    seconds: float
    engine_seconds: float
    lag: int
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """Changes that went into quarantine: so many `rows`, or a whole file if that is 0."""

    source: str
    name: str
    reason: str
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """How far the opening of a pipeline is: the loads of tables, and the builds of views. `seconds` are those of a part
    that is done; one that is under way has none, and says how much of its jobs is done."""

    what: str
    name: str
    done: int
    total: int
    seconds: float | None = None
    share: float = 0.0


Event = Applied | Refused | Opening
Report = Callable[[Event], None]
