"""The space of access-top orders of one component, on bitmasks.

In any variable order the subtree of a variable is a connected set S of variables, and its dependency set is all
neighbours of S. So the price of putting x on top of S depends on S and x alone, and the space of all orders has
a state for each connected set that can hang below an access-top prefix. Variables with the same edges and the same
tier are one *block*: a chain of them has the widths of one of them, so the search never needs to part them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ivme.budget import spend
from ivme.plan.order.widths import Measure, Widths
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph
from ivme.structure.width import bits_of

UNKNOWN_ROWS = 1000
"""The size that a table is taken to have when nothing is known about any table of the query."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The price of one variable on top of a connected set: what its view costs whatever the order below is.

    `keyed` are the widths when data obeys the primary keys; `indicators` are the schemas that this variable adds.
    `work` estimates the rows that updates touch at this view, and `size` counts the columns of the view.
    """

    bag: int
    static: Fraction
    dynamic: Fraction
    keyed: Widths
    indicators: tuple[int, ...]
    work: int
    size: int


class OrderSpace:
    """Blocks, neighbourhoods and prices of one component; every answer is remembered."""

    def __init__(
        self,
        cqap: Cqap,
        keys: Mapping[str, frozenset[str]],
        sizes: Mapping[str, int],
        static: frozenset[str] = frozenset(),
    ) -> None:
        self.blocks = _blocks(cqap, keys)
        edges = cqap.hypergraph.edges
        self.changing = [edge.label not in static for edge in edges]
        merged = [Edge(edge.label, edge.variables.intersection(self.blocks)) for edge in edges]
        self.measure = Measure(Hypergraph(tuple(merged)))
        self.names = self.measure.covers.names
        self.edges = self.measure.covers.edges
        self.everything = (1 << len(self.names)) - 1
        self.tiers = {1 << position: cqap.tier(name) for position, name in enumerate(self.names)}
        self.keyed = Keys(self, cqap, keys) if any(keys.get(edge.label) is not None for edge in edges) else None
        default = max(sizes.values(), default=UNKNOWN_ROWS)
        self.rows = [max(1, sizes.get(edge.label, default)) for edge in edges]
        self._adjacent = {bit: self._around(bit) for bit in self.tiers}
        self._steps: dict[tuple[int, int], SearchStep] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._joins: dict[int, int] = {0: 1}

    @property
    def spent(self) -> int:
        """How many pairs of an edge and a step, a bag to cover or a join to size have been looked at so far: what a
        search is budgeted by."""
        covers = self.measure.covers.solved + (0 if self.keyed is None else self.keyed.solved)
        return (len(self._steps) + len(self._joins) + covers) * len(self.edges)

    def below(self, inside: int) -> list[int]:
        """The positions of the edges that meet a set."""
        return [index for index, edge in enumerate(self.edges) if edge & inside]

    def neighbours(self, inside: int) -> int:
        """The variables outside a set that share an edge with it."""
        return self._around(inside) & ~inside

    def _around(self, inside: int) -> int:
        around = 0
        for edge in self.edges:
            if edge & inside:
                around |= edge
        return around

    def parts(self, inside: int) -> tuple[int, ...]:
        """The connected components of a set, by their lowest bits."""
        known = self._parts.get(inside)
        if known is None:
            found, left = [], inside
            while left:
                found.append(self.part(left & -left, left))
                left &= ~found[-1]
            known = self._parts[inside] = tuple(found)
        return known

    def part(self, start: int, inside: int) -> int:
        """The connected component of a set that holds a variable; each variable of it is looked at once."""
        part = new = start
        while new:
            around = 0
            for bit in bits_of(new):
                around |= self._adjacent[bit]
            new = around & inside & ~part
            part |= new
        return part

    def roots(self, inside: int) -> list[int]:
        """The variables that may be on top of a set: those of the lowest tier in it."""
        bits = bits_of(inside)
        lowest = min(self.tiers[bit] for bit in bits)
        return [bit for bit in bits if self.tiers[bit] == lowest]

    def step(self, inside: int, root: int) -> SearchStep:
        """The price of `root` on top of the connected set `inside`, which contains it."""
        known = self._steps.get((inside, root))
        if known is None:
            known = self._steps[inside, root] = self._priced(inside, root)
        return known

    def _priced(self, inside: int, root: int) -> SearchStep:
        spend(1 + len(self.edges) // 4)
        bag = self.neighbours(inside) | root
        below = self.below(inside)
        placed = self.measure.indicators(bag, below)
        indicators = tuple(sorted(schema for index, schema in placed.items() if self.changing[index]))
        fixed = [self.edges[index] for index in below if self.changing[index]]
        number = self.measure.covers.number
        static, dynamic = number(bag), self.dynamic(bag, fixed)
        keyed = Widths(dynamic, static)
        if self.keyed is not None:
            keyed = Widths(self.keyed.dynamic(bag, fixed), self.keyed.number(bag))
        rests = [bag & ~(self.keyed.closure(schema) if self.keyed else schema) for schema in fixed]
        work = sum(self.join_size(rest) for rest in rests)
        size = sum(len(self.blocks[name]) for name in self.measure.covers.variables(bag))
        return SearchStep(bag, static, dynamic, keyed, indicators, work, size)

    def dynamic(self, bag: int, fixed: Iterable[int]) -> Fraction:
        """The dynamic width of a bag when one of the schemas is fixed by an update."""
        return self.measure.largest(bag, fixed)

    def keyed_dynamic(self, bag: int, fixed: Iterable[int]) -> Fraction:
        """The same when a key fixes all that it determines."""
        return self.dynamic(bag, fixed) if self.keyed is None else self.keyed.dynamic(bag, fixed)

    def join_size(self, variables: int) -> int:
        """The least product of table sizes over integral covers of a set of variables."""
        known = self._joins.get(variables)
        if known is None:
            spend(1 + len(self.edges) // 4)
            lowest = variables & -variables
            sizes = (
                rows * self.join_size(variables & ~edge)
                for edge, rows in zip(self.edges, self.rows, strict=True)
                if edge & lowest
            )
            known = self._joins[variables] = min(sizes)
        return known


class Keys:
    """Primary keys as functional dependencies: widths of data that obeys them.

    A key fixes all variables of its atom. An edge then covers all that its own variables determine, and an update
    fixes that much.
    """

    def __init__(self, space: OrderSpace, cqap: Cqap, keys: Mapping[str, frozenset[str]]) -> None:
        self._space = space
        self._rules = [(keys[e.label], e.variables) for e in cqap.hypergraph.edges if keys.get(e.label) is not None]
        self._closures: dict[int, int] = {}
        closed = [
            Edge(edge.label, space.measure.covers.variables(self.closure(mask)))
            for edge, mask in zip(cqap.hypergraph.edges, space.edges, strict=True)
        ]
        self._measure = Measure(Hypergraph(tuple(closed)))

    @property
    def solved(self) -> int:
        """How many bags have been covered."""
        return self._measure.covers.solved

    def closure(self, schema: int) -> int:
        """The blocks that a set of blocks determines."""
        known = self._closures.get(schema)
        if known is None:
            covers, blocks = self._space.measure.covers, self._space.blocks
            fixed = {variable for name in covers.variables(schema) for variable in blocks[name]}
            before = -1
            while before != len(fixed):
                before = len(fixed)
                fixed.update(*(determined for key, determined in self._rules if key <= fixed))
            known = covers.mask(name for name in covers.names if fixed.issuperset(blocks[name]))
            self._closures[schema] = known
        return known

    def number(self, bag: int) -> Fraction:
        return self._measure.covers.number(bag)

    def dynamic(self, bag: int, fixed: Iterable[int]) -> Fraction:
        return self._measure.largest(bag, [self.closure(schema) for schema in fixed])


def _blocks(cqap: Cqap, keys: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    """Variables of the same edges and tier, by the least name among them; those of keys come first."""
    identifying = frozenset().union(*keys.values())
    groups: dict[tuple[frozenset[str], int], list[str]] = defaultdict(list)
    for variable in sorted(cqap.variables):
        groups[cqap.hypergraph.edges_of(variable), cqap.tier(variable)].append(variable)
    return {
        members[0]: tuple(sorted(members, key=lambda variable: (variable not in identifying, variable)))
        for members in groups.values()
    }
