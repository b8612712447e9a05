"""Every program of every strategy, run by every kernel against the naive oracle.

After each change the rows of all access requests equal the oracle's, and every stored map equals the query it
stands for: the join of its atoms, filtered by its indicators, summed to its schema. Kernels run side by side: their
maps are equal, and they count the same operations.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from tests import oracle
from tests.example_counts import examples
from tests.invariants import check_maps
from tests.programs import NativeProgram, Running, rows
from tests.random_queries import Update, contents, queries, updates
from tests.single_programs import SINGLE

KERNELS = (Interpreter, NativeProgram)

WORKED = [
    "Q(.|.) = R(A,B), S(B,C), T(C,A)",
    "Q(A,B,C|.) = R(A,B), S(B,C), T(C,A)",
    "Q(B,C|A) = R(A,B), S(B,C), T(C,A)",
    "Q(C|A,B) = R(A,B), S(B,C), T(C,A)",
    "Q(.|A,B,C) = R(A,B), S(B,C), T(C,A)",
    "Q(.|.) = E(A,B), E(B,C), E(C,A)",
    "Q(A,B,C) = E(A,B), E(B,C), E(C,A)",
    "Q(A) = E(A,B), E(B,A), E(A,A)",
    "Q(B,D|A,C) = R(A,B), S(B,C), T(C,D), U(D,A)",
    "Q(A,C|B,D) = R(A,B), S(B,C), T(C,D), U(A,D)",
    "Q(A,B,C,D) = R(A,B), S(B,C), T(C,D), U(D,A), W(A,C)",
    "Q(B,C,D,E|A) = R(A,B,C), S(A,B,D), T(A,E)",
    "Q(C,D|E) = R(A,B,C), S(A,B,D), T(A,E)",
    "Q(E,D|A,C) = R(A,B,C), S(A,B,D), T(A,E)",
    "Q(A,C) = R(A,B), S(B,C)",
    "Q(.|.) = R(A), S(A,B), T(B)",
    "Q(A|.) = R(A,B), S(B)",
    "Q(B|A) = R(A,B), S(B)",
    "Q(A, SUM(X), COUNT, AVG(Y)) = R(A,X), S(A,Y)",
    "Q(A, MIN(X), MAX(X), MAX(Y), COUNT(DISTINCT Y)) = R(A,B,X), S(B,Y)",
    "Q(COUNT, SUM(X), MIN(X) | A) = R(A,X), S(A)",
    "Q(A, A1) = R(A, 1, A1), R(A, A, 2)",
    "Q(.|.) = R(A,B,C), S(B,C,D), T(C,D,A), U(D,A,B)",
]


def run(query: Query, strategy: str, steps: list[Update], batch: int = 1) -> None:
    """Applies the updates in batches and compares with the oracle after each."""
    try:
        program = plan_with(strategy, query).program
    except PlanError:
        assert strategy in ("recursive", "marks")
        return
    kernels = [make(program) for make in KERNELS]
    database: dict[str, Counter[Any]] = {table.name: Counter() for table in query.tables}
    compare_all(query, kernels, database)
    for start in range(0, len(steps), batch):
        for relation, changes in contents(steps[start : start + batch]).items():
            for kernel in kernels:
                kernel.apply(relation, changes)
            database[relation].update(changes)
        database = {name: Counter({r: w for r, w in stored.items() if w}) for name, stored in database.items()}
        compare_all(query, kernels, database)
    built = [make(program) for make in KERNELS]
    for fresh in built:
        fresh.build(database)
    compare_all(query, built, database)
    for declared in program.maps:
        contents_of = [dict(kernel.map(declared.name).items()) for kernel in [*kernels, *built]]
        assert all(other == contents_of[0] for other in contents_of), declared.name


def compare_all(query: Query, kernels: list[Any], database: dict[str, Counter[Any]]) -> None:
    """Each kernel answers like the oracle, and all of them have done the same work so far."""
    for kernel in kernels:
        compare(query, kernel, database)
    assert [kernels[0].operations] * len(kernels) == [kernel.operations for kernel in kernels]


def compare(query: Query, kernel: Running, database: dict[str, Counter[Any]]) -> None:
    values = sorted({v for stored in database.values() for row in stored for v in row if isinstance(v, int)})[:3]
    for chosen in product([*values, 99, None], repeat=min(len(query.input), 3)):
        given_values = (chosen + (values[0] if values else 99,) * len(query.input))[: len(query.input)]
        inputs = dict(zip(query.parameters, given_values, strict=True))
        expected = oracle.rows(query, database, inputs)
        actual: Counter[Any] = Counter()
        for row, multiplicity in rows(query, kernel, inputs):
            assert row not in actual or _hides_outputs(query), f"{row} is enumerated twice"
            actual[row] += multiplicity
        assert _sorted(expected) == _sorted(actual)
    check_maps(query, kernel, database)


def _hides_outputs(query: Query) -> bool:
    """Rows may coincide when an output variable is not among the columns."""
    return bool(set(query.output) - {column.source for column in query.head})


def _sorted(answers: Any) -> list[Any]:
    return sorted(answers.items(), key=repr)


@pytest.mark.parametrize("strategy", SINGLE)
@pytest.mark.parametrize("text", WORKED)
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_strategy_answers_like_the_oracle_on_the_worked_examples(text: str, strategy: str, data: Any) -> None:
    query = parse_rule(text)
    run(query, strategy, data.draw(updates(query, domain=3, max_size=16)), data.draw(st.sampled_from([1, 1, 5])))


@pytest.mark.parametrize("strategy", SINGLE)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_strategy_answers_like_the_oracle_on_random_queries(strategy: str, data: Any) -> None:
    aggregates = data.draw(st.booleans())
    query = data.draw(queries(max_atoms=4, max_variables=5, aggregates=aggregates, constants=True))
    steps = data.draw(updates(query, domain=2, max_size=12, nulls=True))
    run(query, strategy, steps, data.draw(st.sampled_from([1, 4])))


@pytest.mark.parametrize("strategy", SINGLE)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_batch_that_fails_leaves_the_compiled_kernel_as_it_was(strategy: str, data: Any) -> None:
    """Weights near the limit overflow somewhere on their way: in a load, a join, a sum, or a map."""
    query = parse_rule(data.draw(st.sampled_from(WORKED)))
    try:
        kernel = NativeProgram(plan_with(strategy, query).program)
    except PlanError:
        return
    for relation, changes in contents(data.draw(updates(query, domain=2, max_size=16))).items():
        kernel.apply(relation, changes)
    before = kernel.kernel.digest()
    for relation, changes in contents(data.draw(updates(query, domain=2, max_size=8))).items():
        scale = data.draw(st.sampled_from([2**30, 2**61, 2**63 - 1]))
        try:
            kernel.apply(relation, dict.fromkeys(changes, scale))
        except OverflowError:
            assert before == kernel.kernel.digest()
        kernel.kernel.verify()
        before = kernel.kernel.digest()
