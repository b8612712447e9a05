"""Programs cost what explain() prints: counted operations over growing N fit the exponents, from both sides.

The databases are made to hurt the most expensive step of each trigger (benchmarks.hard_instances), so a slope well
below the promise would mean that the promise is loose, and one above it that it is broken.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from benchmarks.exponents import ELIMINATED, QUERIES, measure
from benchmarks.hard_instances import hard_cases, instance
from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.counting import COUNTING
from tests.example_counts import some_of

TOLERANCE = 0.3


@pytest.mark.parametrize(
    "strategy",
    [pytest.param(each, marks=[] if each == "view-tree" else [pytest.mark.long]) for each in COUNTING],
)
@pytest.mark.parametrize("name", some_of(QUERIES, *list(QUERIES)[1::2]))
def test_the_counted_operations_grow_as_the_exponent_says(name: str, strategy: str) -> None:
    query = parse_rule(QUERIES[name])
    for measurement in measure(query, plan_with(strategy, query), budget=5_000):
        assert measurement.slope == pytest.approx(float(measurement.promised), abs=TOLERANCE), measurement


@pytest.mark.parametrize("name", ["6-cycle count", "bowtie count"])
def test_deltas_by_variable_elimination_grow_as_the_exponent_says(name: str) -> None:
    query = parse_rule(ELIMINATED[name])
    plan = plan_with("classical", query)
    for measurement in measure(query, plan, budget=1_500):
        assert measurement.slope < float(measurement.promised) + TOLERANCE, measurement


@pytest.mark.parametrize("name", QUERIES)
def test_the_dearest_trigger_is_what_the_plan_promises(name: str) -> None:
    query = parse_rule(QUERIES[name])
    for strategy in COUNTING:
        plan = plan_with(strategy, query)
        cases = hard_cases(plan.program)
        updates = [case.exponent for case in cases if case.relation is not None]
        builds = [case.exponent for case in cases if case.relation is None]
        assert str(max(updates, default=0)) == str(plan.update.exponent)
        refresh = plan.delay if plan.program.lazy else plan.preprocessing
        assert str(max([Fraction(1), *builds])) == str(refresh.exponent)


@pytest.mark.parametrize("name", QUERIES)
def test_the_delay_does_not_grow(name: str) -> None:
    """Operations per row read are the same for a database four times the size."""
    query = parse_rule(QUERIES[name])
    plan = plan_with("view-tree", query)
    packing = dict(hard_cases(plan.program)[-1].packing) if hard_cases(plan.program) else {}
    largest = int(8_000 ** (1 / max(1.0, float(plan.preprocessing.exponent.at(Fraction(0))))))
    delays = []
    for size in (largest // 4, largest):
        kernel = Interpreter(plan.program)
        kernel.build(instance(query, packing, size))
        inputs = dict.fromkeys(query.input, 0)
        items, before, most = kernel.items(inputs), kernel.operations, 0
        for _ in zip(range(200), items, strict=False):
            most = max(most, kernel.operations - before)
            before = kernel.operations
        delays.append(most)
    assert delays[0] == delays[1] > 0
