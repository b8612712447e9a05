"""Mark trees: join trees whose nodes tell good tuples from bad ones (source 002, section 3).

A node is a relation, a template, or the projection of a node below to the free variables. Its tuple is good if each
child has a good tuple that agrees with it on what the two share. Bound variables are left behind in *filters*, whose
nodes only say whether there is a partner; the nodes that are left hold free variables only, and their trees are read
from the top: whatever good tuple of a node goes with its parent is part of the answer, so that the delay is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ivme.plan.order.templates import Template, templates_of
from ivme.structure.hypergraph import Cqap, Edge, JoinTree
from ivme.structure.join_tree import hanging


@dataclass(frozen=True, slots=True)
class Relation:
    """An atom by its label, projected to the variables of a node."""

    label: str


@dataclass(frozen=True, slots=True)
class MarkNode:
    """A node of a mark tree. `base` is where its tuples come from; `filters` and `children` are what supports them.

    `filters` are never read, `children` are.
    """

    name: str
    schema: tuple[str, ...]
    base: Relation | Template | MarkNode
    filters: tuple[MarkNode, ...] = ()
    children: tuple[MarkNode, ...] = ()

    @property
    def supports(self) -> tuple[MarkNode, ...]:
        """The nodes below, filters first."""
        return self.filters + self.children

    def walk(self) -> Iterator[MarkNode]:
        """The nodes of the tree that are read, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        inner = str(self.base) if isinstance(self.base, MarkNode) else self.name
        below = ", ".join(map(str, self.supports))
        return f"{inner}({below})" if below else inner


@dataclass(frozen=True, slots=True)
class MarkForest:
    """The mark trees of a query: `roots` with those of their variables that are inputs, and the templates in them."""

    roots: tuple[tuple[MarkNode, tuple[str, ...]], ...]
    templates: tuple[Template, ...]

    def __str__(self) -> str:
        return ", ".join(str(root) for root, _ in self.roots)


def mark_forest(cqap: Cqap, schemas: Mapping[str, tuple[str, ...]]) -> MarkForest:
    """The mark trees of a fracture; `schemas` has the variables of its atoms in their order."""
    templates = templates_of(cqap, dict(schemas))
    nodes = [MarkNode(t.name, t.schema, t) for t in templates]
    absorbed = {label for t in templates for label, schema in t.generators if schema == schemas[label]}
    nodes += [MarkNode(label, s, Relation(label)) for label, s in schemas.items() if label not in absorbed]
    filtered = _grown(nodes, cqap.free, lambda node, below: replace(node, filters=below))
    lifted = [_lifted(node, cqap.free) for node in filtered]
    roots = _grown(lifted, cqap.input, lambda node, below: replace(node, children=below))
    return MarkForest(tuple((root, _common(root.schema, cqap.input)) for root in roots), templates)


def _grown(
    nodes: Sequence[MarkNode], top: frozenset[str], attach: Callable[[MarkNode, tuple[MarkNode, ...]], MarkNode]
) -> list[MarkNode]:
    """The nodes as join trees below a set of variables; `attach` hangs nodes below another."""
    named = {str(i): node for i, node in enumerate(nodes)}
    trees = hanging([Edge(name, frozenset(node.schema)) for name, node in named.items()], top)
    assert trees is not None, "templates make every schema a tree schema"

    def grown(tree: JoinTree) -> MarkNode:
        return attach(named[tree.label], tuple(grown(child) for child in tree.children))

    return [grown(tree) for tree in trees]


def _lifted(node: MarkNode, free: frozenset[str]) -> MarkNode:
    """What a node says about the free variables: the node itself, a relation with fewer columns, or a projection."""
    schema = _common(node.schema, free)
    if schema == node.schema:
        return node
    if isinstance(node.base, Relation) and not node.filters:
        return replace(node, schema=schema)
    return MarkNode(f"{node.name}[{','.join(schema)}]", schema, node)


def _common(schema: tuple[str, ...], variables: frozenset[str]) -> tuple[str, ...]:
    return tuple(variable for variable in schema if variable in variables)
