"""Templates: relations that make a schema a tree schema, and what fills them (source 002, section 4).

A cyclic schema, or one whose output no join tree can hold on top, is treefied by the bags of an access-top variable
order: together with them the schema is acyclic, also with its free variables as a further relation. A bag that no
relation contains is a template.

Its generators are the projections of all relations to its variables, and its generator tree is one worst-case optimal
join over them. The binary trees of the source store up to N² tuples for a triangle; this join makes at most N^ρ*, its
edge cover number, over any number of inserts: 3/2 for a triangle. A projection counts the rows behind it, so that a
template tuple loses its last derivation exactly when one of the counts reaches zero (erratum 13). Generators read all
rows, good or bad.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ivme.plan.order.search import best_order
from ivme.structure.classify import is_free_connex
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph, connected_edges
from ivme.structure.width import EdgeCovers


@dataclass(frozen=True, slots=True)
class Template:
    """A template and its generators: the labels of relations, each with the variables that it is projected to."""

    name: str
    schema: tuple[str, ...]
    generators: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        body = " ⋈ ".join(f"∃{label}({', '.join(schema)})" for label, schema in self.generators)
        return f"{self.name}({', '.join(self.schema)}) = {body}"


def templates_of(cqap: Cqap, schemas: dict[str, tuple[str, ...]]) -> tuple[Template, ...]:
    """The templates that a fracture needs; none if its join tree can be read as it is.

    `schemas` has the variables of each relation in their order. The bags are those of an order of least static width
    w, so that the templates hold at most N^w tuples.
    """
    if is_free_connex(cqap):
        return ()
    constants = frozenset(edge.label for edge in cqap.hypergraph.edges)
    chosen = best_order(cqap, static=constants)
    bags = _maximal(cqap, {node.bag for node in chosen.order.walk()})
    wanted = _without_products(cqap, bags, chosen.widths.static)
    prefix = "template "
    while any(label.startswith(prefix) for label in schemas):
        prefix += "'"
    return tuple(_template(f"{prefix}{i + 1}", bag, schemas) for i, bag in enumerate(wanted))


def _maximal(cqap: Cqap, bags: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The bags that lie within no relation and no other bag."""
    found = set(bags)
    edges = [edge.variables for edge in cqap.hypergraph.edges]
    kept = [bag for bag in found if not any(bag <= edge for edge in edges) and not any(bag < other for other in found)]
    return sorted(kept, key=sorted)


def _without_products(cqap: Cqap, bags: list[frozenset[str]], width: Fraction) -> list[frozenset[str]]:
    """Merges bags whose generators have nothing in common: such a template is a product, large whatever the data.

    In a cycle of six relations {A, C, D} would be all A with all pairs of C and D; {A, B, C, D} is a join that is as
    large only in the worst case. Merged bags are no wider than the widest one.
    """
    covers = EdgeCovers(cqap.hypergraph)
    for bag in bags:
        if _is_linked(cqap, bag):
            continue
        for other in sorted(bags, key=len):
            merged = bag | other
            rest = _maximal(cqap, [*(each for each in bags if each not in (bag, other)), merged])
            fits = covers.number(covers.mask(merged)) <= width and _is_linked(cqap, merged)
            if other != bag and fits and _treefies(cqap, rest):
                return _without_products(cqap, rest, width)
    return bags


def _is_linked(cqap: Cqap, bag: frozenset[str]) -> bool:
    """Whether the projections of the relations to a bag are connected."""
    return len(connected_edges(edge.variables & bag for edge in cqap.hypergraph.edges if edge.variables & bag)) == 1


def _treefies(cqap: Cqap, bags: list[frozenset[str]]) -> bool:
    """Whether the schema with these bags is a tree schema, also with its free variables on top."""
    edges = cqap.hypergraph.edges
    label = "".join(edge.label for edge in edges)
    more = tuple(Edge(f"{label}{i}", bag) for i, bag in enumerate(bags))
    return is_free_connex(Cqap(Hypergraph((*edges, *more)), cqap.output, cqap.input))


def _template(name: str, bag: frozenset[str], schemas: dict[str, tuple[str, ...]]) -> Template:
    """Relations inside the bag generate it whole; of the others the projections that no other one contains."""
    inside = {label: schema for label, schema in schemas.items() if schema and bag.issuperset(schema)}
    kept: list[tuple[str, tuple[str, ...]]] = []
    for label, schema in sorted(schemas.items(), key=lambda item: -len(bag.intersection(item[1]))):
        part = tuple(variable for variable in schema if variable in bag)
        if label in inside or (part and not any(set(part) <= set(other) for _, other in [*kept, *inside.items()])):
            kept.append((label, part))
    position = list(schemas)
    kept.sort(key=lambda generator: position.index(generator[0]))
    return Template(name, tuple(sorted(bag)), tuple(kept))
