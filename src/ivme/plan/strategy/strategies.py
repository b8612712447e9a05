"""The strategies that exist today, each a function from a query to a `Plan`.

- `view-tree`: view trees over the access-top order of the fracture with least (δ, w) (source 003, chapter 4).
- `factorised`: one view tree of the query as it stands, without fracture or indicators (F-IVM).
- `classical`: first-order deltas, by variable elimination; only the result is stored beside the tables.
- `recursive`: higher-order deltas; the part of each delta that does not depend on the change is stored too, and so
  on down (DBToaster); for the triangle count, all three pairwise views.
- `skew`: heavy and light parts of the relations, each maintained in its own way (sources 000 and 003, chapters 5, 6).
- `marks`: which tuples have partners, over a join tree, for sets and full joins (source 002).
- `request`: nothing but the tables is maintained; a request is evaluated when it comes, from its inputs. The chooser
  also has plans of its kind that maintain some parts.
- `recompute`: nothing but the tables is maintained; the views are rebuilt before the next read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce

from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import Blueprint, combine
from ivme.plan.assemble.changes import followed_result, followed_trees
from ivme.plan.assemble.delta_blueprint import classical_blueprint, recursive_blueprint, result_node
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.tree_blueprint import tree_blueprint
from ivme.plan.assemble.update_costs import same_costs
from ivme.plan.ir.exponent import Bound, bound
from ivme.plan.order.search import OrderChoice
from ivme.plan.order.variable_order import order_of
from ivme.plan.order.view_tree import ViewNode, view_trees
from ivme.plan.order.widths import widths
from ivme.plan.strategy.costed import costed_plan
from ivme.plan.strategy.marks import only_grows, plan_marks
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.orders import order_for, static_labels
from ivme.plan.strategy.request import request
from ivme.plan.strategy.skew.plans import skew
from ivme.query.model import Query
from ivme.structure.analysis import Analysis, Shape, analyse, ordered_reads
from ivme.structure.fracture import Fracture, unbroken


def view_tree(analysis: Analysis) -> Plan:
    """View trees over the best access-top orders."""
    return _tree_plan("view-tree", analysis, [_fractured(analysis, shape) for shape in analysis.shapes])


def recompute(analysis: Analysis) -> Plan:
    """The same trees, built from the tables when a row is requested."""
    return _tree_plan("recompute", analysis, [_fractured(analysis, shape) for shape in analysis.shapes], lazy=True)


def factorised(analysis: Analysis) -> Plan:
    """A view tree without fracture and indicators: inputs are free variables like others, on top."""
    return _tree_plan("factorised", analysis, [_unfractured(analysis, shape) for shape in analysis.shapes])


def classical(analysis: Analysis) -> Plan:
    """First-order deltas, each evaluated by variable elimination over the tables.

    Where keys hold, look-ups by them may make one join of everything cheaper than the stages that were found without
    them; the better of both is taken.
    """
    staged = _delta_plan("classical", analysis, classical_blueprint)
    if not staged.blueprint.leaves.dependencies:
        return staged
    at_once = _delta_plan("classical", analysis, partial(classical_blueprint, at_once=True))
    return min(at_once, staged, key=lambda plan: _at_half(plan.update))


def _at_half(cost: Bound) -> Fraction:
    return cost.exponent.at(Fraction(1, 2))


def recursive(analysis: Analysis) -> Plan:
    """Higher-order deltas over materialised parts."""
    return _delta_plan("recursive", analysis, recursive_blueprint)


def marks(analysis: Analysis) -> Plan:
    """Good tuples over a join tree; where no table that changes loses rows, n inserts cost what a build does."""
    drawn, query = plan_marks(analysis), analysis.query
    notes = (f"join tree: {drawn.forest}", *(f"template: {template}" for template in drawn.forest.templates))
    plan = costed_plan("marks", analysis, drawn.blueprint, drawn.followed, drawn.fracture, notes=notes)
    plan = replace(plan, marks=drawn.forest)
    if not only_grows(query):
        return plan
    update = bound(plan.preprocessing.exponent.at(Fraction(0)) - 1, amortised=True)
    return replace(plan, update=update, updates=same_costs(update, query))


STRATEGIES: Mapping[str, Callable[[Analysis, Options], Plan]] = {
    "view-tree": lambda analysis, _: view_tree(analysis),
    "marks": lambda analysis, _: marks(analysis),
    "skew": skew,
    "factorised": lambda analysis, _: factorised(analysis),
    "classical": lambda analysis, _: classical(analysis),
    "recursive": lambda analysis, _: recursive(analysis),
    "request": lambda analysis, _: request(analysis, view_tree(analysis)),
    "recompute": lambda analysis, _: recompute(analysis),
}
"""Every strategy whose programs run, by its name; later issues register theirs here."""


def plan_with(strategy: str, query: Query | Analysis, options: Options | None = None) -> Plan:
    """The plan of a strategy by its name; PlanError if the strategy has none for the query."""
    analysis = analyse(query) if isinstance(query, Query) else query
    if strategy not in STRATEGIES:
        if strategy == "closure":
            raise PlanError("strategy 'closure' is for views that are a closure and nothing else; let ivme choose")
        raise PlanError(f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}, closure")
    if any(atom.closure for atom in analysis.query.atoms):
        raise PlanError(f"strategy {strategy!r} cannot maintain a closure: reachability needs its own strategy")
    return STRATEGIES[strategy](analysis, Options() if options is None else options)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The order chosen for a query with one variable of MIN, MAX or COUNT DISTINCT, or none."""

    variable: str | None
    fracture: Fracture
    leaves: Leaves
    choice: OrderChoice


