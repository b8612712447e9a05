"""The blueprint of strategy `request`: only the tables are stored, and a request is evaluated when it comes.

A request fixes the inputs, as a change fixes the variables of its row. What is left of the query is joined with it in
the same way, variable by variable (`elimination`): an update costs O(1), and a request N^w of the residual query
(PLANS.md, section 2). Bound variables of one atom only are summed away in its leaf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ivme.plan.assemble.blueprint import Blueprint, Leaf, Propagation, Reading
from ivme.plan.assemble.elimination import Residuals, Stages, Start
from ivme.plan.assemble.leaves import Leaves
from ivme.query.model import Query
from ivme.structure.hypergraph import connected_edges


def request_blueprint(query: Query, leaves: Leaves) -> Blueprint:
    """Leaves, with the indexes that requests and given rows need; `leaves` are those of the unbroken query."""
    nodes = _summed(query, leaves)
    residuals = Residuals(leaves)
    reading = Reading(
        (),
        (),
        answer=_stages(residuals, nodes, frozenset(query.input), query.free),
        probe=_stages(residuals, nodes, frozenset(query.free), query.free),
    )
    uses = [Leaf(label, source.schema) for label, source in leaves.sources]
    nothing = Reading((), ())
    return Blueprint(leaves, tuple(Propagation(use, ()) for use in uses), (), nothing, branches=(reading,))


def _summed(query: Query, leaves: Leaves) -> tuple[Leaf, ...]:
    """The atoms, each summed to the variables that join or are free."""
    uses = Counter(variable for _, source in leaves.sources for variable in source.schema)
    kept = {variable for variable, number in uses.items() if number > 1}.union(query.free)
    return tuple(Leaf(label, tuple(v for v in source.schema if v in kept)) for label, source in leaves.sources)


def _stages(residuals: Residuals, nodes: tuple[Leaf, ...], known: frozenset[str], kept: Iterable[str]) -> Stages:
    """One stage for each part that shares nothing but what is known, those without outputs first; or better ones."""
    groups = connected_edges(frozenset(node.schema) - known for node in nodes)
    wanted = frozenset(kept)
    parts = [tuple(nodes[i] for i in group) for group in groups]
    parts.sort(key=lambda part: any(wanted.intersection(leaf.schema) - known for leaf in part))
    return residuals.eliminated(tuple(parts), Start(known), wanted)
