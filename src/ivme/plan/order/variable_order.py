"""Variable orders: the logical plans that view trees follow (source 003, sections 2.4, 4.1 and 5.2.1).

A variable order is a forest over the variables of a fracture such that the variables of each atom lie on one
path from a root. It is made by `order_of`, which checks it and fills in dependency sets and atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ivme.errors import PlanError
from ivme.structure.classify import is_hierarchical
from ivme.structure.hypergraph import Cqap, Hypergraph


@dataclass(frozen=True, slots=True)
class Indicator:
    """An indicator projection: 1 on the tuples over `variables` that the relation of edge `label` contains."""

    label: str
    variables: frozenset[str]

    def __str__(self) -> str:
        return f"∃{self.label}({', '.join(sorted(self.variables))})"


@dataclass(frozen=True, slots=True)
class OrderNode:
    """A variable, the atoms whose lowest variable it is, and the indicators placed under it.

    `dependency` holds the ancestors that share an atom with a variable of the subtree; `subtree_atoms` and
    `subtree_indicators` are the base atoms and indicators at and below this variable.
    """

    variable: str
    children: tuple[OrderNode, ...]
    atoms: tuple[str, ...]
    dependency: frozenset[str]
    indicators: tuple[Indicator, ...] = ()
    subtree_atoms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    subtree_indicators: tuple[Indicator, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        atoms, indicators = [*self.atoms], [*self.indicators]
        for child in self.children:
            atoms += child.subtree_atoms
            indicators += child.subtree_indicators
        object.__setattr__(self, "subtree_atoms", tuple(atoms))
        object.__setattr__(self, "subtree_indicators", tuple(indicators))

    @property
    def bag(self) -> frozenset[str]:
        """The schema of the view at this variable."""
        return self.dependency | {self.variable}

    def walk(self) -> Iterator[OrderNode]:
        """The nodes of the subtree, parents before children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


@dataclass(frozen=True, slots=True)
class VariableOrder:
    """A forest of variables for a whole fracture; `nullary` labels the edges that have no variables."""

    roots: tuple[OrderNode, ...]
    nullary: tuple[str, ...] = ()

    def walk(self) -> Iterator[OrderNode]:
        """All nodes, parents before children."""
        for root in self.roots:
            yield from root.walk()

    def node(self, variable: str) -> OrderNode:
        """The node of a variable; KeyError when the order has none."""
        for node in self.walk():
            if node.variable == variable:
                return node
        raise KeyError(variable)

    def parents(self) -> dict[str, str | None]:
        """The parent of each variable, None for roots, parents before children."""
        above: dict[str, str | None] = {root.variable: None for root in self.roots}
        for node in self.walk():
            above.update({child.variable: node.variable for child in node.children})
        return above

    def __str__(self) -> str:
        lines = [line for root in self.roots for line in _drawn(root)]
        return "\n".join([*lines, *self.nullary])


def _drawn(node: OrderNode) -> list[str]:
    below = ", ".join([*node.atoms, *map(str, node.indicators)])
    lines = [f"{node.variable} {{{', '.join(sorted(node.dependency))}}}" + (f" {below}" if below else "")]
    for child in node.children:
        last = child is node.children[-1]
        first, *rest = _drawn(child)
        lines.append(("└─ " if last else "├─ ") + first)
        lines.extend(("   " if last else "│  ") + line for line in rest)
    return lines


def order_of(cqap: Cqap, parents: Mapping[str, str | None]) -> VariableOrder:
    """The variable order with these parents (None for a root); raises PlanError if it is not one for the query.

    Siblings come by tier, then by name. Dependency sets and atoms follow from the query (003, section 2.4).
    """
    paths = _paths(cqap, parents)
    atoms: dict[str, list[str]] = {variable: [] for variable in parents}
    for edge in cqap.hypergraph.edges:
        if edge.variables:
            lowest = max(edge.variables, key=lambda variable: len(paths[variable]))
            if not edge.variables.issubset(paths[lowest]):
                raise PlanError(f"the variables of {edge} are not on one path of the variable order")
            atoms[lowest].append(edge.label)
    children: dict[str | None, list[str]] = {None: [], **{variable: [] for variable in parents}}
    for variable in sorted(parents, key=lambda variable: (cqap.tier(variable), variable)):
        children[parents[variable]].append(variable)

    def grown(variable: str) -> tuple[OrderNode, frozenset[str]]:
        grown_children = [grown(child) for child in children[variable]]
        schemas = [cqap.hypergraph.edge(label).variables for label in atoms[variable]]
        seen = frozenset().union(*schemas, *(below for _, below in grown_children)) - {variable}
        node = OrderNode(variable, tuple(node for node, _ in grown_children), tuple(atoms[variable]), seen)
        return node, seen

    roots = tuple(grown(variable)[0] for variable in children[None])
    return VariableOrder(roots, tuple(edge.label for edge in cqap.hypergraph.edges if not edge.variables))


