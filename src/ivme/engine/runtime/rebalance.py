"""Rebalancing: when keys of a view's partitions change sides (source 003, section 5.4.3; source 000, Figure 4).

A threshold base M stands for the size N of the database, such that ⌊M/4⌋ <= N < M. The kernel notes the keys whose
degree left the bounds of their side, 3/2·M^ε for light ones and 1/2·M^ε for heavy ones; *minor rebalancing* moves
them. When N leaves its bounds, M is doubled or halved until it fits, and *major rebalancing* makes the partition
strict again: a key is heavy if its degree is at least M^ε somewhere. A batch is taken in pieces with rebalancing in
between: none changes N by more than a quarter of M, nor a degree by more than M^ε, while views are computed. None of
this changes an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ivme.engine.backend import Backend, Codes
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.threshold import least_degree
from ivme.plan.ir.program import KEYS, NO_KEYS, Partition

if TYPE_CHECKING:
    from ivme._kernel import Balance as NativeBalance

LIGHT_UNTIL, HEAVY_FROM = Fraction(3, 2), Fraction(1, 2)
"""A light key stays light below the first multiple of M^ε, a heavy one heavy from the second on."""

SMALLEST_PIECE = 64
"""A batch is not cut smaller than this: a constant. The kernel cuts record batches alike (`Balance::end_of_piece`)."""

Retune = Callable[[int], Fraction]
"""Given N, the ε to go on with."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The state of rebalancing: M, ε by partition, how often keys moved and what it took."""

    base: int
    epsilons: tuple[Fraction, ...]
    major: int = 0
    minor: int = 0
    keys_moved: int = 0
    major_seconds: float = 0.0
    minor_seconds: float = 0.0


