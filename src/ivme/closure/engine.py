"""What keeps the closure of one bag of edges: the compiled kernel's `Closure`, or its twin in plain Python.

Both take columns of codes and know nothing about values. A transaction is at most one `change`, then `commit` or
`roll_back`; the caller holds the database's lock.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Protocol

from ivme.engine.codes.dictionary import Codes

GRAPHS = ("digraph", "acyclic", "undirected")
"""The kinds of graphs, the most general first."""


class PairCursor(Protocol):
    """An enumeration of pairs under way."""

    def next_block(self, max_rows: int = ...) -> tuple[Codes, Codes]:
        """The next pairs; none at the end. It raises if the closure changed since it was opened."""


class ClosureEngine(Protocol):
    """The closure of a bag of edges: pairs of nodes with a path of at least one edge."""

    def change(self, start: Codes, end: Codes, weights: Codes, /) -> None:
        """Adds to the multiplicities of edges; only a first insert and a last delete of an edge matter.

        Where no cycle may be, an edge that would close one raises the engine's `Cycle` with the codes of its nodes.
        """

    def commit(self) -> None: ...
    def roll_back(self) -> None: ...
    def follow(self, on: bool, /) -> None:
        """From now on, or no longer, `changed` is known."""

    def changed(self) -> tuple[Codes, Codes, Codes]:
        """The pairs that came (weight 1) and went (-1) in the open transaction."""

    def codes(self) -> Codes:
        """The codes of all nodes."""

    def reaches(self, start: int, end: int, /) -> bool: ...
    def reaches_many(self, start: Codes, end: Codes, /) -> Codes:
        """The numbers of the requests that are true."""

    def targets(self, start: int, most: int, /) -> list[int] | None:
        """The nodes that a node leads to; None if there are more than `most`."""

    def targets_many(self, start: Codes, /) -> tuple[Codes, Codes]:
        """For all requests, the number of the request and a node that it leads to."""

    def path(self, start: int, end: int, /) -> list[int]:
        """The nodes of a shortest path, both ends included; empty if there is none."""

    def open(self) -> PairCursor: ...
    def open_from(self, start: int, /) -> PairCursor: ...
    def check(self) -> None:
        """Raises if the structure contradicts itself; for tests."""

    def memory_bytes(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def components(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    @property
    def operations(self) -> int: ...


def native_engine(graph: str) -> ClosureEngine:
    """The closure in the compiled kernel."""
    from ivme._kernel import Closure

    return Closure(graph, secrets.randbits(64))


def cycle_of(error: Exception) -> list[int] | None:
    """The codes of the cycle that an engine refuses; None if the error says something else."""
    from ivme.closure.pure import PureCycle

    cycles: tuple[type[Exception], ...] = (PureCycle,)
    with suppress(ImportError):
        from ivme._kernel import Cycle

        cycles = (PureCycle, Cycle)
    return list(error.args[0]) if isinstance(error, cycles) else None


def pure_engine(graph: str) -> ClosureEngine:
    """The closure in plain Python."""
    from ivme.closure.pure import PureClosure

    return PureClosure(graph)
