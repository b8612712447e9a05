"""A plan of a blueprint: drafted for the site of its view, with the costs that are read off the draft."""

from __future__ import annotations

from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.draft import drafted
from ivme.plan.assemble.plan import Plan, costs
from ivme.plan.assemble.update_costs import table_costs, worst
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.order.widths import Widths
from ivme.structure.analysis import Analysis
from ivme.structure.fracture import Fracture


def costed_plan(
    strategy: str,
    analysis: Analysis,
    blueprint: Blueprint,
    followed: Blueprint,
    broken: Fracture,
    *,
    widths: Widths | None = None,
    orders: tuple[VariableOrder, ...] = (),
    trees: tuple[ViewNode, ...] = (),
    notes: tuple[str, ...] = (),
) -> Plan:
    """The plan of a strategy that has drawn its blueprint, and the one with the changes of the result."""
    draft = drafted(blueprint, analysis.site)
    preprocessing, delay, space = costs(draft.program)
    updates = table_costs(draft.program, analysis.query)
    return Plan(
        strategy,
        blueprint,
        followed,
        broken,
        preprocessing,
        worst(updates),
        delay,
        space,
        updates,
        widths,
        orders,
        trees,
        notes,
        draft=draft,
    )
