"""The steps of a case: what is done to a database, one thing after the other."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.values import Row


@dataclass(frozen=True, slots=True)
class Op:
    """A change of one table: `method` is insert, delete, discard (a delete that is not strict) or apply."""

    method: str
    table: str
    rows: tuple[Row, ...]
    weights: tuple[int, ...]
    form: str = "list"


@dataclass(frozen=True, slots=True)
class Change:
    """One batch of changes; a single one that is not `batched` calls the database's own method."""

    ops: tuple[Op, ...]
    batched: bool = True


@dataclass(frozen=True, slots=True)
class CreateView:
    name: str


@dataclass(frozen=True, slots=True)
class DropView:
    name: str


@dataclass(frozen=True, slots=True)
class Follow:
    name: str


@dataclass(frozen=True, slots=True)
class Unfollow:
    name: str


@dataclass(frozen=True, slots=True)
class Verify:
    name: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """Closes what is kept in directories and opens it again, with a checkpoint before it if asked for."""

    checkpoint: bool


Step = Change | CreateView | DropView | Follow | Unfollow | Verify | Reopen
