"""The readers of a group's views: for requests, for given rows, and for the values that requests gather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ivme.engine.backend import Backend, Block, Codes, Cursor, Listed, listed
from ivme.engine.codes.domain import Domain
from ivme.engine.runtime.gathering import GatheredCursor, GatheredValues, probed
from ivme.errors import DataError
from ivme.plan.ir.program import Enumeration, Loop


class ViewReaders:
    """Sets readers in the backend, and asks them; `slots` are the types of the sums beside the count."""

    def __init__(self, backend: Backend, slots: tuple[str, ...]) -> None:
        self._backend = backend
        self._slots = slots
        self._gathered: dict[str, GatheredValues] = {}
        self._lazy: set[str] = set()

    def set(self, view: str, enumeration: Enumeration, domains: Mapping[str, Domain]) -> None:
        """The readers of a view in place of those it had; `domains` are those of the variables that are gathered."""
        self.drop(view)
        self._lazy.update([view] if any(branch.pieces for branch in enumeration.branches) else [])
        for name, each in ((view, enumeration), (point_reader(view), point(enumeration))):
            self._backend.set_reader(name, each, self._slots)
            if each.gathered:
                gathered = GatheredValues(self._backend, name, each, domains)
                for reader, values in gathered.readers.items():
                    self._backend.set_reader(reader, values, self._slots)
                self._gathered[name] = gathered

    def is_lazy(self, view: str) -> bool:
        """Whether requests hold what their rows are made of, so that rows can be read while they are taken."""
        return view in self._lazy

    def drop(self, view: str) -> None:
        self._lazy.discard(view)
        for name in (view, point_reader(view)):
            self._backend.drop_reader(name)
            gathered = self._gathered.pop(name, None)
            for reader in () if gathered is None else gathered.readers:
                self._backend.drop_reader(reader)

    def open(self, view: str, inputs: Sequence[int], *, whole: bool) -> Cursor:
        """Begins to read an access request; see `Backend.open`."""
        gathered = self._gathered.get(view)
        if gathered is None:
            return self._backend.open(view, inputs, whole=whole)
        return GatheredCursor(self._whole(view, inputs), len(gathered.enumeration.ordered))

    def _whole(self, view: str, inputs: Sequence[int]) -> Block:
        return self.request_many(view, [np.array([code], np.int64) for code in inputs])[1]

    def request(self, view: str, inputs: Sequence[int], limit: int, *, waits: bool) -> Listed | None:
        """The answer to one access request as lists; None if it may have more rows than the limit, or if a writer is at
        work and it does not wait. What is gathered for several rows is found whole when it is opened."""
        gathered = self._gathered.get(view)
        if gathered is not None:
            is_one_row = not gathered.enumeration.outputs
            return listed(self._whole(view, inputs)) if is_one_row and waits else None
        try:
            return self._backend.request(view, inputs, limit, waits=waits)
        except self._backend.overflow as error:
            raise too_many(view) from error

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The rows of many access requests, each with the number of its request."""
        gathered = self._gathered.get(reader)
        try:
            numbers, block = self._backend.request_many(reader, columns)
            return numbers, block if gathered is None else gathered.completed(columns, numbers, block)
        except self._backend.overflow as error:
            raise too_many(reader) from error


def too_many(view: str) -> DataError:
    """What a read says if the payloads that it multiplies have a count beyond the kernel's."""
    return DataError(f"the number of joined rows behind a row of view {view} does not fit 64 bits")


def point_reader(view: str) -> str:
    """The name of the reader of single rows, which no view has."""
    return f"{view}\0"


def point(enumeration: Enumeration) -> Enumeration:
    """The enumeration of a single row: its outputs are given, too. Without factors, the loops say if it is there;
    branches are probed."""
    given = enumeration.inputs + tuple((variable, variable) for variable in enumeration.outputs)
    if enumeration.branches:
        gathered = probed(enumeration.gathered)
        return Enumeration(given, (), enumeration.slots, (), (), branches=enumeration.branches, gathered=gathered)
    checks = tuple(Loop(loop.read, ()) for loop in enumeration.loops if not loop.new or not enumeration.factors)
    return Enumeration(given, (), enumeration.slots, checks, enumeration.factors, enumeration.extremes)
