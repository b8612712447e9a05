"""Which templates make a schema a tree schema, and what generates them."""

from __future__ import annotations

from ivme.plan.order.templates import Template, templates_of
from ivme.query.rule import parse_rule
from ivme.structure.hypergraph import cqap_of


def templates(text: str) -> tuple[Template, ...]:
    query = parse_rule(text)
    cqap = cqap_of(query)
    schemas = {edge.label: atom.variables for edge, atom in zip(cqap.hypergraph.edges, query.atoms, strict=True)}
    return templates_of(cqap, schemas)


def described(text: str) -> list[str]:
    return [str(template).split("(", 1)[1] for template in templates(text)]


def test_a_free_connex_query_needs_none() -> None:
    assert templates("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)") == ()


def test_a_triangle_is_one_template_that_all_relations_generate() -> None:
    assert described("Q(A, B, C) = R(A, B), S(B, C), T(C, A)") == ["A, B, C) = ∃R(A, B) ⋈ ∃S(B, C) ⋈ ∃T(C, A)"]


def test_an_output_in_no_relation_is_in_a_template() -> None:
    assert described("Q(A, C) = R(A, B), S(B, C)") == ["A, B, C) = ∃R(A, B) ⋈ ∃S(B, C)"]


def test_a_relation_that_sticks_out_is_projected() -> None:
    (template,) = templates("Q(A, B, C) = R(A, B, X), S(B, C), T(C, A), U(X, Y)")
    assert ("R", ("A", "B")) in template.generators


def test_projections_within_another_one_are_left_out() -> None:
    first, second = templates("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D), U(D, A)")
    assert [label for label, _ in first.generators] == ["R", "S"]
    assert [label for label, _ in second.generators] == ["T", "U"]


def test_a_bag_that_would_be_a_product_is_merged_with_another() -> None:
    """Bags of three variables have the same width 2, but one of them would be all A with all pairs (C, D)."""
    found = templates("Q(A, B, C, D, E, F) = R(A, B), S(B, C), T(C, D), U(D, E), V(E, F), W(F, A)")
    assert [4, 4] == [len(template.schema) for template in found]
    assert all(len(template.generators) == 3 for template in found)


def test_the_name_of_a_template_is_no_relation_of_the_query() -> None:
    (template,) = templates("Q(A, B, C) = `template 1`(A, B), S(B, C), T(C, A)")
    assert template.name == "template '1"
