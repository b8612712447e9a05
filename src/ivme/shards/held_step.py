"""What a shard knows of a step that is applied and not decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ivme.errors import IvmeError
from ivme.shards.parts import CHANGE, EngineKey, PackedPart, Part

Work = list[tuple[EngineKey, list[tuple[str, pa.Table]]]]

Round = tuple[int, Sequence[PackedPart]]
"""The number of a round, and what other shards have sent for it."""


@dataclass(slots=True)
class HeldStep:
    """What a shard has found out about a step that is applied and not decided.

    `changes` are those of followed views whose rows are whole here; `partial` those that have to be merged with other
    shards'; `told` those of views that feed others, since the last round; `entries` the sizes of its engines; `large`
    the views whose sums may not fit.
    """

    changes: list[PackedPart] = field(default_factory=list)
    partial: list[tuple[str, pa.Table]] = field(default_factory=list)
    told: list[tuple[str, pa.Table]] = field(default_factory=list)
    entries: dict[str, int] = field(default_factory=dict)
    large: list[str] = field(default_factory=list)


class StepError(Exception):
    """A step cannot be applied: the reason, and whether a table or a view has it."""

    def __init__(self, reason: IvmeError, *, in_table: bool) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.in_table = in_table


def by_engine(parts: Iterable[Part]) -> Work:
    """The rows for each engine, those for one table together; tables first, as they find what is wrong with rows."""
    found: dict[EngineKey, dict[str, list[pa.Table]]] = {}
    for part in parts:
        if part.table != CHANGE:
            found.setdefault(part.engine, {}).setdefault(part.table, []).append(part.rows)
    ordered = sorted(found, key=lambda key: not key.is_table)
    return [(key, [(table, pa.concat_tables(rows)) for table, rows in found[key].items()]) for key in ordered]
