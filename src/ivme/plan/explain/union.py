"""What is said about a union: a block that stores nothing."""

from __future__ import annotations

from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir.exponent import bound
from ivme.query.model import Query
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def explain_union(shape: Query) -> Explanation:
    """The explanation of a union whose rows are those of `shape`."""
    return Explanation(
        query=shape,
        query_class="union",
        strategy="union",
        reason="UNION ALL passes the rows of its branches on as they change, and stores none",
        static_width=None,
        dynamic_width=None,
        preprocessing=bound(0),
        update=bound(0),
        delay=bound(0),
        space=bound(0),
        lower_bound=None,
        fracture=fracture(cqap_of(shape)),
        variable_orders=(),
        view_trees=(),
        plan=None,
        remarks=(),
        epsilon=None,
    )