def _paths(cqap: Cqap, parents: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """The path from each variable up to its root, itself first."""
    if cqap.variables != set(parents):
        odd = ", ".join(sorted(cqap.variables.symmetric_difference(parents)))
        raise PlanError(f"a variable order has each variable of the query once; it is not so for {odd}")
    paths: dict[str, tuple[str, ...]] = {}
    for variable in parents:
        path = [variable]
        while (above := parents.get(path[-1])) is not None:
            if above in path or above not in parents:
                raise PlanError(f"the variable order is not a forest: {above} is above itself or unknown")
            path.append(above)
        paths[variable] = tuple(path)
    return paths


def is_valid(order: VariableOrder, cqap: Cqap) -> bool:
    """Whether it is a variable order of the query, with the right dependency sets and atoms (Definition 2.7)."""
    try:
        expected = order_of(cqap, order.parents())
    except PlanError:
        return False

    def facts(of: VariableOrder) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        return {node.variable: (node.dependency, frozenset(node.atoms)) for node in of.walk()}

    return facts(order) == facts(expected) and set(order.nullary) == set(expected.nullary)


def is_access_top(order: VariableOrder, cqap: Cqap) -> bool:
    """Whether no variable is above one of a lower tier: inputs, outputs, ordered, bound (Definition 2.15)."""
    return all(
        parent is None or cqap.tier(parent) <= cqap.tier(variable) for variable, parent in order.parents().items()
    )


def canonical(cqap: Cqap) -> VariableOrder:
    """The canonical order of a hierarchical query: each atom's variables are a path from a root (Definition 2.13).

    Variables of the same atoms come by tier, then by name, so the result is unique.
    """
    hypergraph = cqap.hypergraph
    if not is_hierarchical(hypergraph):
        raise PlanError("only a hierarchical query has a canonical variable order")
    homes = {variable: hypergraph.edges_of(variable) for variable in hypergraph.vertices}
    ranked = sorted(homes, key=lambda variable: (-len(homes[variable]), cqap.tier(variable), variable))
    parents: dict[str, str | None] = {}
    for position, variable in enumerate(ranked):
        above = [other for other in ranked[:position] if homes[variable] <= homes[other]]
        parents[variable] = above[-1] if above else None
    return order_of(cqap, parents)


def is_canonical(order: VariableOrder, hypergraph: Hypergraph) -> bool:
    """Whether the variables of each atom are exactly a path from a root to the atom's place."""

    def fits(node: OrderNode, path: frozenset[str]) -> bool:
        path |= {node.variable}
        return all(hypergraph.edge(label).variables == path for label in node.atoms) and all(
            fits(child, path) for child in node.children
        )

    return all(fits(root, frozenset()) for root in order.roots)


def acc_top(order: VariableOrder, cqap: Cqap) -> VariableOrder:
    """ACC-TOP: an access-top order of least widths from a canonical one (003, Figure 5.1, Proposition 5.4)."""
    parents: dict[str, str | None] = {}
    for root in order.roots:
        parents.update(acc_top_parents(root, cqap, None))
    return order_of(cqap, parents)


def acc_top_parents(node: OrderNode, cqap: Cqap, above: str | None) -> dict[str, str | None]:
    """ACC-TOP of one subtree, to be placed under a variable.

    Each variable, from the top, pulls the variables of lower tiers out of its subtree and puts them above itself
    as a chain, lower tiers first.
    """
    parents: dict[str, str | None] = {}

    def place(node: OrderNode, above: str | None, pulled: frozenset[str]) -> None:
        if node.variable not in pulled:
            tier = cqap.tier(node.variable)
            lower = [n.variable for n in node.walk() if cqap.tier(n.variable) < tier and n.variable not in pulled]
            for variable in [*sorted(lower, key=cqap.tier), node.variable]:
                parents[variable] = above
                above = variable
            pulled = pulled.union(lower)
        for child in node.children:
            place(child, above, pulled)

    place(node, above, frozenset())
    return parents
