"""Requests over parts that are maintained: which plans there are, what they cost, and when they are taken."""

from __future__ import annotations

from fractions import Fraction

import pytest

import ivme
from ivme.plan.assemble.points import Observation
from ivme.plan.assemble.request_blueprint import parts_of, summable
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options
from ivme.plan.strategy.request import mixtures, request
from ivme.plan.strategy.strategies import view_tree
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse

BEHIND_TRIANGLES = "Q(E | A) = R(A, B), S(B, C), T(C, D), U(D, B), V(B, E)"
KEYS = {
    "C": {"columns": ["c", "a"], "primary_key": ["c"]},
    "S": {"columns": ["a", "z"], "primary_key": ["a"]},
    "O": {"columns": ["o", "c"], "primary_key": ["o"]},
    "L": {"columns": ["l", "o", "n"], "primary_key": ["l"]},
}


def test_a_part_is_what_hangs_together_through_variables_that_are_summed_away() -> None:
    query = parse_rule(BEHIND_TRIANGLES)
    assert ("B", "C", "D") == summable(query)
    whole = analyse(query).plain.cqap
    (part,) = parts_of(whole, frozenset("CD"))
    assert (["S", "T", "U"], frozenset("B")) == ([edge.label for edge in part.hypergraph.edges], part.output)
    wedge, ends = parts_of(
        analyse(parse_rule("Q(. | A, E) = R(A, B), S(B, C), T(C, D), U(D, E)")).plain.cqap, frozenset("BD")
    )
    assert (frozenset("AC"), frozenset("CE")) == (wedge.output, ends.output)


def test_triangles_in_the_middle_are_maintained_where_both_ends_cost_more() -> None:
    found = ivme.explain(BEHIND_TRIANGLES)
    assert ("request", "O(N)", "O(N)", "O(N)") == (found.strategy, *map(str, (found.update, found.delay, found.space)))
    assert {"R": "O(1)", "V": "O(1)"} == {name: str(cost) for name, cost in found.updates.items() if name in "RV"}
    assert any(note.startswith("maintained between requests: V'_C(B)") for note in found.notes)
    assert ("O(1)", "O(N^(3/2))") == tuple(map(str, _costs(BEHIND_TRIANGLES, favour="updates")))
    assert ("O(N^2)", "O(1)") == tuple(map(str, _costs(BEHIND_TRIANGLES, favour="reads")))


def _costs(text: str, favour: str) -> tuple[object, object]:
    found = ivme.explain(text, favour=favour)
    return found.update, found.delay


def test_what_inputs_determine_by_keys_is_looked_up_and_the_rest_is_summed_before() -> None:
    found = ivme.explain("Q(z, SUM(n) | c) = C(c, a), S(a, z), O(o, c), L(l, o, n)", KEYS)
    assert ("request", "O(1)", "O(1)", "O(N)") == (found.strategy, *map(str, (found.update, found.delay, found.space)))


@pytest.mark.parametrize(
    "text",
    [
        "Q(D | A) = R(A, B), S(B, C), T(C, D)",
        "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
        "Q(. | A) = R(A, B), S(B, C), T(C, D), U(D, B)",
    ],
)
def test_there_is_none_where_a_view_tree_or_a_request_over_tables_is_as_good(text: str) -> None:
    analysis = analyse(parse_rule(text))
    trees = view_tree(analysis)
    assert not mixtures(analysis, trees, request(analysis, trees))


def test_none_of_them_is_dominated() -> None:
    analysis = analyse(parse_rule("Q(F | A) = R(A, B), S(B, C), T(C, D), U(D, E), V(E, B), W(B, F)"))
    trees = view_tree(analysis)
    plain = request(analysis, trees)
    found = mixtures(analysis, trees, plain)
    points = [
        tuple(each.exponent.at(Fraction(1, 2)) for each in (p.update, p.delay, p.space)) for p in (trees, plain, *found)
    ]
    assert found
    assert not any(a != b and all(x <= y for x, y in zip(a, b, strict=True)) for a in points for b in points)


@pytest.mark.parametrize(
    ("changes", "requests", "costs"),
    [(1_000, 0, ("O(1)", "O(N^(3/2))")), (1_000, 1_000, ("O(N)", "O(N)")), (1, 100_000_000, ("O(N^2)", "O(1)"))],
)
def test_what_was_observed_chooses_among_both_ends_and_what_is_between(
    changes: int, requests: int, costs: tuple[str, str]
) -> None:
    observed = Observation((("S", changes),), requests, requests, tuple((name, 10_000) for name in "RSTUV"))
    plan = choose(analyse(parse_rule(BEHIND_TRIANGLES)), Options(), observed).plan
    assert plan is not None
    assert costs == (str(plan.update), str(plan.delay))
