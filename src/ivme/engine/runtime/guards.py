"""Guards: whether every component of a fracture has rows for the inputs, before rows of one are combined with none.

The answer of a query is the product of those of its components (source 003, section 3.1.1). Reading them one inside the
other would try all rows of the first in vain if another has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ivme.engine.backend import Backend, Block, Codes
from ivme.plan.ir.program import Enumeration, Loop


class Nothing:
    """The cursor of an answer without rows."""

    def __init__(self, enumeration: Enumeration, slots: Sequence[str]) -> None:
        self._widths = len(enumeration.outputs), len(enumeration.extremes)
        self._slots = slots[: len(enumeration.slots)]

    def next_block(self, max_rows: int = 0) -> Block:  # noqa: ARG002  there are none
        outputs, extremes = ([np.empty(0, np.int64) for _ in range(width)] for width in self._widths)
        return outputs, np.empty(0, np.int64), [_empty(slot) for slot in self._slots], extremes


def _empty(slot: str) -> Any:
    """No sums of a type; wide ones have several words each."""
    words = {"i128": 2, "d128": 2, "d192": 3}.get(slot)
    return np.empty(0 if words is None else (0, words), np.float64 if slot == "f64" else np.int64)


class Guards:
    """The guards of one view, or of one of its branches; `name` begins the names of their readers."""

    def __init__(
        self, backend: Backend, name: str, inputs: tuple[tuple[str, str], ...], guards: Sequence[tuple[Loop, ...]]
    ) -> None:
        self._backend = backend
        self._names = [f"{name}\0guard\0{i}" for i in range(len(guards))]
        for reader, loops in zip(self._names, guards, strict=True):
            found = tuple(variable for loop in loops for variable in loop.new)
            backend.set_reader(reader, Enumeration(inputs, found, (), loops, ()))

    def __bool__(self) -> bool:
        return bool(self._names)

    def pass_for(self, inputs: Sequence[int]) -> bool:
        """Whether each guarded component has a row."""
        return all(len(self._backend.open(name, inputs).next_block(1)[1]) for name in self._names)

    def passing(self, columns: Sequence[Codes]) -> Codes:
        """The numbers of the requests for which they do."""
        requests = enumerate(zip(*(column.tolist() for column in columns), strict=True))
        return np.array([number for number, inputs in requests if self.pass_for(inputs)], dtype=np.int64)

    def drop(self) -> None:
        for name in self._names:
            self._backend.drop_reader(name)
