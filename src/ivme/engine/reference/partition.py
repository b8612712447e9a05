"""Heavy/light partitions in plain Python (source 003, section 5.1): degrees of keys, and keys to change sides.

Judging a key takes O(1): its degree in a leaf is the number of its matches in an index of each of the leaf's parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ivme.engine.expression.row_expression import Row
from ivme.engine.reference.indexed_map import IndexedMap
from ivme.plan.ir import program as ir

Noted = tuple[list[Row], list[Row]]
"""Keys that rise, from light to heavy, and keys that fall."""


class PurePartition:
    """The bounds of a partition, and the keys that were noted and not taken yet; without bounds, none is."""

    def __init__(self, declared: ir.Partition, maps: Mapping[str, IndexedMap]) -> None:
        self._heavy = maps[declared.heavy]
        self._degrees = [[(maps[name], index) for name, index in degree.parts] for degree in declared.degrees]
        for stored, index in (part for parts in self._degrees for part in parts):
            if not stored.counts(index):
                raise ValueError(f"partition {declared.name} needs the index {index} of {stored.declared}")
        self.arity = len(declared.key)
        self._bounds = (0, 2**64 - 1)
        self._swept: list[tuple[Row, int]] = []
        self._rising: dict[Row, None] = {}
        self._falling: dict[Row, None] = {}

    def set_bounds(self, lower: int, upper: int) -> None:
        self._bounds = (lower, upper)

    def watch(self, keys: Iterable[Row], leaf: int) -> None:
        """Notes the light keys that rise in this leaf, and the heavy ones that fall."""
        for key in keys:
            if not len(self._heavy) or self._heavy.get(key) is None:
                if self._rises(key, leaf):
                    self._rising[key] = None
            elif self._falls(key, leaf):
                self._falling[key] = None

    def take(self) -> Noted:
        """The noted keys that still have to change sides; none is noted afterwards."""
        leaves = range(len(self._degrees))
        rising = [
            k for k in self._rising if self._heavy.get(k) is None and any(self._rises(k, leaf) for leaf in leaves)
        ]
        falling = [k for k in self._falling if self._heavy.get(k) is not None and self._falls(k, 0)]
        self.restore(([], []))
        return rising, falling

    def noted(self) -> Noted:
        return list(self._rising), list(self._falling)

    def restore(self, noted: Noted) -> None:
        """Makes these the noted keys, as they were when a transaction began."""
        self._rising, self._falling = dict.fromkeys(noted[0]), dict.fromkeys(noted[1])

    def sweep(self, position: int, count: int) -> int:
        """Judges the next keys: the heavy ones, then those of all entries as they were when the sweep began."""
        if position == 0:
            entries = [(leaf, part) for leaf, parts in enumerate(self._degrees) for part in parts]
            self._swept = [(key, 0) for key, _ in self._heavy.items()]
            for leaf, (stored, index) in entries:
                self._swept += [(tuple(row[i] for i in index.key), leaf) for row, _ in stored.items()]
        for key, leaf in self._swept[position : position + count]:
            self.watch([key], leaf)
        return position + count if position + count < len(self._swept) else -1

    def census(self, threshold: int) -> Noted:
        """The light keys whose degree reaches the threshold in some leaf, and the heavy ones that do in none; O(N)."""
        heavy = dict(self._heavy.items())
        degrees: list[Counter[Row]] = []
        for parts in self._degrees:
            degrees.append(Counter())
            for stored, index in parts:
                for key, matches in stored.groups(index):
                    degrees[-1][key] += matches
        reached = {key: None for degree in degrees for key, matches in degree.items() if matches >= threshold}
        rising = [key for key in reached if key not in heavy]
        return rising, [key for key in heavy if all(degree[key] < threshold for degree in degrees)]

    def _rises(self, key: Row, leaf: int) -> bool:
        return self._degree(key, leaf) >= self._bounds[1]

    def _falls(self, key: Row, first: int) -> bool:
        others = (leaf for leaf in range(len(self._degrees)) if leaf != first)
        return all(self._degree(key, leaf) < self._bounds[0] for leaf in (first, *others))

    def _degree(self, key: Row, leaf: int) -> int:
        return sum(stored.size(index, key) for stored, index in self._degrees[leaf] if len(stored))
