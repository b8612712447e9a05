"""Rebalancing without stalls: each update moves a bounded number of rows (option `rebalance="deamortised"`).

In the plans of source 000 every combination of parts has its rules, so that a key may be on both sides of its
partition for a while and answers are exact all the same. When a key has to change sides, its new rows go to the other
side at once, and its old ones follow, a few with each update. When M changes, only the bounds do, and a sweep over
all entries, a few with each update, finds the keys that are on the wrong side now.

A few are enough. Between two changes of sides of one key there are at least M^ε/2 updates of it, and it has at most
3/2·M^ε rows: 3 rows an update. Between two changes of M there are at least M/4 updates, and at most M rows to move
and 2M entries to sweep, in up to two leaves a relation: 4 rows and 16 entries an update. So an update takes at most 1
+ ROWS_AN_UPDATE times what its propagation takes, two of these for each row that moves, and SWEPT_AN_UPDATE steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ivme.engine.backend import Backend, Codes
from ivme.engine.runtime.rebalance import Rebalancer, Retune, fitting_base
from ivme.plan.ir.program import KEYS, NO_KEYS, Partition

ROWS_AN_UPDATE = 8
SWEPT_AN_UPDATE = 32

Key = tuple[int, ...]


class GradualRebalancer(Rebalancer):
    """`flipper` and `carrier` name the triggers that flip keys and move rows; `finder` the reader of a key's rows."""

    def __init__(
        self,
        backend: Backend,
        partitions: Sequence[Partition],
        measured: Sequence[str],
        mover: Callable[[str, bool, bool], str],
        retune: Retune | None,
        gradual: Callable[[str, bool], tuple[str, str, str]],
    ) -> None:
        super().__init__(backend, partitions, measured, mover, retune)
        self._gradual = gradual
        self._waiting: dict[tuple[int, Key], bool] = {}
        self._positions = [-1] * len(self._partitions)
        self._kept: tuple[dict[tuple[int, Key], bool], list[int]] = ({}, [])

    def native(self) -> None:
        """Each row moves some others."""

    @property
    def waiting(self) -> int:
        """How many keys have rows on both sides."""
        return len(self._waiting)

    def is_moving(self, number: int, key: Key) -> bool:
        """Whether a key of a partition may be on both sides."""
        return (number, key) in self._waiting

    def settle(self, rows: int = 1) -> None:
        self.updates += rows
        base = fitting_base(self.size, self.balance.base)
        if base != self.balance.base:
            self.balance = replace(self.balance, base=base, major=self.balance.major + 1)
            self._tune()
            self._positions = [0] * len(self._partitions)
        began = perf_counter()
        for number, partition in enumerate(self._partitions):
            if self._positions[number] >= 0:
                swept = SWEPT_AN_UPDATE * rows
                self._positions[number] = self._backend.sweep(partition.name, self._positions[number], swept)
            self._turn(number, partition)
        if self._waiting:
            self._carry(ROWS_AN_UPDATE * rows)
            self.balance = replace(self.balance, minor_seconds=self.balance.minor_seconds + perf_counter() - began)

    def begin(self) -> None:
        super().begin()
        self._kept = (dict(self._waiting), list(self._positions))

    def roll_back(self) -> None:
        super().roll_back()
        self._waiting, self._positions = dict(self._kept[0]), list(self._kept[1])

    def held_codes(self) -> list[Codes]:
        return [np.array(key, dtype=np.int64) for _, key in self._waiting]

    def kept(self) -> dict[str, Any]:
        waiting = [[number, list(key), rising] for (number, key), rising in self._waiting.items()]
        return {**super().kept(), "waiting": waiting, "swept": [position < 0 for position in self._positions]}

    def restore(self, kept: dict[str, Any]) -> None:
        """A sweep under way starts again: entries have other places than they had."""
        super().restore({name: value for name, value in kept.items() if name not in ("waiting", "swept")})
        self._waiting = {(number, tuple(key)): rising for number, key, rising in kept["waiting"]}
        self._positions = [-1 if swept else 0 for swept in kept["swept"]]

    def _turn(self, number: int, partition: Partition) -> None:
        """From here on the new rows of the noted keys go to the other side."""
        for keys, rising in zip(self._backend.noted(partition.name), (True, False), strict=True):
            count = len(keys[0])
            if count:
                weights = np.full(count, 1 if rising else -1, dtype=np.int64)
                flipper = self._gradual(partition.name, rising)[0]
                self._backend.run(flipper, {KEYS if rising else NO_KEYS: (keys, weights)})
                for key in zip(*(column.tolist() for column in keys), strict=True):
                    self._waiting.pop((number, key), None)
                    self._waiting[number, key] = rising
                turned, moved = self.balance.minor + count, self.balance.keys_moved + count
                self.balance = replace(self.balance, minor=turned, keys_moved=moved)

    def _carry(self, budget: int) -> None:
        """Moves rows of the keys that have waited longest."""
        while budget > 0 and self._waiting:
            (number, key), rising = next(iter(self._waiting.items()))
            _, finder, carrier = self._gradual(self._partitions[number].name, rising)
            columns, counts, _, _ = self._backend.open(finder, key).next_block(budget)
            if len(counts):
                self._backend.run(carrier, _both(columns, len(counts)))
            if len(counts) < budget:
                del self._waiting[number, key]
            budget -= max(1, len(counts))


def _both(columns: list[Codes], count: int) -> dict[str, tuple[list[Codes], Codes]]:
    ones = np.ones(count, dtype=np.int64)
    return {KEYS: (columns, ones), NO_KEYS: (columns, -ones)}
