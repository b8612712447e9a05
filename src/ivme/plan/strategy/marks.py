"""Strategy `marks`: which tuples have partners, and nothing about how many (source 002).

Counting trees pay for every duplicate: a change of a multiplicity changes all multiplicities above it. Marks only learn
of the first partner that comes and of the last that goes, so that n inserts into an acyclic schema cost O(n) in all,
hierarchical or not (Theorem 3.2): every tuple loses each of its marks once. n deletes from a full database cost as
little. A single update, among inserts and deletes in any order, costs at most O(N) (Theorem 3.1).

So marks answer queries in which multiplicities do not matter, and full joins, where the multiplicity of a row is
the product of those of its tuples; bound variables that one relation alone has are summed away in its leaf. Aggregates
over bound variables need all multiplicities and never use marks.

With templates the same holds of the tuples of the templates, at most N^w, where w is the least static width of an
access-top order: n inserts cost O(n^w), each O(n^(w-1)) amortised.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.assemble.mark_blueprint import Marks, mark_blueprint
from ivme.plan.assemble.mark_changes import followed_marks
from ivme.plan.order.mark_tree import MarkForest, mark_forest
from ivme.query.model import Query
from ivme.structure.analysis import Analysis
from ivme.structure.fracture import Fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph


@dataclass(frozen=True, slots=True)
class MarkPlan:
    """The mark trees of a query and their blueprints; `bag` is whether rows have multiplicities."""

    forest: MarkForest
    fracture: Fracture
    leaves: Leaves
    bag: bool
    blueprint: Blueprint
    followed: Blueprint


def plan_marks(analysis: Analysis) -> MarkPlan:
    """The mark trees of a query; PlanError if marks cannot tell its answer."""
    query = analysis.query
    refused = unmarkable(query)
    if refused:
        raise PlanError(f"strategy 'marks' cannot maintain this view: {refused}")
    broken = analysis.plain.fracture
    leaves = leaves_of(query, broken)
    bag = not query.distinct
    whole, schemas = broken.whole, leaves.schemas
    if bag:
        schemas = {label: tuple(v for v in schema if v in whole.free) for label, schema in schemas.items()}
        edges = tuple(Edge(label, frozenset(schema)) for label, schema in schemas.items())
        whole = Cqap(Hypergraph(edges), whole.output, whole.input)
    forest = mark_forest(whole, schemas)
    blueprint = mark_blueprint(forest, leaves, bag=bag)
    return MarkPlan(forest, broken, leaves, bag, blueprint, followed_marks(blueprint, Marks(forest, leaves), bag=bag))


def unmarkable(query: Query) -> str:
    """Why marks cannot tell the answer of a query; nothing if they can."""
    if query.aggregates:
        listed = ", ".join(map(str, query.aggregates))
        return f"{listed} needs every multiplicity, and marks only know whether there is a partner"
    if query.distinct:
        return ""
    joined = [v for v in query.bound if sum(v in atom.variables for atom in query.atoms) > 1]
    if not joined:
        return ""
    return (
        f"it joins on {', '.join(joined)}, not in the result: the multiplicity of a row is a sum, which marks do "
        "not keep; ask for SELECT DISTINCT or semantics='set', or for all variables that are joined on"
    )


def only_grows(query: Query) -> bool:
    """Whether no table of the query that changes ever loses a row."""
    return all(table.append_only or table.static for table in query.tables)
