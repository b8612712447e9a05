"""Fractional edge covers, exactly (source 003, Definition 2.19).

The join of relations of size N has at most N^ρ tuples over a set of variables, where ρ is the least total weight
that edges need to cover each variable of the set at least once. All widths are maxima of such numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from ivme.budget import spend
from ivme.structure.hypergraph import Hypergraph


def edge_cover_number(hypergraph: Hypergraph, variables: Iterable[str]) -> Fraction:
    """The fractional edge cover number ρ* of a set of variables; 0 for none, ValueError if one is in no edge."""
    covers = EdgeCovers(hypergraph)
    return covers.number(covers.mask(variables))


def edge_cover(hypergraph: Hypergraph, variables: Iterable[str]) -> dict[str, Fraction]:
    """A fractional edge cover of least weight: the positive weights by edge label, in the order of the edges."""
    covers = EdgeCovers(hypergraph)
    weights = covers.cover(covers.mask(variables))
    return {hypergraph.edges[index].label: weight for index, weight in sorted(weights.items())}


_ONE = Fraction(1)


@dataclass(slots=True)
class EdgeCovers:
    """Edge cover numbers of one hypergraph, remembered by variable set and by what remains after reductions.

    Sets of variables are bitmasks: `names[i]` has bit i. A question costs a dictionary lookup the second time;
    the first time a few bit operations per pair of edges, and a simplex run only where covers are not integral
    for a simple reason.
    """

    hypergraph: Hypergraph
    names: tuple[str, ...] = field(init=False)
    edges: tuple[int, ...] = field(init=False)
    _bits: dict[str, int] = field(init=False)
    _numbers: dict[int, Fraction] = field(init=False, default_factory=dict)
    _cores: dict[tuple[int, ...], tuple[Fraction, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.names = tuple(sorted(self.hypergraph.vertices))
        self._bits = {name: 1 << position for position, name in enumerate(self.names)}
        self.edges = tuple([sum(map(self._bits.__getitem__, edge.variables)) for edge in self.hypergraph.edges])

    def mask(self, variables: Iterable[str]) -> int:
        """The bitmask of a set of variables."""
        wanted = frozenset(variables)
        if not wanted.issubset(self._bits):
            raise ValueError(f"no edge covers {', '.join(sorted(wanted.difference(self._bits)))}")
        return sum(map(self._bits.__getitem__, wanted))

    def variables(self, mask: int) -> frozenset[str]:
        """The set of variables of a bitmask."""
        return frozenset(self.names[bit.bit_length() - 1] for bit in bits_of(mask))

    def number(self, variables: int) -> Fraction:
        """ρ* of a set of variables, given as a bitmask."""
        known = self._numbers.get(variables)
        if known is None:
            spend(1 + len(self.edges) // 4)
            weights = self.cover(variables).values()
            others = [weight for weight in weights if weight is not _ONE]
            known = sum(others, Fraction(len(weights) - len(others)))
            self._numbers[variables] = known
        return known

    @property
    def solved(self) -> int:
        """How many different questions have been answered: a measure of the work that went into them."""
        return len(self._numbers)

    def number_by(self, edges: Iterable[int], variables: int) -> Fraction:
        """ρ* of a set of variables by other edges than those of the hypergraph, as bitmasks."""
        spend(1 + len(self.edges) // 4)
        return sum(self._cover({edge & variables: index for index, edge in enumerate(edges)}).values(), Fraction(0))

    def cover(self, variables: int) -> dict[int, Fraction]:
        """The positive weights of an optimal cover, by the position of the edge."""
        return self._cover({edge & variables: index for index, edge in reversed([*enumerate(self.edges)])})

    def _cover(self, restricted: dict[int, int]) -> dict[int, Fraction]:
        edges = _reduced(restricted)
        shared = _shared(edges)
        found = {index: _ONE for mask, index in edges.items() if not mask & shared}
        for core in _split({mask: index for mask, index in edges.items() if mask & shared}):
            masks = _compressed(tuple(core))
            weights = self._cores.get(masks)
            if weights is None:
                weights = self._cores[masks] = _optimal_cover(masks)
            found.update({index: weight for index, weight in zip(core.values(), weights, strict=True) if weight})
        return found


def _reduced(edges: dict[int, int]) -> dict[int, int]:
    """Drop edges within others, and variables that are covered whenever another one is, until nothing changes.

    Neither changes the least weight, and a cover of what remains covers everything.
    """
    while True:
        kept = _maximal(edges)
        keep = _undominated([*kept])
        edges = {mask & keep: index for mask, index in kept.items()}
        if edges == kept:
            return edges


def _maximal(edges: dict[int, int]) -> dict[int, int]:
    """The edges that are not within others, without the empty one; larger ones first."""
    kept: dict[int, int] = {}
    larger: list[int] = []
    size = union = around = 0
    for mask in sorted(edges, key=lambda mask: (-mask.bit_count(), mask)):
        if mask.bit_count() != size:
            larger, size, around = [*kept], mask.bit_count(), union
        if mask and (mask & ~around or not any(mask & ~other == 0 for other in larger)):
            kept[mask] = edges[mask]
            union |= mask
    return kept


def _undominated(masks: list[int]) -> int:
    """The variables whose edges do not include all edges of another variable; one of each group of equals."""
    homes: dict[int, int] = {}
    for position, mask in enumerate(masks):
        for bit in bits_of(mask):
            homes[bit] = homes.get(bit, 0) | 1 << position
    first: dict[int, int] = {}
    for bit in sorted(homes):
        first.setdefault(homes[bit], bit)
    private = sum([home for home in first if home.bit_count() == 1])
    contested = [home for home in first if not home & private]
    keep = {home for home in contested if not any(home != other and other & ~home == 0 for other in contested)}
    return sum([bit for home, bit in first.items() if home in keep or home.bit_count() == 1])


def _shared(edges: Iterable[int]) -> int:
    """The variables of several edges."""
    once = twice = 0
    for mask in edges:
        twice |= once & mask
        once |= mask
    return twice


def _split(edges: dict[int, int]) -> list[dict[int, int]]:
    """The connected components of the edges."""
    groups: list[tuple[int, dict[int, int]]] = []
    for mask, index in edges.items():
        joined = [group for group in groups if group[0] & mask]
        groups = [group for group in groups if not group[0] & mask]
        union, members = mask, {mask: index}
        for vertices, part in joined:
            union |= vertices
            members |= part
        groups.append((union, members))
    return [members for _, members in groups]


def bits_of(mask: int) -> list[int]:
    """The single bits of a mask, lowest first."""
    bits = []
    while mask:
        bits.append(mask & -mask)
        mask &= mask - 1
    return bits


def _compressed(masks: tuple[int, ...]) -> tuple[int, ...]:
    """The same edges over the lowest bits, so that equal shapes over different variables are solved once."""
    union = 0
    for mask in masks:
        union |= mask
    place = {bit: 1 << position for position, bit in enumerate(bits_of(union))}
    return tuple(sum(place[bit] for bit in bits_of(mask)) for mask in masks)


def _optimal_cover(masks: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Weights of an optimal cover of all variables, edge by edge.

    Solves the dual, the fractional independent set: maximise the sum of y with at most 1 in each edge. The
    simplex method runs on a condensed tableau of integers over one common denominator; Bland's rule ends it. The
    reduced costs of the slack variables are the cover.
    """
    if len(masks) == 1:
        return (Fraction(1),)
    union = 0
    for mask in masks:
        union |= mask
    vertices = bits_of(union)
    rows = [[1 if mask & bit else 0 for bit in vertices] + [1] for mask in masks]
    rows.append([-1] * len(vertices) + [0])
    columns = [*range(len(vertices))]
    basis = [*range(len(vertices), len(vertices) + len(masks))]
    denominator = 1
    while (column := _entering(rows[-1], columns)) is not None:
        spend(1 + len(masks) // 4)
        row = _leaving(rows, basis, column)
        denominator = _pivot(rows, row, column, denominator)
        basis[row], columns[column] = columns[column], basis[row]
    weights = [Fraction(0)] * len(masks)
    for position, variable in enumerate(columns):
        if variable >= len(vertices):
            weights[variable - len(vertices)] = Fraction(rows[-1][position], denominator)
    return tuple(weights)


def _entering(costs: list[int], columns: list[int]) -> int | None:
    candidates = [position for position in range(len(columns)) if costs[position] < 0]
    return min(candidates, key=columns.__getitem__) if candidates else None


def _leaving(rows: list[list[int]], basis: list[int], column: int) -> int:
    candidates = [row for row in range(len(basis)) if rows[row][column] > 0]
    return min(candidates, key=lambda row: (Fraction(rows[row][-1], rows[row][column]), basis[row]))


def _pivot(rows: list[list[int]], row: int, column: int, denominator: int) -> int:
    """Exchange a basic and a non-basic variable in place; divisions are exact. Returns the new denominator."""
    pivot_row = rows[row]
    pivot = pivot_row[column]
    for index, old in enumerate(rows):
        if index != row:
            factor = old[column]
            rows[index] = [
                (value * pivot - factor * above) // denominator for value, above in zip(old, pivot_row, strict=True)
            ]
            rows[index][column] = -factor
    pivot_row[column] = denominator
    return pivot
