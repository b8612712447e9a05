"""Small programs in the kernel's own form, for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ivme._kernel import Kernel


def column(*values: int) -> Any:
    return np.array(values, np.int64)


class OneMap:
    """A kernel with a single map that takes the rows it is given, codes first, then what is summed."""

    def __init__(
        self,
        arity: int,
        slots: Sequence[str] = (),
        lifts: Sequence[str] = (),
        check: str = "",
        key: Sequence[int] = (),
    ) -> None:
        self.kernel = Kernel(12345)
        self.map = self.kernel.add_map(arity, slots, key)
        lifted = [(lift, arity + i) for i, lift in enumerate(lifts)]
        load: Any = ("load", 0, 0, list(range(arity)), [], [], [], lifted)
        self.trigger = self.kernel.add_trigger(1, slots, [load, ("add", 0, self.map, check)])

    def add(self, columns: Sequence[Any], weights: Any) -> None:
        self.kernel.run(self.trigger, [([np.asarray(c, np.int64) for c in columns], np.asarray(weights, np.int64))])

    def insert(self, *columns: Any) -> None:
        self.add(columns, np.ones(len(columns[0]), np.int64))

    def delete(self, *columns: Any) -> None:
        self.add(columns, -np.ones(len(columns[0]), np.int64))

    def contents(self) -> dict[Any, Any]:
        columns, counts, slots = self.kernel.scan(self.map)
        keys = zip(*(c.tolist() for c in columns), strict=True)
        return dict(zip(keys, zip(counts.tolist(), *(s.tolist() for s in slots), strict=True), strict=True))


class Path:
    """Q(A, C) = R(A, B), S(B, C), classical: a change of R joins S, is summed, and is added to Q.

    With `keyed`, the entries of S are hashed by B.
    """

    def __init__(self, *, keyed: bool = False) -> None:
        self.kernel = kernel = Kernel(99)
        self.r, self.q = (kernel.add_map(2, []) for _ in range(2))
        self.s = kernel.add_map(2, [], [0] if keyed else [])
        kernel.add_index(self.r, [1], [0])
        kernel.add_index(self.s, [0], [1])
        kernel.add_index(self.q, [0], [1])
        kernel.add_index(self.q, [], [1])
        kernel.add_sorted(self.q, [0], 1)
        load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
        self.on_r = kernel.add_trigger(
            3,
            [],
            [
                load,
                ("add", 0, self.r, ""),
                ("join", 1, 0, 1, [(self.s, [1, 2], True, -1)]),
                ("project", 2, 1, [0, 2]),
                ("add", 2, self.q, ""),
            ],
        )
        self.on_s = kernel.add_trigger(
            3,
            [],
            [
                load,
                ("add", 0, self.s, ""),
                ("join", 1, 0, 1, [(self.r, [2, 0], True, -1)]),
                ("project", 2, 1, [2, 1]),
                ("add", 2, self.q, ""),
            ],
        )
        loops = [(self.q, [0, 1], [0, 1])]
        self.reader = kernel.add_reader(0, 2, [0, 1], loops, [(self.q, [0, 1])], [])
        self.by_a = kernel.add_reader(1, 2, [1], [(self.q, [0, 1], [1])], [(self.q, [0, 1])], [])

    def apply(self, trigger: int, first: Any, second: Any, weight: int = 1) -> None:
        columns = [np.asarray(first, np.int64), np.asarray(second, np.int64)]
        self.kernel.run(trigger, [(columns, np.full(len(columns[0]), weight, np.int64))])
