"""Do programs cost what explain() prints? Counts kernel operations over growing N and fits the slope.

    python -m benchmarks.exponents

For each query and strategy the most expensive step of each trigger is run on a database made to hurt it (see
`hard_instances`): the rows of the changed relation are deleted and inserted again one by one, and the most
operations that one of these changes took are counted. Operations, not seconds: the numbers are exact and repeatable.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any

from benchmarks.hard_instances import HardCase, hard_cases, instance, row_of
from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.strategy.strategies import STRATEGIES, plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule

QUERIES = {
    "lookup": "Q(.|A,B,C) = R(A,B), S(B,C), T(C,A)",
    "triangle count": "Q(.|.) = R(A,B), S(B,C), T(C,A)",
    "triangles of a node": "Q(B,C|A) = R(A,B), S(B,C), T(C,A)",
    "all triangles": "Q(A,B,C|.) = R(A,B), S(B,C), T(C,A)",
    "4-cycle count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,A)",
    "4-cycle by corners": "Q(A,C|B,D) = R(A,B), S(B,C), T(C,D), U(A,D)",
    "3-path count": "Q(.|.) = R(A,B), S(B,C), T(C,D)",
    "star, q-hierarchical": "Q(A,COUNT) = R(A,B), S(A,C), T(A,D)",
    "smallest hard": "Q(A|.) = R(A,B), S(B)",
    "crossed": "Q(.|.) = R(A), S(A,B), T(B)",
    "example 5.3": "Q(C,D|E) = R(A,B,C), S(A,B,D), T(A,E)",
    "Loomis-Whitney 4": "Q(.|.) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)",
}
"""The shapes to measure, by name."""


ELIMINATED = {
    "5-cycle count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,A)",
    "6-cycle count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,A)",
    "7-cycle count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,G), X(G,A)",
    "8-cycle count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,G), X(G,H), Y(H,A)",
    "bowtie count": "Q(.|.) = R(A,B), S(B,C), T(C,A), U(A,D), V(D,E), W(E,A)",
    "K4 minus an edge": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,A), V(A,C)",
    "K4 count": "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,A), V(A,C), W(B,D)",
    "grid 2x3": "Q(.|.) = R(A,B), S(B,C), T(D,E), U(E,F), V(A,D), W(B,E), X(C,F)",
}
"""Shapes whose deltas are evaluated by variable elimination, measured for `classical` beside the view tree."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Operations at growing sizes, the slope that fits them, and the exponent that was promised."""

    what: str
    sizes: tuple[int, ...]
    operations: tuple[int, ...]
    promised: Fraction

    @property
    def slope(self) -> float:
        """The growth between the last two sizes on a log-log scale."""
        grown = log(self.operations[-1] / self.operations[-2])
        return grown / log(self.sizes[-1] / self.sizes[-2])


def measure(query: Query, plan: Plan, budget: int = 20_000) -> list[Measurement]:
    """One measurement for each trigger and for the build (or the refresh of a lazy program)."""
    return [_measured(query, plan, case, budget) for case in hard_cases(plan.program)]


def _measured(query: Query, plan: Plan, case: HardCase, budget: int) -> Measurement:
    sizes = _sizes(case, budget)
    operations = []
    for size in sizes:
        kernel = Interpreter(plan.program)
        database = instance(query, dict(case.packing), size)
        work = _built(kernel, database) if case.relation is None else _changed(query, kernel, database, case.relation)
        operations.append(work)
    what = "build" if case.relation is None else f"update of {case.relation}"
    return Measurement(what, sizes, tuple(operations), case.exponent)


def _sizes(case: HardCase, budget: int) -> tuple[int, ...]:
    """Three sizes, a factor of 4 apart, so that the work stays near the budget.

    Steep exponents get a larger one: their sizes are small, and lower-order terms weigh more.
    """
    exponent = max(float(case.exponent), 1.0)
    largest = int((budget * (exponent**3 if exponent >= 2 else 1)) ** (1 / exponent))
    return (max(2, largest // 16), max(3, largest // 4), max(4, largest))


def _built(kernel: Interpreter, database: Any) -> int:
    """The operations of the bulk build, or of the refresh before the first read."""
    kernel.build(database)
    if not kernel.program.lazy:
        return kernel.operations
    before = kernel.operations
    next(iter(kernel.items({original: 0 for _, original in kernel.program.enumeration.inputs})), None)
    return kernel.operations - before


def _changed(query: Query, kernel: Interpreter, database: Any, relation: str) -> int:
    """The most operations that deleting or inserting one row of the relation takes."""
    kernel.build(database)
    most = 0
    atom = next(atom for atom in query.atoms if atom.relation == relation)
    row = row_of(atom, dict.fromkeys(atom.variables, 0))
    for weight in (-1, 1):
        before = kernel.operations
        kernel.apply(relation, {row: weight})
        most = max(most, kernel.operations - before)
    return most


def main() -> int:
    """Prints a table of all measurements; exits with 1 if one grows faster than promised."""
    worst = False
    print(f"{'query':<22} {'strategy':<11} {'what':<13} {'N':>7} {'operations':>11} {'slope':>6}  promised")
    measured = [(name, text, tuple(STRATEGIES)) for name, text in QUERIES.items()]
    measured += [(name, text, ("view-tree", "classical")) for name, text in ELIMINATED.items()]
    for name, text, strategies in measured:
        query = parse_rule(text)
        for strategy in strategies:
            try:
                plan = plan_with(strategy, query)
            except PlanError as error:
                print(f"{name:<22} {strategy:<11} refused: {error}")
                continue
            for m in measure(query, plan):
                late = m.slope > float(m.promised) + 0.25
                worst |= late
                print(
                    f"{name:<22} {strategy:<11} {m.what:<13} {m.sizes[-1]:>7} {m.operations[-1]:>11} "
                    f"{m.slope:>6.2f}  {m.promised}{'  GROWS FASTER' if late else ''}"
                )
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
