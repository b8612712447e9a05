"""The explanation: what it says, that programs can read it, and that it never promises what does not run."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

import ivme
from ivme.plan.assemble.stored import stored_map
from tests.example_counts import examples
from tests.random_queries import rule_texts

TRIANGLE = "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"


def test_the_fields_of_an_explanation_are_those_of_the_design() -> None:
    found = ivme.explain(TRIANGLE, epsilon=0.5)
    assert (found.query_class, found.strategy) == ("triangle/C1", "skew")
    assert (Fraction(3, 2), Fraction(1)) == (found.static_width, found.dynamic_width)
    bounds = [str(found.preprocessing), str(found.update), str(found.delay), str(found.space)]
    assert bounds[:3] == ["O(N^(3/2))", "O(N^max(ε, 1-ε)) amortised", "O(N^min(2ε, 2-2ε))"]
    assert Fraction(1, 2) == found.epsilon


def test_the_guarantee_comes_first_and_then_the_lower_bound() -> None:
    text = str(ivme.explain(TRIANGLE, epsilon=0.5))
    places = [text.index(word) for word in ("\nclass ", "\nupdate ", "lower bound", "\nfracture", "view trees (")]
    assert sorted(places) == places


def test_a_bound_with_epsilon_is_printed_with_its_value_there() -> None:
    assert "O(N^max(ε, 1-ε)) amortised, at ε = 1/4 O(N^(3/4)) amortised" in str(ivme.explain(TRIANGLE, epsilon=0.25))
    assert "at ε" not in str(ivme.explain(TRIANGLE, strategy="view-tree"))


def test_options_without_effect_are_noted() -> None:
    notes = ivme.explain("Q(A) = R(A, B), S(A)", epsilon=0.5, space="source", rebalance="deamortised").notes
    assert notes[-1:] == (
        "ε, space='source', rebalance='deamortised' have no effect on this plan: it has no heavy and light parts",
    )


def test_the_fracture_shows_terms_in_their_written_order() -> None:
    text = str(ivme.explain("Q(A, C | B, D) = R(A, B), S(B, C), T(C, D), U(A, D)"))
    assert "  Q(A | B_1, D_1) = R(A, B_1), U(A, D_1)\n  Q(C | B_2, D_2) = S(B_2, C), T(C, D_2)\n" in text


def test_views_that_are_only_passed_through_are_marked() -> None:
    """003, Example 4.6: for the count, V_C is summed at once into V'_C, which R looks up."""
    text = str(ivme.explain("Q(. | .) = R(A, B), S(B, C), T(C, A)", strategy="view-tree"))
    assert "● V'_C(A, B)" in text
    assert "○ V_C(A, B, C)" in text


@pytest.mark.parametrize("strategy", ["classical", "recursive"])
def test_a_strategy_without_trees_shows_its_maps(strategy: str) -> None:
    found = ivme.explain("Q(. | .) = R(A, B), S(B, C), T(C, A)", strategy=strategy)
    assert (found.variable_orders, found.view_trees) == ((), ())
    assert found.program is not None
    assert all(f"  ● {declared}" in str(found) for declared in found.program.maps)


def test_min_and_max_count_as_free_and_the_notes_say_so() -> None:
    """In CQAP0 without them: A and the group are in the same atoms; with MIN(C), C is below the bound B."""
    found = ivme.explain("Q(A, MIN(C) | .) = R(A, B), S(A, B, C)")
    assert "MIN(C) is not a sum in a ring: C counts as free, below the groups, when widths are computed" in found.notes
    assert (found.query_class, found.dynamic_width) == ("CQAP1", Fraction(1))
    assert any("would be in class CQAP0" in note for note in found.notes)


def test_the_hardest_of_several_ordered_variables_decides_the_class() -> None:
    assert ivme.explain("Q(A, MAX(A), MIN(C) | .) = R(A, B), S(A, B, C)").query_class == "CQAP1"


@pytest.mark.parametrize("graph", ["digraph", "acyclic", "undirected"])
def test_a_closure_is_explained_without_a_program(graph: str) -> None:
    found = ivme.explain("Q(X, Y) = closure(edge)", graph=graph)
    assert (f"closure/{graph}", "closure", None) == (found.query_class, found.strategy, found.program)
    assert (None, None) == (found.lower_bound, found.static_width)
    json.dumps(found.to_dict())
    assert all("edge" in drawing for drawing in (found.svg(), found.mermaid()))


def test_a_closure_that_is_joined_is_a_relation_of_its_own() -> None:
    found = ivme.explain("Q(X, Z) = closure(edge)(X, Y), R(Y, Z)")
    assert ("closure/joined", "skew") == (found.query_class, found.strategy)
    assert any("closure(edge) is maintained by strategy `closure`" in note for note in found.notes)
    assert found.lower_bound is None


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, list) else [value]


def test_a_dict_has_strings_for_exponents_and_no_floats() -> None:
    found = ivme.explain(TRIANGLE, epsilon=0.25).to_dict()
    assert found == json.loads(json.dumps(found))
    assert {str, bool, type(None)} >= {type(leaf) for leaf in _leaves(found)}
    assert found["delay"] == {
        "text": "O(N^min(2ε, 2-2ε))",
        "exponent": "min(2ε, 2-2ε)",
        "value": "1/2",
        "amortised": False,
    }


def test_a_plan_that_chooses_its_own_epsilon_has_values_there() -> None:
    assert ivme.explain("Q(C | A, B) = R(A, B), S(B, C), T(C, A)").to_dict()["update"]["value"] == "1/2"


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(rule_texts(max_atoms=4, max_variables=5, aggregates=False, constants=True))
def test_every_rule_is_explained_and_every_stored_view_is_in_its_tree(text: str) -> None:
    found = ivme.explain(text)
    assert json.dumps(found.to_dict())
    assert max(map(len, str(found).split("\n"))) <= 100
    assert found.program is not None
    if found.view_trees and found.strategy != "skew":  # listings and heavy keys are in no tree
        shown = {stored_map(found.program, node) for tree in found.view_trees for node in tree.walk()}
        assert {declared.name for declared in found.program.maps} <= shown


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(rule_texts(max_atoms=4, max_variables=5, aggregates=True))
def test_rules_with_aggregates_are_explained_and_cqap0_means_constant(text: str) -> None:
    found = ivme.explain(text)
    assert (found.query_class == "CQAP0") == (found.dynamic_width == 0)
    if found.query_class == "CQAP0":
        assert (str(found.update), str(found.delay)) == ("O(1)", "O(1)")


def test_a_note_says_that_other_strategies_were_not_compared() -> None:
    def noted(atoms: int) -> bool:
        found = ivme.explain("Q(.) = " + ", ".join(f"R{i}(A{i}, A{i + 1})" for i in range(atoms)))
        return f"other strategies were not compared: the query has {atoms} atoms" in found.notes

    assert [noted(3), noted(12)] == [False, True]


def test_an_explanation_says_its_cost_in_a_sentence_and_bounds_as_they_are_written() -> None:
    found = ivme.explain("Q(A, SUM(B)) = R(A, B)")
    assert found.verdict == found.to_dict()["verdict"] == str(found).split("\n\n")[1].replace("\n", " ")
    assert repr(found.updates) == "{'R': O(1)}"
