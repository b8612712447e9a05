"""Rows of a view that come from several branches: found by loops, made distinct, and summed (source 003, section 5.3).

Candidates are found block by block in one branch after the other; those that came before are skipped. What is left is
probed in all branches at once, and the sum of the payloads is the row's (erratum 2). By the time the k-th row is
found, at most k times as many candidates have been visited as there are contexts for a row: the sum of the sizes of
overlapping sets is at most their number times the size of their union. So the delay is that of union and hop view
iterators, paid in advance rather than evenly, and the memory that of the skip pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ivme.engine.backend import Backend, Block, Codes, Cursor, exact_sums
from ivme.engine.runtime.guards import Guards
from ivme.plan.ir import program as ir

Tuple = tuple[int, ...]

Payload = tuple[Any, ...]
"""The count, then the sums."""

PROBE = -1
"""In place of a segment's number, the trigger that probes a branch."""

SMALLEST_BLOCK, LARGEST_BLOCK = 8, 4096


class UnionReader:
    """Reads one view's branches. `version` tells when the view has changed."""

    def __init__(
        self, backend: Backend, view: str, enumeration: ir.Enumeration, slots: Sequence[str], version: Callable[[], int]
    ) -> None:
        self.backend = backend
        self.enumeration = enumeration
        self.version = version
        self._view = view
        self._slots = slots
        originals = [original for _, original in enumeration.inputs]
        self._originals = [originals.index(original) for original in dict.fromkeys(originals)]
        for number, branch in enumerate(enumeration.branches):
            known: tuple[str, ...] = ()
            for i, segment in enumerate(branch.segments):
                backend.set_reader(self.name(number, i), self._reader(known, segment, branch))
                known = segment.keep
            backend.set_trigger(self.name(number, PROBE), branch.probe, slots)
        given = tuple((variable, variable) for variable, _ in enumeration.inputs)
        self.guards = [
            Guards(backend, self.name(number, PROBE), given, branch.guards)
            for number, branch in enumerate(enumeration.branches)
        ]

    def name(self, branch: int, segment: int) -> str:
        """A name that no view has."""
        return f"{self._view}\0{branch}\0{segment}"

    def _reader(self, known: tuple[str, ...], segment: ir.Segment, branch: ir.Branch) -> ir.Enumeration:
        given = tuple((variable, variable) for variable in (*dict(self.enumeration.inputs), *known))
        if not self.enumeration.disjoint:
            return ir.Enumeration(given, segment.keep, (), segment.loops, ())
        return ir.Enumeration(given, segment.keep, self.enumeration.slots, segment.loops, branch.factors)

    def drop(self) -> None:
        for number, branch in enumerate(self.enumeration.branches):
            for i in range(len(branch.segments)):
                self.backend.drop_reader(self.name(number, i))
            self.backend.drop_trigger(self.name(number, PROBE))
            self.guards[number].drop()

    def open(self, inputs: Sequence[int]) -> UnionCursor:
        return UnionCursor(self, inputs)

    def request_many(self, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The rows of many access requests, one after the other."""
        requests = list(zip(*(column.tolist() for column in columns), strict=True)) if columns else [()]
        found: list[Block] = [self.block([], len(self.enumeration.outputs))]
        numbers: list[int] = []
        for number, request in enumerate(requests):
            cursor = self.open(request)
            while len((block := cursor.next_block())[1]):
                found.append(block)
                numbers += [number] * len(block[1])
        return np.array(numbers, dtype=np.int64), joined(found)

    def points(self, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The payloads of rows whose inputs and outputs are given; rows that are not there are left out."""
        width = len(self.enumeration.inputs)
        asked = [*(columns[i] for i in self._originals), *columns[width:]]
        keys = list(zip(*(column.tolist() for column in asked), strict=True)) if asked else [()]
        found = self.payloads(keys)
        present = [i for i, key in enumerate(keys) if key in found]
        return np.array(present, dtype=np.int64), self.block([((), found[keys[i]]) for i in present], 0)

    def payloads(self, keys: Sequence[Tuple]) -> dict[Tuple, Payload]:
        """Count and sums of each tuple over inputs and outputs that is there, summed over the branches."""
        if not keys:
            return {}
        distinct = list(dict.fromkeys(keys))
        width = len(distinct[0])
        columns = [np.array([key[i] for key in distinct], dtype=np.int64) for i in range(width)]
        weights = np.ones(len(distinct), dtype=np.int64)
        total: dict[Tuple, Payload] = {}
        for number in range(len(self.enumeration.branches)):
            for delta in self.backend.run(self.name(number, PROBE), {ir.ROWS: (columns, weights)}, exact=True):
                values = zip(delta.counts.tolist(), *map(exact_sums, delta.slots), strict=True)
                places = zip(*(c.tolist() for c in delta.columns), strict=True) if width else [()] * len(delta.counts)
                for place, payload in zip(places, values, strict=True):
                    old = total.get(place)
                    total[place] = payload if old is None else tuple(a + b for a, b in zip(old, payload, strict=True))
        return {key: payload for key, payload in total.items() if payload[0]}

    def block(self, rows: Sequence[tuple[Tuple, Payload]], width: int) -> Block:
        """Rows with their payloads as a block."""
        columns = [np.array([row[i] for row, _ in rows], dtype=np.int64) for i in range(width)]
        try:
            counts = np.array([payload[0] for _, payload in rows], dtype=np.int64)
            names = self._slots[: len(self.enumeration.slots)]
            kinds = zip(names, (function for function, _ in self.enumeration.slots), strict=True)
            slots = [_packed([p[i + 1] for _, p in rows], *kind) for i, kind in enumerate(kinds)]
        except OverflowError:
            raise self.backend.overflow("a count does not fit 64 bits") from None
        return columns, counts, slots, []

    def asked(self, inputs: Sequence[int]) -> Tuple:
        """The inputs as the query names them."""
        return tuple(inputs[i] for i in self._originals)


class UnionCursor:
    """An enumeration under way; it says so once the view has changed."""

    def __init__(self, reader: UnionReader, inputs: Sequence[int]) -> None:
        self._reader = reader
        self._inputs = tuple(inputs)
        self._opened = reader.version()
        self._branch = 0
        self._cursor: Cursor | None = None
        self._rows = self._distinct_rows()
        self._block = SMALLEST_BLOCK

    def next_block(self, max_rows: int = LARGEST_BLOCK) -> Block:
        """The next rows; none at the end."""
        reader = self._reader
        if reader.version() != self._opened:
            raise reader.backend.stale_cursor("the cursor outlived the state it was opened on")
        if reader.enumeration.disjoint:
            return self._next_of_branch(max_rows)
        return reader.block(list(islice(self._rows, max_rows)), len(reader.enumeration.outputs))

    def _next_of_branch(self, max_rows: int) -> Block:
        """No row is in two branches: each gives its rows with their payloads."""
        reader = self._reader
        while self._branch < len(reader.enumeration.branches):
            if self._cursor is None and not reader.guards[self._branch].pass_for(self._inputs):
                self._branch += 1
                continue
            if self._cursor is None:
                self._cursor = reader.backend.open(reader.name(self._branch, 0), self._inputs)
            block = self._cursor.next_block(max_rows)
            if len(block[1]):
                return block
            self._branch, self._cursor = self._branch + 1, None
        return reader.block([], len(reader.enumeration.outputs))

    def _distinct_rows(self) -> Iterator[tuple[Tuple, Payload]]:
        asked = self._reader.asked(self._inputs)
        seen: set[Tuple] = set()
        for candidates in self._candidates():
            fresh = [row for row in dict.fromkeys(candidates) if row not in seen]
            seen.update(fresh)
            found = self._reader.payloads([asked + row for row in fresh])
            yield from ((row, found[asked + row]) for row in fresh if asked + row in found)

    def _candidates(self) -> Iterator[list[Tuple]]:
        """Tuples over the outputs that may be in the answer, each at least once if it is."""
        if not self._reader.enumeration.outputs:
            yield [()]
            return
        for number, branch in enumerate(self._reader.enumeration.branches):
            if self._reader.guards[number].pass_for(self._inputs):
                yield from self._found(number, len(branch.segments), 0, ())

    def _found(self, branch: int, segments: int, segment: int, known: Tuple) -> Iterator[list[Tuple]]:
        """What a segment finds behind a tuple of the one before it."""
        cursor = self._reader.backend.open(self._reader.name(branch, segment), self._inputs + known)
        seen: set[Tuple] = set()
        while True:
            columns, counts, _, _ = cursor.next_block(self._block)
            if not len(counts):
                return
            self._block = min(2 * self._block, LARGEST_BLOCK)
            rows = list(zip(*(column.tolist() for column in columns), strict=True))
            if segment == segments - 1:
                yield rows
                continue
            for row in dict.fromkeys(rows):
                if row not in seen:
                    seen.add(row)
                    yield from self._found(branch, segments, segment + 1, row)


def _packed(values: list[Any], name: str, function: str) -> Any:
    """The sums of a slot as an array: counts, whole numbers of any size, or floats, which may also stay as they are."""
    if name == "i64":
        return np.array(values, dtype=np.int64)
    if name == "f64":
        return values if function == "exact_sum" else np.array(list(map(float, values)), dtype=np.float64)
    return np.array(values, dtype=object)


def _concatenated(parts: Sequence[Any]) -> Any:
    """The sums of several blocks; those without rows may have any shape."""
    filled = [part for part in parts if len(part)]
    if filled and isinstance(filled[0], list):
        return [value for part in filled for value in part]
    return np.concatenate(filled) if filled else parts[0]


def joined(blocks: Sequence[Block]) -> Block:
    """Several blocks as one."""
    columns = [np.concatenate(each) for each in zip(*(block[0] for block in blocks), strict=True)]
    slots = [_concatenated(each) for each in zip(*(block[2] for block in blocks), strict=True)]
    return columns, np.concatenate([block[1] for block in blocks]), slots, []