class Rebalancer:
    """Keeps the partitions of one view. `mover` names the trigger that moves the keys of a partition up or down."""

    def __init__(
        self,
        backend: Backend,
        partitions: Sequence[Partition],
        measured: Sequence[str],
        mover: Callable[[str, bool, bool], str],
        retune: Retune | None = None,
    ) -> None:
        self._backend = backend
        self._partitions = tuple(partitions)
        self._mover = mover
        self._retune = retune
        self._saved: Balance | None = None
        self.measured = tuple(measured)
        self.updates = 0
        self.balance = Balance(1, tuple(partition.epsilon for partition in partitions))
        self._thresholds = [1 for _ in self._partitions]
        self._native: NativeBalance | None = None

    @property
    def size(self) -> int:
        """N: how many tuples the view's leaves hold."""
        return sum(self._backend.size(name) for name in self.measured)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return self._partitions

    def threshold(self, number: int) -> int:
        """The least degree that makes a key heavy when the partition is strict."""
        return self._thresholds[number]

    def native(self) -> NativeBalance | None:
        """What tells the kernel whether a row is for it alone; None if each has to come here, as where ε is chosen by
        what the view is used for."""
        if self._native is None and self._retune is None and isinstance(self._backend, NativeBackend):
            self._native = self._backend.balance([each.name for each in self._partitions], self.measured)
            self._set_bounds()
        return self._native

    def start(self) -> None:
        """After the leaves have been filled and before views are built: M = 2N + 1, and a strict partition."""
        self.balance = replace(self.balance, base=2 * self.size + 1)
        self._tune()
        self._make_strict(views=False)

    def is_one_piece(self, columns: Sequence[Codes], rows: int) -> bool:
        """Whether a batch needs no cut; one that does is better netted before."""
        return next(self.pieces(columns, rows), slice(0, rows)).stop >= rows

    def pieces(self, columns: Sequence[Codes], rows: int) -> Iterator[slice]:
        """Cuts a batch: at a quarter of M, and in halves while some value comes more often than M^ε."""
        begin, wish = 0, rows
        while begin < rows:
            often = self._often
            size = min(rows - begin, max(often, min(wish, self.balance.base // 4)))
            while size > often and not _are_rarer(columns, slice(begin, begin + size), often):
                wish = size = max(often, size // 2)
            yield slice(begin, begin + size)
            begin += size

    def settle(self, rows: int = 1) -> None:
        """After so many rows have come or gone: moves whatever is on the wrong side."""
        self.updates += rows
        if self._native is not None and self._native.holds():
            return
        base = fitting_base(self.size, self.balance.base)
        if base != self.balance.base:
            self._major(base)
        else:
            self._minor()

    def begin(self) -> None:
        self._saved = self.balance

    def roll_back(self) -> None:
        """The maps are as they were at `begin`; so is this."""
        if self._saved is not None:
            self.balance = self._saved
            self._set_bounds()

    def resume(self, partitions: Sequence[Partition], measured: Sequence[str]) -> None:
        """Goes on with maps that were installed again and hold what they held."""
        self._partitions, self.measured = tuple(partitions), tuple(measured)
        self.updates, self._native = self.updates + self._taken, None
        self._set_bounds()

    def held_codes(self) -> list[Codes]:
        """The codes of keys that are outside of maps."""
        return []

    def kept(self) -> dict[str, Any]:
        """What a snapshot needs beside the maps to go on from there, in the terms of JSON."""
        return {**asdict(self.balance), "epsilons": [str(epsilon) for epsilon in self.balance.epsilons]}

    def restore(self, kept: dict[str, Any]) -> None:
        """Goes on with maps that hold what they held when this was `kept`."""
        self.balance = Balance(**{**kept, "epsilons": tuple(map(Fraction, kept["epsilons"]))})
        self._set_bounds()

    def stats(self) -> dict[str, Any]:
        """N, M, and for each partition its ε, threshold and heavy keys; what rebalancing has done, and its time."""
        balance = self.balance
        partitions = {
            ", ".join(partition.key): {
                "epsilon": float(balance.epsilons[number]),
                "threshold": self.threshold(number),
                "heavy": self._backend.size(partition.heavy),
            }
            for number, partition in enumerate(self._partitions)
        }
        return {
            "n": self.size,
            "updates": self.updates + self._taken,
            "base": balance.base,
            "partitions": partitions,
            "rebalancings": {"major": balance.major, "minor": balance.minor, "keys_moved": balance.keys_moved},
            "rebalancing_seconds": {"major": balance.major_seconds, "minor": balance.minor_seconds},
        }

    def _tune(self) -> None:
        if self._retune is not None:
            chosen = self._retune(self.size)
            self.balance = replace(self.balance, epsilons=tuple(chosen for _ in self._partitions))
        self._set_bounds()

    def _set_bounds(self) -> None:
        self._thresholds = [least_degree(Fraction(1), self.balance.base, e) for e in self.balance.epsilons]
        for partition, epsilon in zip(self._partitions, self.balance.epsilons, strict=True):
            lower = least_degree(HEAVY_FROM, self.balance.base, epsilon)
            upper = least_degree(LIGHT_UNTIL, self.balance.base, epsilon)
            self._backend.set_bounds(partition.name, lower, upper)
        if self._native is not None:
            self._native.set_limits(self.balance.base // 4, self.balance.base, self._often)

    @property
    def _often(self) -> int:
        """How often a value may come in a piece."""
        return max(SMALLEST_PIECE, min(self._thresholds))

    @property
    def _taken(self) -> int:
        """The rows that came or went without this."""
        return 0 if self._native is None else self._native.rows

    def _major(self, base: int) -> None:
        began = perf_counter()
        self.balance = replace(self.balance, base=base)
        self._tune()
        for partition in self._partitions:
            self._backend.noted(partition.name)  # judged by the old bounds
        self._make_strict(views=True)
        spent = self.balance.major_seconds + perf_counter() - began
        self.balance = replace(self.balance, major=self.balance.major + 1, major_seconds=spent)

    def _make_strict(self, *, views: bool) -> None:
        for number, partition in enumerate(self._partitions):
            rising, falling = self._backend.census(partition.name, self.threshold(number))
            self._move(partition, falling, rising=False, views=views)
            self._move(partition, rising, rising=True, views=views)

    def _minor(self) -> None:
        for partition in self._partitions:
            rising, falling = self._backend.noted(partition.name)
            if len(rising[0]) or len(falling[0]):
                began = perf_counter()
                self._move(partition, falling, rising=False, views=True)
                self._move(partition, rising, rising=True, views=True)
                spent = self.balance.minor_seconds + perf_counter() - began
                moved = self.balance.minor + len(rising[0]) + len(falling[0])
                self.balance = replace(self.balance, minor=moved, minor_seconds=spent)

    def _move(self, partition: Partition, keys: list[Codes], *, rising: bool, views: bool) -> None:
        count = len(keys[0])
        if count:
            ones = np.ones(count, dtype=np.int64)
            inputs = {KEYS: (keys, ones), NO_KEYS: (keys, -ones)}
            self._backend.run(self._mover(partition.name, rising, views), inputs)
            self.balance = replace(self.balance, keys_moved=self.balance.keys_moved + count)


def _are_rarer(columns: Sequence[Codes], piece: slice, often: int) -> bool:
    """Whether no value comes more often in the piece, nor do all values together that share their low bits."""
    mask = (1 << (8 * (piece.stop - piece.start) // often).bit_length()) - 1
    return all(np.bincount(column[piece] & mask).max() <= often for column in columns)


def fitting_base(size: int, base: int) -> int:
    """The threshold base for a size: doubled while N has reached it, halved while N is below a quarter (Figure 5.25).

    >>> fitting_base(1, 1), fitting_base(4, 4), fitting_base(1, 8), fitting_base(3, 4)
    (2, 8, 3, 4)
    """
    while size >= base:
        base *= 2
    while size < base // 4:
        base = max(1, base // 2 - 1)
    return base
