"""Maps from tuples to payloads with any number of indexes (source 003, section 2.7; DESIGN section 4).

Look-up, insert and delete take O(1) per index; the matches of a key are enumerated with constant delay and counted
in O(1). An ordered index finds the least and greatest value of a group in amortised O(log n): a heap on each side
whose dead entries are dropped when they surface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from ivme.algebra.ring import Payload, add, count
from ivme.engine.kernel import Row
from ivme.plan.program import Index, Map


@dataclass(slots=True)
class Tally:
    """Counts elementary operations."""

    operations: int = 0


class IndexedMap:
    """The contents of one declared map. An entry whose count is zero is absent."""

    def __init__(self, declared: Map, tally: Tally) -> None:
        self.declared = declared
        self.tally = tally
        self._entries: dict[Row, Payload] = {}
        self._indexes: dict[Index, dict[Row, dict[Row, int]]] = {index: {} for index in declared.indexes}
        self._ordered: dict[Index, dict[Row, _Extremes]] = {index: {} for index in declared.sorted_by}

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterable[tuple[Row, Payload]]:
        self.tally.operations += len(self._entries)
        return self._entries.items()

    def get(self, key: Row) -> Payload | None:
        self.tally.operations += 1
        return self._entries.get(key)

    def clear(self) -> None:
        self._entries.clear()
        for groups in self._indexes.values():
            groups.clear()
        for ordered in self._ordered.values():
            ordered.clear()

    def add_all(self, delta: Mapping[Row, Payload]) -> None:
        """Adds a delta; indexes follow where an entry appears or disappears."""
        for key, payload in delta.items():
            self.tally.operations += 1
            old = self._entries.get(key)
            total = payload if old is None else add(old, payload)
            if count(total):
                self._entries[key] = total
            elif old is not None:
                del self._entries[key]
            if (old is None) != (count(total) == 0):
                self._reindex(key, 1 if old is None else -1)

    def _reindex(self, row: Row, change: int) -> None:
        for index, groups in self._indexes.items():
            key, values = _pick(row, index.key), _pick(row, index.values)
            group = groups.setdefault(key, {})
            support = group.get(values, 0) + change
            if support:
                group[values] = support
            else:
                del group[values]
                if not group:
                    del groups[key]
        for index, ordered in self._ordered.items():
            key, value = _pick(row, index.key), row[index.values[0]]
            if value is not None and change > 0:
                ordered.setdefault(key, _Extremes()).push(value)
            elif value is not None and ordered[key].drop() == 0:
                del ordered[key]

    def size(self, index: Index, key: Row) -> int:
        """How many matches a key has, in O(1)."""
        self.tally.operations += 1
        if self._is_whole(index):
            return len(self._entries)
        return len(self._indexes[index].get(key, ()))

    def matches(self, index: Index, key: Row) -> Iterable[Row]:
        """The values that go with a key, with constant delay."""
        if self._is_whole(index):
            return self._entries.keys()
        return self._indexes[index].get(key, {}).keys()

    def supports(self, index: Index, key: Row, values: Row) -> bool:
        """Whether some entry has this key and these values."""
        self.tally.operations += 1
        if self._is_whole(index):
            return values in self._entries
        return values in self._indexes[index].get(key, ())

    def _is_whole(self, index: Index) -> bool:
        return not index.key and len(index.values) == len(self.declared.schema)

    def extreme(self, index: Index, key: Row, function: str) -> Any:
        """MIN, MAX (of values that are not NULL) or COUNT DISTINCT of a group."""
        self.tally.operations += 1
        if function == "count_distinct":
            group = self._indexes[index].get(key, {})
            return len(group) - ((None,) in group)
        extremes = self._ordered[index].get(key)
        if extremes is None:
            return None
        return extremes.first(function, lambda value: _insert(key, index, value) in self._entries)


class _Extremes:
    """The values of one group, in a heap for each side. A value that left stays until it surfaces."""

    __slots__ = ("_greatest", "_least", "_size")

    def __init__(self) -> None:
        self._least: list[Any] = []
        self._greatest: list[_Reversed] = []
        self._size = 0

    def push(self, value: Any) -> None:
        self._size += 1
        heappush(self._least, value)
        heappush(self._greatest, _Reversed(value))

    def drop(self) -> int:
        """Notes that a value left; how many are there still."""
        self._size -= 1
        return self._size

    def first(self, function: str, is_alive: Any) -> Any:
        if function == "min":
            while not is_alive(self._least[0]):
                heappop(self._least)
            return self._least[0]
        while not is_alive(self._greatest[0].value):
            heappop(self._greatest)
        return self._greatest[0].value


@dataclass(frozen=True, slots=True)
class _Reversed:
    """A value that sorts backwards."""

    value: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _pick(row: Row, positions: tuple[int, ...]) -> Row:
    return tuple(row[position] for position in positions)


def _insert(key: Row, index: Index, value: Any) -> Row:
    """The whole tuple of a group's key and one value."""
    row = list(key)
    row.insert(index.values[0], value)
    return tuple(row)
