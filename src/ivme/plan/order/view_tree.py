"""View trees: what is materialised, one view per variable of an order (source 003, section 4.1, Figure 4.2).

`view_trees` is τ(ω), exactly the source's trees. At each variable X there is a view V_X over X and its dependency
set, the join of the children; if X has siblings, an auxiliary view V'_X sums X away, so that siblings join on few
variables. A bound root gets an auxiliary view as well: it is the component's answer, which the source leaves to
the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ivme.plan.order.variable_order import OrderNode, VariableOrder
from ivme.structure.hypergraph import ORDERED, Cqap


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node of a view tree: a view, an auxiliary view, an atom or an indicator projection.

    `variable` is the variable of the order at which a view or auxiliary view was made; `label` the edge of an atom
    or indicator. `atoms` are the labels of the atoms below, and `indicators` the indicator projections.
    """

    kind: str
    schema: tuple[str, ...]
    variable: str | None = None
    label: str | None = None
    children: tuple[ViewNode, ...] = ()
    atoms: tuple[str, ...] = field(init=False, repr=False, compare=False)
    indicators: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        atoms = [self.label] if self.kind == "atom" and self.label is not None else []
        indicators = [(self.label, self.schema)] if self.kind == "indicator" and self.label is not None else []
        for child in self.children:
            atoms += child.atoms
            indicators += child.indicators
        object.__setattr__(self, "atoms", tuple(atoms))
        object.__setattr__(self, "indicators", tuple(indicators))

    @property
    def name(self) -> str:
        prefix = {"view": "V_", "auxiliary": "V'_", "atom": "", "indicator": "∃"}[self.kind]
        return f"{prefix}{self.variable or self.label}"

    def walk(self) -> Iterator[ViewNode]:
        """The nodes of the tree, parents first."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.schema)})"


def view_trees(order: VariableOrder, cqap: Cqap, schemas: Mapping[str, tuple[str, ...]]) -> tuple[ViewNode, ...]:
    """τ(ω): one view tree per component; `schemas` gives the variables of each atom in their written order."""
    nullary = tuple(ViewNode("atom", (), label=label) for label in order.nullary)
    trees = tuple(_tree(root, (), cqap.tier(root.variable) >= ORDERED, schemas) for root in order.roots)
    return trees + nullary


def _tree(node: OrderNode, path: tuple[str, ...], summed: bool, schemas: Mapping[str, tuple[str, ...]]) -> ViewNode:
    below = (*path, node.variable)
    siblings = len(node.children) + len(node.atoms) + len(node.indicators) > 1
    children = [_tree(child, below, siblings, schemas) for child in node.children]
    children += [ViewNode("atom", schemas[label], label=label) for label in node.atoms]
    for indicator in node.indicators:
        schema = tuple(variable for variable in schemas[indicator.label] if variable in indicator.variables)
        children.append(ViewNode("indicator", schema, label=indicator.label))
    schema = tuple(variable for variable in below if variable in node.bag)
    view = ViewNode("view", schema, variable=node.variable, children=tuple(children))
    if not summed:
        return view
    return ViewNode("auxiliary", tuple(v for v in schema if v != node.variable), node.variable, children=(view,))
