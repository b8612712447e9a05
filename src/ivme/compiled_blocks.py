"""Blocks of a view that need no plan: they pass rows on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import Explanation
    from ivme.query.model import Table
    from ivme.query.pairing import Pairing
    from ivme.query.typed import TypedQuery
    from ivme.query.union import Union

_NO_PLAN = "-"
"""What is stored for a block that needs no plan."""


class _WithoutPlan:
    """What is stored of such a block."""

    __slots__ = ()

    @property
    def has_text(self) -> bool:
        return True

    def stored(self) -> str:
        return _NO_PLAN


@dataclass(frozen=True, slots=True)
class CompiledUnion(_WithoutPlan):
    """A block that passes rows on; `typed` is the query that reads all of its columns, as if it were a table."""

    union: Union
    table: Table
    typed: TypedQuery
    explanation: Explanation
    is_new: bool = False

    @property
    def name(self) -> str:
        return self.union.name

    @property
    def read(self) -> tuple[Table, ...]:
        return self.union.tables


@dataclass(frozen=True, slots=True)
class CompiledPairing(_WithoutPlan):
    """A block of the pairs of two relations that meet in an inequality."""

    pairing: Pairing
    table: Table
    typed: TypedQuery
    explanation: Explanation
    is_new: bool = False

    @property
    def name(self) -> str:
        return self.pairing.name

    @property
    def read(self) -> tuple[Table, ...]:
        return self.pairing.tables
