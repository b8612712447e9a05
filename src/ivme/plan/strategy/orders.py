"""The variable order that a strategy follows, found once for each structure."""

from __future__ import annotations

from typing import cast

from ivme.plan.assemble.leaves import Leaves
from ivme.plan.order.search import OrderChoice, best_order
from ivme.query.model import Query
from ivme.structure.analysis import Analysis
from ivme.structure.hypergraph import Cqap


def order_for(analysis: Analysis, cqap: Cqap, leaves: Leaves) -> OrderChoice:
    """The best order; ties are broken by declared table sizes, and where keys hold by those that tables have now."""
    query = analysis.query
    now = analysis.rows if leaves.dependencies else {}
    names = {edge.label: leaves.source(edge.label).atom.relation for edge in cqap.hypergraph.edges}
    known = {label: query.table(name).rows or now.get(name) for label, name in names.items()}
    sizes = {label: rows for label, rows in known.items() if rows is not None}
    static = static_labels(query, leaves)
    asked = cqap, frozenset(sizes.items()), static, leaves.dependencies
    if asked not in analysis.found:
        analysis.found[asked] = best_order(cqap, sizes, static=static, dependencies=leaves.dependencies)
    return cast(OrderChoice, analysis.found[asked])


def static_labels(query: Query, leaves: Leaves) -> frozenset[str]:
    """The labels of the atoms over static tables: constants to the planner."""
    return frozenset(label for label, source in leaves.sources if query.table(source.atom.relation).static)
