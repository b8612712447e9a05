"""What takes part in a transaction beside the kernel: closures, ring views and IES views.

Each takes the changes of its relations as they are made, and then commits or rolls back with all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import RowBatch


class Participant(Protocol):
    """A part of a transaction that takes the changes of relations, and then commits or rolls back with the others."""

    def apply(self, relation: str, rows: RowBatch) -> None:
        """Takes the changed rows of a relation; `commit` or `roll_back` follows."""

    def prepare(self) -> None:
        """Computes what `commit` needs, as that cannot fail."""

    def commit(self) -> None:
        """Makes what was applied last; may be called again."""

    def roll_back(self) -> None:
        """Undoes what was applied; may be called again."""


class MaintainedView(Participant, Protocol):
    """A view that is not made of the kernel's maps. `relations` are the tables and views that it reads."""

    @property
    def name(self) -> str: ...
    @property
    def relations(self) -> tuple[str, ...]: ...
    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """Fills it from all rows of its relations."""

    def held_codes(self) -> list[Codes]:
        """The codes that it has outside of maps."""

    def memory_bytes(self) -> int:
        """What it takes of memory, Python objects aside."""