def _fractured(analysis: Analysis, shape: Shape) -> _Ordered:
    leaves = leaves_of(analysis.query, shape.fracture)
    return _Ordered(shape.variable, shape.fracture, leaves, order_for(analysis, shape.fracture.whole, leaves))


def _unfractured(analysis: Analysis, shape: Shape) -> _Ordered:
    query, whole = analysis.query, shape.cqap
    broken = unbroken(whole)
    leaves = leaves_of(query, broken)
    choice = order_for(analysis, whole, leaves)
    order = order_of(whole, choice.order.parents())
    reached = widths(order, whole, static_labels(query, leaves), leaves.dependencies)
    choice = replace(choice, order=order, widths=reached)
    return _Ordered(shape.variable, broken, leaves, choice)


def _tree_plan(strategy: str, analysis: Analysis, ordered: list[_Ordered], *, lazy: bool = False) -> Plan:
    blueprints: list[Blueprint] = []
    followed: list[Blueprint] = []
    trees: list[ViewNode] = []
    for i, each in enumerate(ordered):
        leaves, whole = each.leaves, each.fracture.whole
        roots = view_trees(each.choice.order, whole, leaves.schemas)
        suffix = f".{i + 1}" if i else ""
        blueprints.append(tree_blueprint(roots, whole, leaves, ordered_reads(analysis.query, each.variable), suffix))
        followed.append(followed_trees(blueprints[-1], roots, whole, leaves, suffix))
        trees += roots
    return costed_plan(
        strategy,
        analysis,
        replace(reduce(combine, blueprints), lazy=lazy),
        replace(reduce(combine, followed), lazy=lazy),
        ordered[0].fracture,
        widths=max(each.choice.widths for each in ordered),
        orders=tuple(each.choice.order for each in ordered),
        trees=tuple(trees),
        notes=tuple(dict.fromkeys(each.choice.note for each in ordered if not each.choice.exact)),
    )


def _delta_plan(strategy: str, analysis: Analysis, draw: Callable[[Query, Leaves, str | None], Blueprint]) -> Plan:
    query, broken = analysis.query, unbroken(analysis.plain.cqap)
    leaves = leaves_of(query, broken)
    variables: list[str | None] = [None, *(shape.variable for shape in analysis.ordered)]
    blueprints = [draw(query, leaves, variable) for variable in variables]
    followed = [
        followed_result(
            blueprint,
            result_node(query, leaves, variable),
            query.free if variable is None else (*query.free, variable),
            "" if variable is None else f"[{variable}]",
        )
        for blueprint, variable in zip(blueprints, variables, strict=True)
    ]
    return costed_plan(strategy, analysis, reduce(combine, blueprints), reduce(combine, followed), broken)
