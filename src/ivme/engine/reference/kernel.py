"""What every kernel offers: the protocol behind which `pure` and `native` stand.

A kernel runs a `Program` and knows nothing about queries. It owns the program's maps and changes them only through
triggers and the bulk build; a change that fails leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from ivme.algebra.ring import Payload
from ivme.engine.expression.row_expression import Row
from ivme.plan.ir.program import Program

Changes = Mapping[Row, int]
"""Rows with their change of multiplicity, consolidated."""


class StoredMap(Protocol):
    """A map from tuples to payloads, as readers see it."""

    def get(self, key: Row) -> Payload | None:
        """The payload of an entry, or None; O(1)."""

    def items(self) -> Iterable[tuple[Row, Payload]]:
        """All entries, with constant delay."""

    def __len__(self) -> int: ...


class Kernel(Protocol):
    """A running program."""

    program: Program

    def apply(self, relation: str, changes: Changes) -> None:
        """Runs a relation's trigger; all or nothing."""

    def build(self, database: Mapping[str, Changes]) -> None:
        """Fills the empty maps from whole tables."""

    def items(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, Payload, Row]]:
        """The output tuples of an access request, each with its payload and its extremes, with constant delay."""

    def map(self, name: str) -> StoredMap:
        """One of the program's maps."""
