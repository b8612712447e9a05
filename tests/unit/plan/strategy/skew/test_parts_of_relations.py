"""The leaves of the strategies partition the database, and the plans of counts are those that the sources know."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings

from ivme.errors import PlanError
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.ir.program import Side
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.skew.omega import strategies
from ivme.plan.strategy.skew.plans import skew
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse
from ivme.structure.classify import classify
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of
from tests.example_counts import examples
from tests.hashes import outputs_under_hash_seeds
from tests.random_queries import queries


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(queries(max_atoms=5, max_variables=6))
def test_each_heaviness_of_all_keys_belongs_to_exactly_one_strategy_of_omega(query: Query) -> None:
    """Source 003, Proposition 5.9: an assignment of the variables fixes which keys are heavy, and so one strategy."""
    if not classify(cqap_of(query)).hierarchical_fracture:
        return
    broken = fracture(cqap_of(query))
    leaves = leaves_of(query, broken)
    for component in broken.components:
        try:
            roles, options = strategies(component, leaves)
        except PlanError:
            continue
        for sides in product((True, False), repeat=len(roles)):
            heavy = {(role.partition, role.key): side for role, side in zip(roles, sides, strict=True)}
            if len(heavy) == len(roles):
                assert 1 == sum(_fits(option.sides.values(), heavy) for option in options)


def _fits(parts: object, heavy: dict[tuple[str, tuple[str, ...]], bool]) -> bool:
    entries: list[Side] = [side for part in parts for side in part]  # type: ignore[attr-defined]
    return all(heavy[side.partition, side.key] == side.heavy for side in entries)


@pytest.mark.parametrize(
    ("text", "epsilon", "update"),
    [
        ("Q(. | .) = R(A), S(A, B), T(B)", Fraction(1, 2), Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D)", Fraction(1, 2), Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, E)", Fraction(1, 2), Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, A)", Fraction(1, 2), Fraction(1, 2)),
        ("Q(. | .) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)", Fraction(1, 2), Fraction(1, 2)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A)", Fraction(1, 3), Fraction(2, 3)),
        ("Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C)", Fraction(1, 3), Fraction(2, 3)),
    ],
)
def test_counts_have_the_exponents_of_sources_000_and_001(text: str, epsilon: Fraction, update: Fraction) -> None:
    plan = skew(analyse(parse_rule(text)), Options())
    assert (epsilon, update) == (plan.epsilon, plan.update.exponent.at(epsilon))


@pytest.mark.parametrize("epsilon", [0, 1])
def test_the_triangle_count_at_either_end_costs_what_classical_maintenance_costs(epsilon: int) -> None:
    """Source 000, section 1.1: linear updates."""
    plan = skew(analyse(parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")), Options(epsilon=Fraction(epsilon)))
    assert Fraction(1) == plan.update.exponent.at(Fraction(epsilon))


def test_a_table_of_edges_is_stored_once_whatever_the_order_of_its_roles() -> None:
    """Parts of E(A, B) and of E(C, A) that are the same were two maps, so that degrees and N counted double."""
    program = skew(analyse(parse_rule("Q(B | A) = E(A, B), E(B, C), E(C, A)")), Options()).program
    assert 4 == len(program.measured) == len([m for m in program.maps if m.role == "leaf"])
    (partition,) = program.partitions
    assert [4, 4] == [len(degree.parts) for degree in partition.degrees]


def test_min_is_refused_and_so_are_relations_that_the_query_does_not_read() -> None:
    with pytest.raises(PlanError, match=r"MIN\(X\) needs another strategy"):
        skew(analyse(parse_rule("Q(A, MIN(X)) = R(A, B), S(B, X)")), Options())
    options = Options(epsilon=(("R", Fraction(0)), ("X", Fraction(1))))
    with pytest.raises(PlanError, match="'X', which the query does not read"):
        skew(analyse(parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")), options)


PROGRAMS = """
from ivme.compile import compile_plan
from ivme.query.parse import parse
for text in (
    "Q(. | .) = R(A, B), S(B, C), T(C, A)",
    "Q(C | A, B) = R(A, B), S(B, C), T(C, A)",
    "Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(A | .) = R(A, B), S(B)",
):
    program = compile_plan(parse(text, ()), strategy="skew")[1].program
    print(program, program.partitions)
"""


@pytest.mark.slow
def test_programs_over_parts_do_not_depend_on_the_order_of_hashes() -> None:
    assert len(outputs_under_hash_seeds(PROGRAMS)) == 1
