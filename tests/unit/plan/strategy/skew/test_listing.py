"""Listings and trees over signatures: what makes one signature's plans stand for those of all others."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings

from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.strategy.skew.listing import (
    MOST_ATOMS,
    MOST_ROLES,
    footprint_of,
    options_of,
    signed_labels,
    variable_roles,
)
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.fracture import Fracture
from ivme.structure.hypergraph import cqap_of
from tests.example_counts import examples
from tests.random_queries import queries


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(queries(max_atoms=4, max_variables=5))
@example(parse_rule("Q(C | A, B) = R(A, B), S(B, C), T(C, A)"))
@example(parse_rule("Q(A, B, C | .) = E(A, B), E(B, C), E(C, A)"))
@example(parse_rule("Q(D | A, B) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)"))
def test_a_plan_joins_and_stores_the_same_whatever_is_heavy(query: Query) -> None:
    structure = cqap_of(query)
    whole = Fracture(structure, (structure,), tuple((v, v) for v in sorted(structure.variables)))
    leaves = leaves_of(query, whole)
    roles = variable_roles(leaves)
    if not query.free or not 0 < len(roles) <= MOST_ROLES or len(leaves.sources) > MOST_ATOMS:
        return
    parted, signed = signed_labels(leaves, roles)
    drawn = [[option() for option in options_of(structure, parted, labels, ".1")] for labels in signed]
    first, *others = [[footprint_of(*option, parted, roles) for option in options] for options in drawn]
    assert all(first == other for other in others)
