"""The blueprint of strategy `request`: a request is evaluated when it comes, over tables and stored parts.

A request fixes the inputs, as a change fixes the variables of its row. What is left of the query is joined with it in
the same way, variable by variable (`elimination`): with nothing but tables, an update costs O(1), and a request N^w of
the residual query. Bound variables of one atom only are summed away in its leaf.

More bound variables may be `summed` away before requests come. What hangs together through these is a *part*: one view
over the variables that other atoms or requests know, maintained by a view tree of its own. An update then costs N^δ of
its part, and a request meets the view in place of the tables below it.

Where all rows of a request may take longer than what they are made of, they are read off pieces, one by one (`pieces`).

MIN, MAX, COUNT DISTINCT and the like are not sums: the values of their variable are found as rows are, with the
variable free, and each group is made of these when the request is answered. Each variable has stages of its own, since
together they would multiply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from ivme.plan.assemble.blueprint import Blueprint, Gathered, Leaf, Propagation, Reading
from ivme.plan.assemble.elimination import Residuals, Start
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.assemble.pieces import exponent_of, pieces_of, stages_from
from ivme.plan.assemble.tree_blueprint import part_rules
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.view_tree import ViewNode, view_trees
from ivme.query.model import Query
from ivme.structure.analysis import ordered_reads, ordered_variables
from ivme.structure.hypergraph import Cqap, Hypergraph, connected_edges


def summable(query: Query) -> tuple[str, ...]:
    """The bound variables that join and are not ordered: each may be summed away before requests come, or at them."""
    uses = [variable for atom in query.atoms for variable in atom.variables]
    needed = {*query.free, *ordered_variables(query)}
    return tuple(v for v in dict.fromkeys(uses) if uses.count(v) > 1 and v not in needed)


def parts_of(whole: Cqap, summed: frozenset[str], *, filtered: bool = False) -> tuple[Cqap, ...]:
    """The parts of several atoms that hang together through the variables that are summed away; outside of a part the
    others are known, and within it only those. If they are to be `filtered`, atoms over known variables of a part alone
    belong to it, so that it has no more tuples than these."""
    edges = whole.hypergraph.edges
    groups = [group for group in connected_edges(edge.variables & summed for edge in edges) if len(group) > 1]
    taken = {number for group in groups for number in group}
    found = []
    for group in groups:
        inside = frozenset().union(*(edges[number].variables for number in group)) - summed
        more = [i for i, edge in enumerate(edges) if filtered and i not in taken and edge.variables <= inside]
        taken.update(more)
        graph = Hypergraph(tuple(edges[number] for number in sorted([*group, *more])))
        found.append(Cqap(graph, _known(whole, graph, summed), frozenset()))
    return tuple(found)


def _known(whole: Cqap, part: Hypergraph, summed: frozenset[str]) -> frozenset[str]:
    """The variables of a part that are free, or that another atom or a request joins on."""
    edges = whole.hypergraph.edges
    private = {v for v in part.vertices - whole.free if sum(v in edge.variables for edge in edges) == 1}
    return part.vertices - summed - private


def part_trees(part: Cqap, order: VariableOrder, leaves: Leaves) -> Iterator[ViewNode]:
    """The view trees of a part below the variables that are known outside: what a request joins with."""
    for root in view_trees(order, part, leaves.schemas):
        yield from _below(root, part.output)


def _below(tree: ViewNode, known: frozenset[str]) -> Iterator[ViewNode]:
    if tree.kind == "indicator":
        return
    if tree.variable in known:
        for child in tree.children:
            yield from _below(child, known)
    elif tree.kind == "view":
        schema = tuple(variable for variable in tree.schema if variable != tree.variable)
        yield ViewNode("auxiliary", schema, tree.variable, children=(tree,))
    else:
        yield tree


def request_blueprint(query: Query, leaves: Leaves, parts: tuple[ViewNode, ...] = ()) -> Blueprint:
    """Leaves and parts, with the indexes that requests and given rows need; `leaves` are those of the unbroken query,
    and `parts` the trees that maintain what is stored."""
    inside = frozenset(label for tree in parts for label in tree.atoms)
    climbs, definitions, views = part_rules(parts, leaves)
    residuals, inputs = Residuals(leaves), frozenset(query.input)

    def reading(*more: str) -> Reading:
        outside = (leaf for leaf in _summed_leaves(query, leaves, more) if leaf.label not in inside)
        nodes, kept = (*outside, *views), (*query.free, *more)
        probe = stages_from(residuals, nodes, frozenset(query.free), kept)
        whole = Reading((), (), answer=stages_from(residuals, nodes, inputs, kept), probe=probe)
        least = answer_exponent(residuals, whole, inputs, kept)
        if more or least <= 1:
            return whole
        lazy = Reading((), (), probe=probe, pieces=pieces_of(residuals, nodes, inputs, frozenset(query.output)))
        return lazy if answer_exponent(residuals, lazy, inputs, kept) < least else whole

    gathered = tuple(Gathered(each, ordered_reads(query, each), reading(each)) for each in ordered_variables(query))
    stored = [Propagation(Leaf(label, source.schema), ()) for label, source in leaves.sources if label not in inside]
    places = {label: place for place, (label, _) in enumerate(leaves.sources)}
    ordered = sorted([*climbs, *stored], key=lambda each: (places[each.use.label], not isinstance(each.use, Leaf)))
    return Blueprint(leaves, tuple(ordered), definitions, Reading((), ()), branches=(reading(),), gathered=gathered)


def answer_exponent(residuals: Residuals, reading: Reading, inputs: frozenset[str], kept: Iterable[str]) -> Fraction:
    """What a request takes until it has all rows, or the first of them and what the others are read off."""
    if reading.pieces:
        return exponent_of(residuals, reading.pieces, inputs)
    return residuals.exponent(reading.answer, Start(inputs), frozenset(kept))


def _summed_leaves(query: Query, leaves: Leaves, more: Iterable[str]) -> tuple[Leaf, ...]:
    """The atoms, each summed to the variables that join, are free, or are needed besides."""
    uses = Counter(variable for _, source in leaves.sources for variable in source.schema)
    kept = {variable for variable, number in uses.items() if number > 1}.union(query.free, more)
    return tuple(Leaf(label, tuple(v for v in source.schema if v in kept)) for label, source in leaves.sources)
