"""The shape of a query: its hypergraph, its access pattern, and the GYO reduction.

Nothing here knows about relations, columns or data. A `Cqap` is what classification, widths and variable orders
read of a query (source 003, sections 2.2 and 2.4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ivme.query.model import Query

INPUT, OUTPUT, ORDERED, BOUND = range(4)
"""The tiers of variables: in an access-top order none is above one of a lower tier."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A hyperedge: the variables of one atom, under a label that no other edge of the query has."""

    label: str
    variables: frozenset[str]

    def __str__(self) -> str:
        return f"{self.label}({', '.join(sorted(self.variables))})"


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """Hyperedges in the order of the query's atoms; two may have the same variables (003, Definition 2.9)."""

    edges: tuple[Edge, ...]
    vertices: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", frozenset().union(*[edge.variables for edge in self.edges]))
        labels = [edge.label for edge in self.edges]
        if len(set(labels)) < len(labels):
            raise ValueError(f"two edges share a label: {labels}")

    def edge(self, label: str) -> Edge:
        """The edge of that label; KeyError when there is none."""
        for edge in self.edges:
            if edge.label == label:
                return edge
        raise KeyError(label)

    def edges_of(self, variable: str) -> frozenset[str]:
        """The labels of the edges that contain the variable: atoms(X) in the source."""
        return frozenset([edge.label for edge in self.edges if variable in edge.variables])

    def neighbours(self, variables: Iterable[str]) -> frozenset[str]:
        """The vertices outside the set that share an edge with one inside it."""
        inside = frozenset(variables)
        return frozenset().union(*(edge.variables for edge in self.edges if edge.variables & inside)) - inside

    def components(self) -> tuple[Hypergraph, ...]:
        """The connected components, by their first edges; an edge without variables is one of its own."""
        groups = connected_edges(edge.variables for edge in self.edges)
        return tuple(Hypergraph(tuple(self.edges[index] for index in group)) for group in groups)


def connected_edges(schemas: Iterable[frozenset[str]]) -> list[list[int]]:
    """Group edges that share vertices, directly or through others; groups are ordered by their first edge."""
    groups: list[tuple[list[int], frozenset[str]]] = []
    for index, schema in enumerate(schemas):
        joined = [group for group in groups if group[1] & schema]
        groups = [group for group in groups if not group[1] & schema]
        members = sorted([index, *(member for group in joined for member in group[0])])
        groups.append((members, schema.union(*(group[1] for group in joined))))
    return sorted(members for members, _ in groups)


@dataclass(frozen=True, slots=True)
class Cqap:
    """The structure of a conjunctive query with free access patterns, Q(output | input).

    `ordered` are arguments of MIN, MAX and COUNT DISTINCT. They count as free, but lie below all other free
    variables in an order, so that each group finds its values under it. The three sets are disjoint.
    """

    hypergraph: Hypergraph
    output: frozenset[str]
    input: frozenset[str]
    ordered: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.output & self.input or self.ordered & (self.output | self.input):
            raise ValueError("a variable is in two of output, input and ordered")
        if not self.free <= self.variables:
            raise ValueError(f"free variables without an atom: {sorted(self.free - self.variables)}")

    @property
    def variables(self) -> frozenset[str]:
        return self.hypergraph.vertices

    @property
    def free(self) -> frozenset[str]:
        return self.output | self.input | self.ordered

    @property
    def bound(self) -> frozenset[str]:
        return self.variables - self.free

    def tier(self, variable: str) -> int:
        """0 for input, 1 for output, 2 for ordered, 3 for bound variables."""
        for tier, members in enumerate((self.input, self.output, self.ordered)):
            if variable in members:
                return tier
        return BOUND

    def restricted(self, hypergraph: Hypergraph) -> Cqap:
        """The same access pattern on a part of the query."""
        inside = hypergraph.vertices
        return Cqap(hypergraph, self.output & inside, self.input & inside, self.ordered & inside)

    def __str__(self) -> str:
        def listed(names: Iterable[str]) -> str:
            return ", ".join(sorted(names)) or "."

        body = ", ".join(map(str, self.hypergraph.edges))
        return f"Q({listed(self.output | self.ordered)} | {listed(self.input)}) = {body}"


