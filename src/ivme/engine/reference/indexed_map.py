"""Maps from tuples to payloads with any number of indexes (source 003, section 2.7).

Look-up, insert and delete take O(1) per index; the matches of a key are enumerated with constant delay and counted
in O(1). An ordered index finds the least and greatest value of a group in amortised O(log n): a heap on each side
whose dead entries are dropped when they surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from ivme.algebra.ring import Payload, add, count
from ivme.engine.expression.row_expression import Row
from ivme.errors import DataError
from ivme.plan.ir.program import Index, Map, is_listed


class CheckError(Exception):
    """An entry whose count would break its map's check; the runtime turns it into an error that names the row."""

    def __init__(self, check: str, key: Row, before: int, after: int) -> None:
        super().__init__(check, key, before, after)
        self.check, self.key, self.before, self.after = check, key, before, after


@dataclass(slots=True)
class Tally:
    """Counts elementary operations, and scans of whole maps or of all keys of a partition."""

    operations: int = 0
    scans: int = 0


Journal = list[tuple["IndexedMap", Row, Payload | None]]
"""What entries were before they changed, in order."""


class IndexedMap:
    """The contents of one declared map. An entry whose count is zero is absent."""

    def __init__(
        self,
        declared: Map,
        tally: Tally,
        sort_keys: Mapping[str, Callable[[Any], Any]] | None = None,
        null: Any = None,
    ) -> None:
        self.declared = declared
        self.tally = tally
        self._sort_keys = sort_keys or {}
        self._null = null
        self._entries: dict[Row, Payload] = {}
        self._indexes: dict[Index, dict[Row, dict[Row, int]]] = {index: {} for index in grouping(declared)}
        self._ordered: dict[Index, dict[Row, _Extremes]] = {index: {} for index in declared.sorted_by}
        self._torn = False

    def emptied(self, tally: Tally) -> IndexedMap:
        """An empty map of the same kind, also with the indexes that were added since it was declared."""
        made = IndexedMap(self.declared, tally, self._sort_keys, self._null)
        made._indexes = {index: {} for index in self._indexes}
        made._ordered = {index: {} for index in self._ordered}
        return made

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterable[tuple[Row, Payload]]:
        self.tally.operations += len(self._entries)
        return self._entries.items()

    def get(self, key: Row) -> Payload | None:
        self.tally.operations += 1
        return self._entries.get(key)

    def peek(self, key: Row) -> Payload | None:
        """`get` that does not count as work."""
        return self._entries.get(key)

    def peek_all(self) -> Mapping[Row, Payload]:
        """`items` that does not count as work."""
        return self._entries

    def clear(self) -> None:
        self._entries.clear()
        for groups in self._indexes.values():
            groups.clear()
        for ordered in self._ordered.values():
            ordered.clear()

    def extend(self, declared: Map, sort_keys: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        """Adds the indexes of the declaration that this map does not have yet, filled, and how they are sorted."""
        named = zip(self.declared.schema, declared.schema, strict=True)
        self._sort_keys = {
            **self._sort_keys,
            **{mine: sort_keys[v] for mine, v in named if sort_keys and v in sort_keys},
        }
        indexes = [index for index in grouping(declared) if index not in self._indexes]
        filled = self._filled(indexes, [index for index in declared.sorted_by if index not in self._ordered])
        self._indexes |= filled._indexes
        self._ordered |= filled._ordered

    def _filled(self, indexes: Iterable[Index], ordered: Iterable[Index]) -> IndexedMap:
        """A map with these indexes, which hold this map's entries."""
        filled = self.emptied(self.tally)
        filled._indexes = {index: {} for index in indexes}
        filled._ordered = {index: {} for index in ordered}
        for row in self._entries:
            filled._reindex(row, 1, filled._indexes)
            filled._reorder(filled._to_reorder(row, 1, filled._ordered), 1)
        return filled

    def _mend(self) -> None:
        """Rebuilds the indexes: an exception came in the middle of a `put`."""
        indexes, ordered = list(self._indexes), list(self._ordered)
        filled = self._filled(indexes, ordered)
        self._indexes, self._ordered, self._torn = filled._indexes, filled._ordered, False

    def add_all(self, delta: Mapping[Row, Payload], journal: Journal | None = None, check: str = "") -> None:
        """Adds a delta; the journal learns what each entry was before.

        With a check, raises `CheckError` at the first entry whose count would be below zero, or not 0 or 1.
        """
        for key, payload in delta.items():
            self.tally.operations += 1
            old = self._entries.get(key)
            total = payload if old is None else add(old, payload)
            if check and (count(total) < 0 or (check == "unique" and count(total) > 1)):
                raise CheckError(check, key, 0 if old is None else count(old), count(total))
            if journal is not None:
                journal.append((self, key, old))
            self.put(key, total if count(total) else None)

    def put(self, key: Row, payload: Payload | None) -> None:
        """Sets or removes an entry; indexes follow where it appears or disappears."""
        if self._torn:
            self._mend()
        old = self._entries.get(key)
        if (old is None) != (payload is None):
            change = 1 if old is None else -1
            groups = self._to_reorder(key, change, self._ordered)
            self._torn = True
            self._reorder(groups, change)
            self._reindex(key, change, self._indexes)
        if payload is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = payload
        self._torn = False

    def _reindex(self, row: Row, change: int, indexes: Iterable[Index]) -> None:
        for index in indexes:
            groups = self._indexes[index]
            key, values = _pick(row, index.key), _pick(row, index.values)
            group = groups.setdefault(key, {})
            support = group.get(values, 0) + change
            if support:
                group[values] = support
            else:
                del group[values]
                if not group:
                    del groups[key]

    def _to_reorder(self, row: Row, change: int, indexes: Iterable[Index]) -> list[tuple[Index, Row, Any]]:
        """Where a row is in ordered indexes; a value that one of them cannot compare is refused."""
        groups = [(i, _pick(row, i.key), self._ranked(i, row[i.values[0]])) for i in indexes]
        groups = [(index, key, ranked) for index, key, ranked in groups if ranked is not None]
        for index, key, ranked in groups if change > 0 else ():
            if key in self._ordered[index]:
                self._ordered[index][key].check(ranked)
        return groups

    def _reorder(self, groups: Iterable[tuple[Index, Row, Any]], change: int) -> None:
        for index, key, ranked in groups:
            ordered = self._ordered[index]
            if change > 0:
                ordered.setdefault(key, _Extremes()).push(ranked)
            elif ordered[key].drop(ranked) == 0:
                del ordered[key]

    def _ranked(self, index: Index, value: Any) -> Any:
        """The value, behind its rank where it does not sort by itself; None for NULL."""
        if value == self._null:
            return None
        sort_key = self._sort_keys.get(self.declared.schema[index.values[0]])
        return value if sort_key is None else (sort_key(value), value)

    def size(self, index: Index, key: Row) -> int:
        """How many matches a key has, in O(1)."""
        self.tally.operations += 1
        if self._is_whole(index):
            return len(self._entries)
        if self._is_look_up(index):
            return int(tuple(value for _, value in sorted(zip(index.key, key, strict=True))) in self._entries)
        return len(self._indexes[index].get(key, ()))

    def groups(self, index: Index) -> Iterator[tuple[Row, int]]:
        """All keys with the number of their matches, with constant delay."""
        sizes: Iterable[tuple[Row, int]] = ((key, len(group)) for key, group in self._indexes.get(index, {}).items())
        if self._is_look_up(index):
            sizes = ((_pick(row, index.key), 1) for row in self._entries)
        for size in sizes:
            self.tally.operations += 1
            yield size

    def counts(self, index: Index) -> bool:
        """Whether this map can tell the matches of a key: by this index, or because the key is a whole tuple."""
        return index in self._indexes or self._is_look_up(index)

    def matches(self, index: Index, key: Row) -> Iterable[Row]:
        """The values that go with a key, with constant delay."""
        if self._is_whole(index):
            return self._entries.keys()
        return self._indexes[index].get(key, {}).keys()

    def supports(self, index: Index, key: Row, values: Row) -> bool:
        """Whether some entry has this key and these values."""
        self.tally.operations += 1
        return values in (self._entries if self._is_whole(index) else self._indexes[index].get(key, ()))

    def _is_whole(self, index: Index) -> bool:
        return not index.key and len(index.values) == len(self.declared.schema)

    def _is_look_up(self, index: Index) -> bool:
        return not index.values and sorted(index.key) == list(range(len(self.declared.schema)))

    def extreme(self, index: Index, key: Row, function: str) -> Any:
        """MIN, MAX (of values that are not NULL) or COUNT DISTINCT of a group, or all its values with their counts.

        Percentiles are computed from all values too: that is what the kernel's way to find them is compared with.
        """
        self.tally.operations += 1
        if is_listed(function):
            return self._values(index, key)
        if function == "count_distinct":
            group = self._indexes[index].get(key, {})
            return len(group) - ((self._null,) in group)
        extremes = self._ordered[index].get(key)
        if extremes is None:
            return None
        first = extremes.first(function)
        return first[1] if self.declared.schema[index.values[0]] in self._sort_keys else first

    def _values(self, index: Index, key: Row) -> list[tuple[Any, int]]:
        (place,) = index.values
        found = []
        for (value,) in self._indexes[index].get(key, {}):
            row = list(key)
            row.insert(place, value)
            found.append((value, count(self._entries[tuple(row)])))
            self.tally.operations += 1
        return found


def grouping(declared: Map) -> dict[Index, None]:
    """The indexes that have all values of a group."""
    return dict.fromkeys((*declared.indexes, *declared.ranked_by))


class _Extremes:
    """The values of one group, with a heap for each side. A value that left stays there until it surfaces, or until
    most of the heap is dead and it is rebuilt."""

    __slots__ = ("_alive", "_greatest", "_least")

    def __init__(self) -> None:
        self._alive: set[Any] = set()
        self._least: list[Any] = []
        self._greatest: list[_Reversed] = []

    def check(self, value: Any) -> None:
        """Raises DataError if the value cannot be compared with the others."""
        try:
            bool(value < self._least[0])
        except TypeError as error:
            raise DataError(f"MIN and MAX cannot compare {value!r} with {self._least[0]!r}") from error

    def push(self, value: Any) -> None:
        self._alive.add(value)
        heappush(self._least, value)
        heappush(self._greatest, _Reversed(value))
        if len(self._least) > 2 * len(self._alive) + 16 or len(self._greatest) > 2 * len(self._alive) + 16:
            self._least = sorted(self._alive)
            self._greatest = [_Reversed(value) for value in reversed(self._least)]

    def drop(self, value: Any) -> int:
        """A value goes; how many are there still."""
        self._alive.remove(value)
        return len(self._alive)

    def first(self, function: str) -> Any:
        """The least or greatest value; amortised O(log n)."""
        if function == "min":
            while self._least[0] not in self._alive:
                heappop(self._least)
            return self._least[0]
        while self._greatest[0].value not in self._alive:
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
