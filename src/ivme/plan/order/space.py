"""The space of access-top orders of one component, on bitmasks.

In any variable order the subtree of a variable is a connected set S of variables, and its dependency set is all
neighbours of S. So the price of putting x on top of S depends on S and x alone, and the space of all orders has
a state for each connected set that can hang below an access-top prefix. Variables with the same edges, the same tier
and the same place in all dependencies are one *block*: a chain of them has the widths of one of them, so the search
never needs to part them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from ivme.budget import spend
from ivme.plan.order.twins import hosts_of, twins_of
from ivme.plan.order.widths import Joined, Measure
from ivme.structure.dependencies import Dependencies, Dependency
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph
from ivme.structure.width import bits_of

_NOTHING = Dependencies()

UNKNOWN_ROWS = 1000
"""The size that a table is taken to have when nothing is known about any table of the query."""


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The price of one variable on top of a connected set: what its view costs whatever the order below is.

    `view` is what the view joins; `indicators` are the schemas that this variable adds. `work` estimates the rows that
    updates touch at this view, and `size` counts the columns of the view.
    """

    bag: int
    static: Fraction
    dynamic: Fraction
    view: Joined
    indicators: tuple[int, ...]
    work: int
    size: int


class OrderSpace:
    """Blocks, neighbourhoods and prices of one component; every answer is remembered."""

    def __init__(
        self,
        cqap: Cqap,
        sizes: Mapping[str, int],
        static: frozenset[str] = frozenset(),
        dependencies: Dependencies = _NOTHING,
    ) -> None:
        dependencies = _telling(cqap, dependencies)
        self.blocks = _blocks(cqap, dependencies)
        edges = cqap.hypergraph.edges
        self.changing = [edge.label not in static for edge in edges]
        merged = [Edge(edge.label, edge.variables.intersection(self.blocks)) for edge in edges]
        self.measure = Measure(Hypergraph(tuple(merged)), _merged(dependencies, self.blocks, cqap))
        self.names = self.measure.covers.names
        self.edges = self.measure.covers.edges
        self.everything = (1 << len(self.names)) - 1
        self.tiers = {1 << position: cqap.tier(name) for position, name in enumerate(self.names)}
        everywhere = self.measure.joined(range(len(edges)))
        self.wide = [everywhere.closure(edge) for edge in self.edges]
        self.depends = self.wide != [*self.edges]
        default = max(sizes.values(), default=UNKNOWN_ROWS)
        self.rows = [max(1, sizes.get(edge.label, self._prior(i, default))) for i, edge in enumerate(edges)]
        self._adjacent = {bit: self._around(bit) for bit in self.tiers}
        kinds = {1 << i: (cqap.tier(name), len(self.blocks[name])) for i, name in enumerate(self.names)}
        self._hosts = {} if dependencies.all else hosts_of(self.edges, kinds)
        self._twins = (
            {} if dependencies.all else twins_of(self.edges, [*zip(self.changing, self.rows, strict=True)], kinds)
        )
        self._steps: dict[tuple[int, int], SearchStep] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._joins: dict[int, int] = {0: 1}

    @property
    def spent(self) -> int:
        """How many pairs of an edge and a step, a bag to cover or a join to size have been looked at so far: what a
        search is budgeted by."""
        return (len(self._steps) + len(self._joins) + self.measure.covers.solved) * len(self.edges)

    def _prior(self, index: int, rows: int) -> int:
        """How many rows a table is taken to have: fewer than those of a table whose rows determine its own."""
        mine = self.wide[index]
        larger = any(not mine & ~other and other & ~mine for other in self.wide)
        return max(1, isqrt(rows)) if larger and self.depends else rows

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
        """The variables that may be on top of a set: those of the lowest tier in it. Satellites come after their hosts,
        and of twins one is enough, if all that the exchange moves is in the set."""
        bits = bits_of(inside)
        lowest = min(self.tiers[bit] for bit in bits)
        tier = sum(bit for bit in bits if self.tiers[bit] == lowest)
        return [bit for bit in bits if bit & tier and not self._is_needless(bit, inside, tier)]

    def _is_needless(self, bit: int, inside: int, tier: int) -> bool:
        host = self._hosts.get(bit, 0) & tier
        if host and (self._hosts.get(host) != bit or host < bit):
            return True
        return any(not moved & ~inside for moved in self._twins.get(bit, ()))

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
        view = self.measure.joined(below, placed.items())
        changed = [index for index in below if self.changing[index]]
        work = sum(
            self.join_size(bag & ~view.closure(self.edges[index])) * (self.rows[index] if self.depends else 1)
            for index in changed
        )
        size = sum(len(self.blocks[name]) for name in self.measure.covers.variables(bag))
        return SearchStep(bag, view.number(bag), view.dynamic(bag, fixed), view, indicators, work, size)

    def join_size(self, variables: int) -> int:
        """The least product of table sizes over integral covers of a set of variables; an edge covers what it
        determines."""
        known = self._joins.get(variables)
        if known is None:
            spend(1 + len(self.edges) // 4)
            lowest = variables & -variables
            sizes = (
                rows * self.join_size(variables & ~edge)
                for edge, rows in zip(self.wide, self.rows, strict=True)
                if edge & lowest
            )
            known = self._joins[variables] = min(sizes)
        return known


def _telling(cqap: Cqap, dependencies: Dependencies) -> Dependencies:
    """The dependencies that tell variables apart, one for each atom and what it is given.

    Variables of the same edges are fixed and covered together anyway, so that one determines another says nothing.
    """
    found: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
    for each in dependencies.all:
        places = {cqap.hypergraph.edges_of(variable) for variable in each.given | each.determined}
        if not each.given or len(places) > 1:
            key = each.label, each.given
            found[key] = found.get(key, frozenset()) | each.determined
    return Dependencies(tuple(Dependency(label, given, determined) for (label, given), determined in found.items()))


def _blocks(cqap: Cqap, dependencies: Dependencies) -> dict[str, tuple[str, ...]]:
    """Variables of the same edges, tier and place in dependencies, by the least name among them."""
    groups: dict[tuple[frozenset[str], int, tuple[int, ...]], list[str]] = defaultdict(list)
    for variable in sorted(cqap.variables):
        place = tuple(2 * (variable in each.given) + (variable in each.determined) for each in dependencies.all)
        groups[cqap.hypergraph.edges_of(variable), cqap.tier(variable), place].append(variable)
    return {members[0]: tuple(members) for members in groups.values()}


def _merged(dependencies: Dependencies, blocks: Mapping[str, tuple[str, ...]], cqap: Cqap) -> Dependencies:
    """The dependencies between blocks, of the edges of the component."""
    labels = {edge.label for edge in cqap.hypergraph.edges}
    return Dependencies(
        tuple(
            Dependency(each.label, each.given.intersection(blocks), each.determined.intersection(blocks))
            for each in dependencies.all
            if each.label in labels
        )
    )