def labels_of(query: Query) -> list[str]:
    """The labels of a query's atoms: the relation, or `R#1`, `R#2` by occurrence where it repeats."""
    total = Counter(atom.relation for atom in query.atoms)
    seen: Counter[str] = Counter()
    labels = []
    for atom in query.atoms:
        seen[atom.relation] += 1
        name = atom.relation
        labels.append(name if total[name] == 1 else f"{name}#{seen[name]}")
    return labels


def cqap_of(query: Query, ordered: frozenset[str] = frozenset()) -> Cqap:
    """The structure of a query. A relation that occurs twice gets the labels `R#1`, `R#2` by occurrence.

    Constants contribute no variables, and an atom over a closure is an edge like any other.
    """
    named = zip(labels_of(query), query.atoms, strict=True)
    edges = [Edge(label, frozenset(atom.variables)) for label, atom in named]
    output, given = frozenset(query.output), frozenset(query.input)
    return Cqap(Hypergraph(tuple(edges)), output, given, ordered - output - given)


@dataclass(frozen=True, slots=True)
class JoinTree:
    """A join tree: the edges of each variable are connected in it."""

    label: str
    children: tuple[JoinTree, ...] = ()

    def __str__(self) -> str:
        return self.label + (f"({', '.join(map(str, self.children))})" if self.children else "")


@dataclass(frozen=True, slots=True)
class Reduction:
    """What GYO leaves: a join tree for each component, or the trimmed edges that hold a cycle.

    `join_trees` is empty and `residue` is not if and only if the hypergraph is cyclic.
    """

    acyclic: bool
    join_trees: tuple[JoinTree, ...]
    residue: tuple[Edge, ...]

    @property
    def join_tree(self) -> JoinTree | None:
        """The join tree of a connected acyclic hypergraph."""
        return self.join_trees[0] if len(self.join_trees) == 1 else None


def gyo(hypergraph: Hypergraph) -> Reduction:
    """Remove vertices of a single edge, and edges within another, until nothing changes (003, section 4.1.3).

    Of edges that become equal the first stays. The rest of the outcome does not depend on the order of the steps.
    """
    names = sorted(hypergraph.vertices)
    bits = {name: 1 << position for position, name in enumerate(names)}
    parents, left = reduce_edges([sum(map(bits.__getitem__, edge.variables)) for edge in hypergraph.edges])
    labels = [edge.label for edge in hypergraph.edges]
    if left:
        trimmed = ((labels[i], frozenset(name for name in names if mask & bits[name])) for i, mask in left.items())
        return Reduction(False, (), tuple(Edge(label, variables) for label, variables in trimmed))
    return Reduction(True, _join_trees(parents, labels), ())


def reduce_edges(masks: Sequence[int]) -> tuple[dict[int, int | None], dict[int, int]]:
    """GYO on bitmasks: the parent of each removed edge (None for a root), and what is left of the others.

    Takes at most n rounds over n edges, two or three in practice, of at most n² bit operations.
    """
    left = dict(enumerate(masks))
    parents: dict[int, int | None] = {}
    while True:
        once = twice = 0
        for mask in left.values():
            twice |= once & mask
            once |= mask
        trimmed = sorted((-(mask & twice).bit_count(), index, mask & twice) for index, mask in left.items())
        kept: dict[int, int] = {}
        larger: list[int] = []
        size = 0
        for negative, index, mask in trimmed:
            if negative != size:
                larger, size = [*kept], negative
            around = mask if mask in kept else next((other for other in larger if mask & ~other == 0), None)
            if mask and around is None:
                kept[mask] = index
            else:
                parents[index] = kept[around] if mask and around is not None else None
        if len(kept) == len(left):
            return parents, {index: kept_mask for kept_mask, index in sorted(kept.items(), key=lambda item: item[1])}
        left = {index: mask for mask, index in kept.items()}


def _join_trees(parents: dict[int, int | None], labels: list[str]) -> tuple[JoinTree, ...]:
    def below(parent: int | None) -> tuple[JoinTree, ...]:
        children = sorted(index for index, above in parents.items() if above == parent)
        return tuple(JoinTree(labels[index], below(index)) for index in children)

    return below(None)
