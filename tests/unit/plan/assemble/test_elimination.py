"""Stages of deltas: variables are summed away on the way, and never at a higher cost than one join of everything."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ivme.plan.assemble.blueprint import Leaf
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.elimination import Residuals, Stages, Start
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from ivme.structure.fracture import unbroken
from ivme.structure.hypergraph import cqap_of

CYCLE = "Q(.|.) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,A)"
BOWTIE = "Q(.|.) = R(A,B), S(B,C), T(C,A), U(A,D), V(D,E), W(E,A)"


def read(text: str) -> tuple[Leaves, dict[str, Leaf]]:
    query = parse_rule(text)
    leaves = leaves_of(query, unbroken(cqap_of(query)))
    return leaves, {label: Leaf(label, source.schema) for label, source in leaves.sources}


def found(text: str, label: str | None, kept: str = "") -> tuple[Stages, Fraction | int, Fraction | int]:
    """The stages for a change of an atom (None: of the whole join), their exponent, and that of a single stage."""
    leaves, atoms = read(text)
    origin = atoms[label] if label else None
    given = (tuple(leaf for leaf in atoms.values() if leaf != origin),)
    residuals = Residuals(leaves)
    start = Start(frozenset(origin.schema), label) if origin else Start()
    stages = residuals.eliminated(given, start, kept)
    wanted = frozenset(kept)
    return stages, residuals.exponent(stages, start, wanted), residuals.exponent(given, start, wanted)


@pytest.mark.parametrize("label", "RSTUVW")
def test_the_delta_of_a_cycle_walks_along_a_path(label: str) -> None:
    _, exponent, at_once = found(CYCLE, label)
    assert (exponent, at_once) == (1, 2)


def test_the_stages_of_a_cycle_carry_one_variable_from_one_to_the_next() -> None:
    stages, _, _ = found(CYCLE, "R")
    labels = [[leaf.label for leaf in stage if isinstance(leaf, Leaf)] for stage in stages]
    assert [["S", "T"], ["U"], ["V", "W"]] == labels


def test_the_whole_join_of_a_cycle_is_built_with_pairs() -> None:
    _, exponent, at_once = found(CYCLE, None)
    assert (exponent, at_once) == (2, 3)


def test_opposite_a_shared_node_triangles_cost_what_listing_them_costs() -> None:
    assert found(BOWTIE, "S")[1:] == (Fraction(3, 2), Fraction(3, 2))


def test_variables_of_the_result_are_kept() -> None:
    """With all corners free nothing can be summed away, and the given stages stay."""
    stages, exponent, at_once = found(CYCLE, "R", "ABCDEF")
    assert (len(stages), exponent, at_once) == (1, 2, 2)


def test_one_stage_stays_where_it_is_linear() -> None:
    stages, exponent, _ = found("Q(.|.) = R(A,B), S(B,C), T(C,A)", "R")
    assert (len(stages), exponent) == (1, 1)


def test_many_variables_are_left_as_they_are() -> None:
    atoms = ", ".join(f"R{i}(A{i},A{i + 1})" for i in range(15))
    leaves, nodes = read(f"Q(.|.) = {atoms}")
    origin = nodes["R0"]
    given = (tuple(leaf for leaf in nodes.values() if leaf != origin),)
    start = Start(frozenset(origin.schema), "R0")
    assert Residuals(leaves).eliminated(given, start, "") == given


def test_a_named_view_is_built_in_the_same_stages() -> None:
    blueprint = plan_with("classical", parse_rule(CYCLE)).blueprint
    named = catalog_of({"v": blueprint}).blueprints["v"]
    counts = [[len(stage) for stage in each.definitions[0].stages] for each in (blueprint, named)]
    assert counts[0] == counts[1]
    assert len(counts[0]) > 1
