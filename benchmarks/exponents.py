"""Do programs cost what explain() prints? Counts kernel operations over growing N and fits the slope.

    python -m benchmarks.exponents [--large] [--max 1000000] [--only NAME]

For each query and strategy the most expensive step of each trigger is run on a database made to hurt it (see
`hard_instances`): the rows of the changed relation are deleted and inserted again one by one, and the most
operations that one of these changes took are counted. Operations, not seconds: the numbers are exact and repeatable.
Heavy and light parts have benchmarks of their own (`skew`, `peeling`); so have tables that only grow (`append_only`).

With --large, plans in linear space, those of ELIMINATED, and those that evaluate requests when they come, are measured
in the compiled kernel: the change that takes most, from 10,000 rows a table to a million, or as far as it does at most
2 * 10^9 operations. --only takes those with this in their name.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import log
from typing import Any

import pyarrow as pa

from benchmarks.hard_instances import (
    REQUEST,
    HardCase,
    columns,
    hard_cases,
    instance,
    listed_case,
    request_case,
    row_of,
)
from ivme.database import Database
from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.plan.ir.exponent import bound
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.strategies import STRATEGIES, plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse

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


REQUESTED = {
    "three hops": "Q(D|A) = R(A,B), S(B,C), T(C,D)",
    "triangles of a node": "Q(B,C|A) = R(A,B), S(B,C), T(C,A)",
    "least of three hops": "Q(MIN(D)|A) = R(A,B), S(B,C), T(C,D)",
    "distinct in groups": "Q(D,COUNT(DISTINCT E),SUM(E)|A) = R(A,B), S(B,C), T(C,D), U(D,E)",
    "paths from a node": "Q(B,C,D|A) = R(A,B), S(B,C), T(C,D)",
    "4-cycles of a node": "Q(B,C,D|A) = R(A,B), S(B,C), T(C,D), U(D,A)",
    "ears after three hops": "Q(D,E,F|A) = R(A,B), S(B,C), T(C,D), U(D,E), V(D,F)",
    "by nodes of triangles": "Q(E|A) = R(A,B), S(B,C), T(C,D), U(D,B), V(B,E)",
    "by nodes of 4-cycles": "Q(F|A) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,B), W(B,F)",
}
"""Shapes whose requests are evaluated when they come: over tables, and over parts that are maintained."""


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


def large(most: int, only: str) -> int:
    """Prints the slopes of plans over three sizes, by the compiled kernel; 1 if one is too steep."""
    worst = False
    for name, text in REQUESTED.items():
        if only in name:
            query = parse_rule(text)
            requested = plan_with("request", query)
            listed = listed_case(query, requested.program)
            plan = requested if listed else choose(analyse(query), Options()).plan
            assert plan is not None
            for case in filter(None, [*hard_cases(plan.program), listed or request_case(plan.program)]):
                if case.relation is not None:
                    worst |= _large(name, query, "request" if listed else None, case, most)
    for name, text in {**QUERIES, **ELIMINATED}.items():
        query = parse_rule(text)
        for strategy in ("view-tree", "classical") if only in name else ():
            plan = plan_with(strategy, query)
            if (plan.space != bound(1) and name in QUERIES) or plan.preprocessing.exponent.at(Fraction(0)) > 2:
                continue
            worst |= _large(name, query, strategy, _costliest(query, strategy, hard_cases(plan.program)), most)
    return int(worst)


def _costliest(query: Query, strategy: str, cases: list[HardCase]) -> HardCase:
    """The change that takes most: of the highest exponent, and of these, that of most operations."""
    changes = [case for case in cases if case.relation is not None]
    steepest = max(case.exponent for case in changes)
    return max(
        (case for case in changes if case.exponent == steepest), key=lambda case: _toggled(query, strategy, case, 1000)
    )


WORK = 2 * 10**9
"""No change does more than so many operations: with N^2, a million rows would take 10^12."""


def _large(name: str, query: Query, strategy: str | None, case: HardCase, most: int) -> bool:
    largest = next(n for n in (1_000_000, 100_000, 10_000) if n <= most and n ** float(case.exponent) <= WORK)
    sizes = [largest // 100, largest // 10, largest]
    operations = [_toggled(query, strategy, case, size) for size in sizes]
    slope = log(operations[-1] / operations[-2]) / log(sizes[-1] / sizes[-2])
    told = ", ".join(f"{size:,}: {number:,}" for size, number in zip(sizes, operations, strict=True))
    is_late = slope > float(case.exponent) + 0.1
    late = "  GROWS FASTER" if is_late else ""
    print(
        f"{name:<22} {strategy or 'default':<11} {case.relation:<9} {slope:>6.2f}  {case.exponent}{late}  ({told})",
        flush=True,
    )
    return is_late


def _toggled(query: Query, strategy: str | None, case: HardCase, size: int) -> int:
    """The most operations that one row takes that is deleted and inserted again; or those of a request."""
    db = Database(replan=False)
    for table in query.tables:
        db.create_table(table.name, dict.fromkeys(table.column_names, "int"))
    for relation, values in columns(query, dict(case.packing), size).items():
        db.insert(relation, pa.table(values, names=list(query.table(relation).column_names)))
    view = db.create_view("answer", str(query), **({} if strategy is None else {"strategy": strategy}))
    backend, found = db.definitions.runtime.backend, 0
    if case.relation == REQUEST:
        return _asked(view, backend, dict.fromkeys(query.input, 0), is_lazy=strategy is not None)
    atom = next(atom for atom in query.atoms if atom.relation == case.relation)
    row = row_of(atom, dict.fromkeys(atom.variables, 0))
    for change in (db.delete, db.insert):
        before = backend.operations
        change(atom.relation, [row])
        found = max(found, backend.operations - before)
    return found


def _asked(view: Any, backend: Any, inputs: dict[str, int], *, is_lazy: bool) -> int:
    """The operations of a request; of one whose rows come one by one, those before the first 64 of them have come, and
    it prints what a further one takes."""
    before = backend.operations
    if not is_lazy:
        view.to_arrow(**inputs)
        return int(backend.operations - before)
    rows = view.items(**inputs)
    next(rows)
    first = int(backend.operations - before)
    further = sum(1 for _ in islice(rows, 63)) and sum(1 for _ in islice(rows, 100_000))
    print(f"{'':<22} {further:,} further rows took {backend.operations - before - first:,} operations", flush=True)
    return first


def main() -> int:
    """Prints a table of all measurements; exits with 1 if one grows faster than promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--max", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.large:
        return large(given.max, given.only)
    worst = False
    print(f"{'query':<22} {'strategy':<11} {'what':<13} {'N':>7} {'operations':>11} {'slope':>6}  promised")
    plain = tuple(name for name in STRATEGIES if name not in ("skew", "request"))
    measured = [(name, text, plain) for name, text in QUERIES.items()]
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
