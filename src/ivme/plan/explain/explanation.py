"""The `Explanation` of a view: its class, its plan and what that guarantees, and the lower bound of any algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ivme.budget import SECONDS, limited
from ivme.plan.assemble.mark_blueprint import Marks
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.points import PlanCosts
from ivme.plan.assemble.update_costs import TableCost
from ivme.plan.explain.advice import advice
from ivme.plan.explain.draw import Box, map_boxes, mermaid, query_box, view_boxes
from ivme.plan.explain.lower_bound import LowerBound, lower_bound
from ivme.plan.explain.mark_draw import mark_boxes
from ivme.plan.explain.measurement import Measurement
from ivme.plan.explain.notes import notes
from ivme.plan.ir.codec import DERIVED
from ivme.plan.ir.exponent import Bound
from ivme.plan.ir.program import Program
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.strategy.choose import Choice
from ivme.plan.strategy.options import Epsilon, Options
from ivme.query.model import Query
from ivme.structure.analysis import Analysis
from ivme.structure.classify import Classification
from ivme.structure.fracture import Fracture


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """A block of a view: its text, the relations that it reads, and how it is maintained.

    `rows_in` bounds how many changed rows reach it when one row of a table changes: "1", or "N" where a join is before
    it, or "0" where its reader computes it; `rows_out` those that it passes on.
    """

    name: str
    text: str
    reads: tuple[str, ...]
    explanation: Explanation
    rows_in: str
    rows_out: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What ivme does for a view, and why; `str()` is for people, `to_dict()` for programs, `svg()` to look at.

    `strategy` and everything that follows from a plan are None if no strategy maintains the view yet. The widths are
    those of the query (source 003, Definition 4.12) under its keys, for any strategy; static tables count as
    constants. `epsilon` is the ε of the bounds: the requested one, or that of the plan. `cut`: planning stopped
    at its time limit, so that a better plan may exist. `costs` are the costs of a changed row of each table. `plan` is
    the plan that is explained. `blocks` are the parts of a SELECT with several blocks, the view itself last; the rest
    of the explanation is then about the last block. `measured` has counted operations, if they were requested.
    `candidates` are the costs of other plans, which may be better for another workload.
    """

    query: Query
    query_class: str
    strategy: str | None
    reason: str
    static_width: Fraction | None
    dynamic_width: Fraction | None
    preprocessing: Bound | None
    update: Bound | None
    delay: Bound | None
    space: Bound | None
    lower_bound: LowerBound | None
    fracture: Fracture
    variable_orders: tuple[VariableOrder, ...]
    view_trees: tuple[ViewNode, ...]
    plan: Plan | None
    remarks: tuple[str, ...]
    epsilon: Epsilon | None
    is_advised: bool = False
    cut: bool = False
    blocks: tuple[BlockExplanation, ...] = ()
    costs: tuple[TableCost, ...] = ()
    measured: Measurement | None = None
    candidates: tuple[PlanCosts, ...] = ()
    advised: list[tuple[str, ...]] = field(default_factory=list, compare=False, repr=False, metadata=DERIVED)
    """The advice, once the notes have been requested."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks on the plan, and advice on what to declare. The latter plans the query again under keys that its
        tables do not have, so it is found when it is read."""
        if not self.advised:
            with limited(SECONDS):
                given = advice(self.query, self.plan) if self.is_advised and self.plan is not None else ()
                self.advised.append(tuple(given))
        return tuple(dict.fromkeys((*self.remarks, *self.advised[0])))

    @property
    def program(self) -> Program | None:
        """The program of the plan, under the names of the query."""
        return None if self.plan is None else self.plan.program

    @property
    def mark_trees(self) -> tuple[Box, ...]:
        """The trees of strategy `marks`; empty for others."""
        if self.plan is None or self.plan.marks is None:
            return ()
        return mark_boxes(Marks(self.plan.marks, self.plan.blueprint.leaves), self.plan.program)

    @property
    def verdict(self) -> str:
        """What an update and a read cost, in a sentence or two."""
        from ivme.plan.explain.verdict import verdict

        return verdict(self)

    @property
    def updates(self) -> dict[str, Bound]:
        """The bound on the time that a changed row takes, for each table that is not static; `update` is the worst."""
        return {cost.table: cost.update for cost in self.costs}

    def __str__(self) -> str:
        from ivme.plan.explain.as_text import explanation_text

        told = explanation_text(self)
        return told if self.measured is None else f"{told}\n\n{self.measured}"

    def brief(self) -> str:
        """What the view costs, in a page: without the class, the lower bound and the trees that say why."""
        from ivme.plan.explain.as_text import brief_text

        told = brief_text(self)
        return told if self.measured is None else f"{told}\n\n{self.measured}"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values that `json.dumps` takes; docs/explain.md lists the keys."""
        from ivme.plan.explain.as_dict import explanation_dict

        return explanation_dict(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.brief())}</pre>{self.svg()}"

    def svg(self) -> str:
        """The view trees as a self-contained SVG picture."""
        from ivme.plan.explain.svg import svg

        return svg(self.picture(), str(self.query))

    def mermaid(self) -> str:
        """The view trees as Mermaid text."""
        return mermaid(self.picture())

    def picture(self) -> tuple[Box, ...]:
        """The boxes of `drawing` with lines between maps, too, where the strategy follows no trees."""
        is_flat = self.program is not None and not self.view_trees and not self.mark_trees
        return map_boxes(self.program) if is_flat and self.program is not None else self.drawing()

    def drawing(self) -> tuple[Box, ...]:
        """The boxes of the view or mark trees; of the maps, or the tables, where the strategy follows no trees."""
        if self.program is None:
            return (query_box(self.query, self.strategy),)
        return self.mark_trees or view_boxes(self.program, self.view_trees)


def explain_choice(
    query: Query,
    analysis: Analysis,
    choice: Choice,
    options: Options,
) -> Explanation:
    """The choice together with all that can be said about it.

    The class counts the variables of MIN, MAX and COUNT DISTINCT as free; the lower bound does not.
    """
    plan, widths = choice.plan, choice.widths
    classification, plain = analysis.classification, analysis.plain.classification
    return Explanation(
        query=query,
        query_class=_class(query, classification),
        strategy=None if plan is None else plan.strategy,
        reason=choice.reason,
        static_width=None if widths is None else widths.static,
        dynamic_width=None if widths is None else widths.dynamic,
        preprocessing=None if plan is None else plan.preprocessing,
        update=None if plan is None else plan.update,
        delay=None if plan is None else plan.delay,
        space=None if plan is None else plan.space,
        lower_bound=lower_bound(query, plain),
        fracture=analysis.plain.fracture,
        variable_orders=() if plan is None else plan.orders,
        view_trees=() if plan is None else plan.trees,
        plan=plan,
        remarks=notes(query, classification, plain, choice, options),
        epsilon=_epsilon(plan, options),
        is_advised=options.strategy is None and not query.has_closures,
        cut=choice.cut,
        costs=() if plan is None else plan.updates,
        candidates=choice.candidates,
    )


def _epsilon(plan: Plan | None, options: Options) -> Epsilon | None:
    if options.epsilon_value is not None:
        return options.epsilon_value
    return options.epsilon if plan is None or plan.epsilon is None else plan.epsilon


def _class(query: Query, classification: Classification) -> str:
    """The class of the structure; closures that are joined with other atoms, or filtered, are a class of their own."""
    return "closure/joined" if query.has_closures else classification.query_class
