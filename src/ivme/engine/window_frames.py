"""Rows of partitions in their order, and the frames around each, by column: what window functions are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.query.sql_values import DECIMALS
from ivme.query.windows import Edge, Frame

Bounds = tuple[Codes, Codes]
"""For each row where its frame begins, and where the rows behind it begin."""

_DAY = 86_400_000_000
LARGEST = 2**61
"""Numbers up to this are added in 64 bits."""


@dataclass(frozen=True, slots=True)
class Key:
    """A column that the rows are ordered by."""

    position: int
    domain: Domain
    descending: bool


@dataclass(frozen=True)
class Part:
    """Rows of partitions, each partition by its number, in their order; a row may stand for several copies.

    Of a partition, rows before the part may be left out: `before` are their copies, by number, and `carried` for some
    columns the sums of their values and how many are not NULL.
    """

    numbers: Codes
    columns: Sequence[Codes]
    copies: Codes
    keys: Sequence[Key]
    before: Codes
    carried: Mapping[int, tuple[Sequence[int], Codes]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def expanded(self) -> Part:
        """The same with a row for each copy."""
        if (self.copies == 1).all():
            return self
        each = np.repeat(np.arange(len(self)), self.copies)
        columns = [column[each] for column in self.columns]
        return Part(self.numbers[each], columns, np.ones(len(each), np.int64), self.keys, self.before, self.carried)

    @cached_property
    def partitions(self) -> Bounds:
        """Where the partition of each row begins and ends."""
        return _runs(_changes([self.numbers]))

    @cached_property
    def peers(self) -> Bounds:
        """Where the rows like each one begin and end."""
        return _runs(self._group_starts)

    @cached_property
    def _group_starts(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return _changes([self.numbers, *(self.columns[key.position] for key in self.keys)])

    @cached_property
    def groups(self) -> Codes:
        """The number of the group of peers of each row, from 0 on, over all partitions."""
        return np.cumsum(self._group_starts) - 1

    @cached_property
    def copies_before(self) -> Codes:
        """How many copies are before each row, and how many there are: one more than rows."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.copies)])

    def frame(self, frame: Frame) -> Bounds:
        """The frames of all rows; one without rows ends where it begins."""
        first = self._edge(frame, frame.start, is_end=False)
        last = self._edge(frame, frame.end, is_end=True)
        return first, np.maximum(first, last)

    def _edge(self, frame: Frame, edge: Edge, *, is_end: bool) -> Codes:
        start, stop = self.partitions
        if edge is None:
            return stop if is_end else start
        if frame.unit == "rows":
            assert isinstance(edge, int)
            return np.clip(np.arange(len(self)) + edge + is_end, start, stop)
        if not edge:
            return self.peers[is_end]
        return self._group_edge(edge, is_end=is_end) if frame.unit == "groups" else self._value_edge(edge, is_end)

    def _group_edge(self, edge: Edge, *, is_end: bool) -> Codes:
        """So many groups of peers away."""
        assert isinstance(edge, int)
        start, stop = self.partitions
        starts = np.concatenate([np.flatnonzero(self._group_starts), [len(self)]])
        wanted = np.clip(self.groups + edge + is_end, 0, len(starts) - 1)
        found: Codes = np.clip(starts[wanted], start, stop)
        return found

    def _value_edge(self, edge: Edge, is_end: bool) -> Codes:
        """The first row, or the first behind all, whose key is at most so far away; rows without a key have peers."""
        (key,) = self.keys
        codes = self.columns[key.position]
        null = codes == NULL_CODE
        numbers, offset = _numbers(key, codes, edge)
        found = np.array(self.peers[is_end])
        for first, stop in zip(*(np.unique(each) for each in self.partitions), strict=True):
            known = np.flatnonzero(~null[first:stop]) + first
            if len(known):
                mine = numbers[known]
                places = np.searchsorted(mine, mine + offset, "right" if is_end else "left")
                found[known] = known[0] + places
        return found


def _changes(columns: Sequence[Codes]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where rows differ from the one before."""
    found = np.zeros(len(columns[0]), bool)
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    found[:1] = True
    return found


def _runs(begins: np.ndarray[Any, np.dtype[np.bool_]]) -> Bounds:
    """For each row where its run begins, and where the next one does."""
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.concatenate([starts, [len(begins)]]))
    return np.repeat(starts, lengths), np.repeat(starts + lengths, lengths)


def _numbers(key: Key, codes: Codes, edge: Edge) -> tuple[Any, Any]:
    """Keys as numbers that ascend, and the offset in the same unit; those of NULL mean nothing."""
    kind, sign = key.domain.type.kind, -1 if key.descending else 1
    if kind == "float":
        values = np.nan_to_num(np.array(key.domain.decode(codes).to_numpy(zero_copy_only=False), float), nan=0.0)
        assert isinstance(edge, int | Decimal)
        return sign * values, float(edge)
    if kind in ("date", "timestamp"):
        unit = _DAY if kind == "date" and isinstance(edge, timedelta) else 1
        offset = edge // timedelta(microseconds=1) if isinstance(edge, timedelta) else edge
        return sign * np.where(codes == NULL_CODE, 0, codes) * unit, offset
    return _whole_numbers(key, codes, edge, sign)


def code_offset(key: Key, edge: Edge) -> Fraction | None:
    """How far an edge is away in codes; None if it is the partition's end, or codes are not numbers."""
    kind = key.domain.type.kind
    if edge is None or kind not in ("int", "decimal", "date", "timestamp") or not key.domain.orders_by_code:
        return None
    if isinstance(edge, timedelta):
        return Fraction(edge // timedelta(microseconds=1), _DAY if kind == "date" else 1)
    return Fraction(edge) * Fraction(10) ** int(key.domain.type.scale or 0)


def _whole_numbers(key: Key, codes: Codes, edge: Edge, sign: int) -> tuple[Any, Any]:
    """Ints and decimals, by their smallest unit; in Python's numbers if they are large or the offset has parts."""
    scale = key.domain.type.scale or 0
    assert isinstance(edge, int | Decimal)
    offset = Fraction(edge) * 10**scale
    units = codes
    if not key.domain.orders_by_code:
        values = key.domain.values(codes.tolist())
        units = np.array([0 if v is None else int(v.scaleb(scale, DECIMALS)) for v in values], object)
    known = np.where(codes == NULL_CODE, 0, units)
    is_small = known.dtype != object and abs(offset) < LARGEST and (not len(known) or int(abs(known).max()) < LARGEST)
    if is_small and offset.denominator == 1:
        return sign * known, int(offset)
    return np.array([sign * int(each) for each in known.tolist()], object), offset
