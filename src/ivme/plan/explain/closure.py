"""The strategy `closure`: what is said about a view that is the transitive closure of a table of edges.

Such a view has no program: a closure engine keeps it (`ivme.closure`). N is the number of edges here. The bounds:

- any digraph, and an acyclic one: a row of n bits for each strongly connected component, so O(N^2) bits; a change
  recomputes at most all rows, each from those of its successors, so at most N unions of n bits. What it costs in fact
  is one union for each row that changes, and a search inside a component that loses an edge.
- undirected: Holm, de Lichtenberg and Thorup's forest, O(log^2 N) amortised for a change.

A node's row lists its descendants; where ancestors are requested, the rows are stored for the reversed edges.
"""

from __future__ import annotations

from ivme.errors import PlanError
from ivme.plan.explain.explanation import Explanation
from ivme.plan.explain.notes import without_parts
from ivme.plan.ir.exponent import Bound, bound
from ivme.plan.strategy.options import Options
from ivme.query.model import Query
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of

_REASONS = {
    "digraph": "reachability in any digraph: strongly connected components with a bit row of descendants each",
    "acyclic": "reachability in a digraph that promises to have no cycle: a bit row of descendants for each node",
    "undirected": "connectivity: a spanning forest, with replacement edges found by levels",
}


def explain_closure(query: Query, options: Options) -> Explanation:
    """The explanation of a view that is a closure and nothing else; PlanError for options that it cannot have."""
    if options.strategy not in (None, "closure"):
        raise PlanError(
            f"strategy {options.strategy!r} cannot maintain a closure: reachability needs its own strategy, 'closure'"
        )
    if options.semantics == "ring":
        raise PlanError("a closure cannot be in ring mode: an edge is there or not; use bag or set semantics")
    preprocessing, update, delay, space = _bounds(options.graph)
    return Explanation(
        query=query,
        query_class=f"closure/{options.graph}",
        strategy="closure",
        reason=_REASONS[options.graph],
        static_width=None,
        dynamic_width=None,
        preprocessing=preprocessing,
        update=update,
        delay=delay,
        space=space,
        lower_bound=None,
        fracture=fracture(cqap_of(query)),
        variable_orders=(),
        view_trees=(),
        plan=None,
        remarks=_notes(query, options),
        epsilon=None,
    )


def _bounds(graph: str) -> tuple[Bound, Bound, Bound, Bound]:
    if graph == "undirected":
        return bound(1, logs=1), bound(0, amortised=True, logs=2), bound(0, logs=1), bound(1, logs=1)
    return bound(2), bound(2), bound(0), bound(2)


def _notes(query: Query, options: Options) -> tuple[str, ...]:
    edges = query.atoms[0].relation
    found = [
        f"N counts the edges in {edges}; only a first insert and a last delete of an edge matter",
        "a node reaches itself if it lies on a cycle: paths have at least one edge",
    ]
    if options.graph == "digraph":
        found.append(
            "the update bound is the worst case: an edge between nodes that are connected anyway changes no row, and a "
            "change that does costs one union of rows, 64 nodes at a time, for each row that it changes"
        )
    elif options.graph == "acyclic":
        found.append("a batch that would close a cycle is refused, and the message names the cycle")
    else:
        found.append(f"each row of {edges} is an edge in both directions; rows with NULL at either end are not edges")
    if query.input and query.output and query.input[0] == query.atoms[0].terms[1]:
        found.append(
            "rows are stored for the reversed edges: the ancestors of a node are read in time linear in the answer"
        )
    found.append("no lower bound is claimed for closures")
    promises = [name for name in ("append_only", "static") if getattr(options, name)]
    if without_effect := [*without_parts(options), *promises]:
        found.append(f"{', '.join(without_effect)}: no effect on a closure")
    return tuple(found)
