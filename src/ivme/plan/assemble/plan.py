"""A plan: a strategy's program for a query, and what it costs.

Costs are read off the program: each join step carries the edge cover of what it may produce, so what is printed is
what runs. For view trees this gives the dynamic and static width of the order (source 003, Definition 4.9).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from ivme.plan.assemble.assemble import assemble
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.draft import Draft
from ivme.plan.assemble.tuning import Tuning
from ivme.plan.assemble.update_costs import TableCost
from ivme.plan.ir.codec import DERIVED
from ivme.plan.ir.exponent import Bound, bound
from ivme.plan.ir.program import Join, Program, Step
from ivme.plan.order.mark_tree import MarkForest
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.order.widths import Widths
from ivme.query.model import Query
from ivme.structure.fracture import Fracture


@dataclass(frozen=True, slots=True)
class Check:
    """The plan of a query that must have no row: the joins of rows for which an expression of `failing` atoms fails.

    It is maintained beside the view, and a batch after which it has a row is refused.
    """

    query: Query
    failing: tuple[int, ...]
    strategy: str
    update: Bound
    blueprint: Blueprint
    tuning: Tuning | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a strategy would do for a query; `orders` and `trees` are empty where it follows none.

    `updates` has the cost of a changed row for each table that is not static, and `update` is the worst of them.
    `followed` is the blueprint that also computes the changes of the result. A plan over heavy and light parts has an
    `epsilon`, unless each relation has its own, and `tuning` if it may be chosen again as the data grows; `marks` are
    the trees that `why` reads. The view is right as long as its `checks` have no row.
    """

    strategy: str
    blueprint: Blueprint
    followed: Blueprint
    fracture: Fracture
    preprocessing: Bound
    update: Bound
    delay: Bound
    space: Bound
    updates: tuple[TableCost, ...]
    widths: Widths | None = None
    orders: tuple[VariableOrder, ...] = ()
    trees: tuple[ViewNode, ...] = ()
    notes: tuple[str, ...] = ()
    epsilon: Fraction | None = None
    tuning: Tuning | None = None
    marks: MarkForest | None = None
    checks: tuple[Check, ...] = ()
    draft: Draft | None = field(default=None, compare=False, repr=False, metadata=DERIVED)
    """What the costs were read off, to be completed where the plan is installed; a stored plan has none."""
    programs: list[Program] = field(default_factory=list, compare=False, repr=False, metadata=DERIVED)
    """The program under the query's own names, once it has been requested."""

    @property
    def program(self) -> Program:
        """The program of the blueprint, to be printed or run alone; a database installs its own."""
        if not self.programs:
            self.programs.append(assemble(self.blueprint))
        return self.programs[0]


def costs(program: Program) -> tuple[Bound, Bound, Bound]:
    """Preprocessing, delay and space of a program.

    A lazy program pays nothing when tables change and the whole build before the next row.
    """
    build = max(Fraction(1), costliest(program.build))
    space = bound(max(Fraction(1), largest_map(program)))
    return (bound(1), bound(build), space) if program.lazy else (bound(build), bound(0), space)


def costliest(steps: Iterable[Step]) -> Fraction:
    """The greatest exponent of some steps."""
    return max((step.exponent for step in steps if isinstance(step, Join)), default=Fraction(0))


def largest_map(program: Program) -> Fraction:
    """The exponent of what a program stores."""
    return max((declared.exponent for declared in program.maps), default=Fraction(0))
