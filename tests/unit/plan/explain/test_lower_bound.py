"""A lower bound is claimed where its proof goes through, and nowhere else (erratum 15)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import ivme
from ivme.plan.explain.lower_bound import LowerBound
from ivme.query.model import Table, table

HARD = "Q(. | .) = R(A), S(A, B), T(B)"
TRIANGLE = "R(A, B), S(B, C), T(C, A)"


def bound_of(text: str, *tables: Table, **options: Any) -> LowerBound | None:
    return ivme.explain(text, tables or None, **options).lower_bound


def claimed(text: str, *tables: Table, **options: Any) -> LowerBound:
    found = bound_of(text, *tables, **options)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "delay", "source"),
    [
        (HARD, "O(N^(1/2-γ)) delay", "003, Theorem 3.11"),
        ("Q(A | .) = R(A, B), S(B)", "O(N^(1/2-γ)) delay", "003, section 5.6, Corollary 5.34"),
        (f"Q(. | .) = {TRIANGLE}", " O(1) delay", "003, Proposition 6.8"),
        (f"Q(B | A) = {TRIANGLE}", "O(N^(1-γ)) delay", "003, Proposition 6.8"),
        (f"Q(C | A, B) = {TRIANGLE}", "O(N^(1/2-γ)) delay", "003, Proposition 6.8"),
        (f"Q(A, B, C) = {TRIANGLE}", " O(1) delay", "003, Proposition 6.8"),
    ],
)
def test_each_class_has_the_bound_of_its_proposition(text: str, delay: str, source: str) -> None:
    found = claimed(text)
    assert (Fraction(1, 2), source) == (found.exponent, found.source)
    assert delay in str(found)
    assert "unless the OMv conjecture fails" in str(found)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (HARD, "A and B are crossed: R has A but not B, S has both, T has B but not A"),
        ("Q(A | .) = R(A, B), S(B)", "B dominates A (R has both, S only B), and A is free and B is bound"),
        ("Q(A | B) = R(A, B), S(A)", "A dominates B (R has both, S only A), and B is input and A is not"),
    ],
)
def test_the_pattern_to_blame_is_named_in_the_querys_own_names(text: str, pattern: str) -> None:
    assert pattern == claimed(text).pattern


def test_a_query_in_cqap0_needs_no_bound() -> None:
    assert bound_of("Q(A, B, C) = R(A, B), S(A, C)") is None


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("Q(. | .) = E(A, B), E(B, C), E(C, A)", {}, "E is repeated"),
        (HARD, {"append_only": "R"}, "R is append-only"),
        (HARD, {"static": "T"}, "T is static"),
        ("Q(X, Y) = closure(edge)", {}, "for closures"),
    ],
)
def test_no_bound_is_claimed_where_the_proof_does_not_apply(text: str, options: dict[str, Any], reason: str) -> None:
    found = ivme.explain(text, **options)
    assert found.lower_bound is None
    assert any(note.startswith("no lower bound is claimed") and reason in note for note in found.notes)


def test_sums_keep_the_bound() -> None:
    assert claimed("Q(A, SUM(B) | .) = R(A, B), S(B)").exponent == Fraction(1, 2)


def test_a_variable_that_is_free_only_for_our_widths_gives_no_bound() -> None:
    """Q(.) = R(A, B), S(B) is in CQAP0; that MIN(A) wants A above the bound B is no fact about all algorithms."""
    found = ivme.explain("Q(MIN(A) | .) = R(A, B), S(B)")
    assert (found.query_class, found.lower_bound) == ("CQAP1", None)


R = table("R", {"a": "int"})
S = table("S", {"a": "int", "b": "int", "id": "int"})
T = table("T", {"b": "int"})
COUNT = "SELECT COUNT(*) FROM R JOIN S ON R.a = S.a JOIN T ON S.b = T.b"


@pytest.mark.parametrize(
    ("where", "tables", "reason"),
    [
        (" WHERE S.b IN (1, 2)", (R, S, T), "the filter on b of S"),
        ("", (R, replace(S, primary_key=("a",)), T), "the primary key of S"),
        ("", (R, table("S", {"a": "int", "b": "bool"}), table("T", {"b": "bool"})), "two values"),
    ],
)
def test_what_forbids_the_databases_of_the_proof_forbids_the_claim(
    where: str, tables: tuple[Table, ...], reason: str
) -> None:
    found = ivme.explain(COUNT + where, tables)
    assert found.lower_bound is None
    assert any(reason in note for note in found.notes)


@pytest.mark.parametrize(
    ("where", "tables"),
    [
        ("", (R, S, T)),
        (" WHERE S.id > 3", (R, S, T)),
        ("", (R, replace(S, primary_key=("a", "b")), T)),
        ("", (replace(R, primary_key=("a",)), replace(S, primary_key=("id",)), T)),
    ],
)
def test_filters_and_keys_beside_the_pattern_leave_the_claim(where: str, tables: tuple[Table, ...]) -> None:
    claimed(COUNT + where, *tables)


@pytest.mark.parametrize(
    "where",
    [
        "S.id = NULL",
        "S.id = 1 AND S.id = 2",
        "S.id <> S.id",
        "S.id IN (NULL)",
        "S.id IS NULL AND S.id = 3",
        "S.id > 3 AND S.id < 3",
        "S.id = 1.5",
        "S.id < -9223372036854775808",
        "S.id IN (1, 2) AND NOT S.id < 3",
    ],
)
def test_no_bound_is_claimed_under_a_filter_that_nothing_passes(where: str) -> None:
    found = ivme.explain(f"{COUNT} WHERE {where}", (R, S, T))
    assert found.lower_bound is None
    assert any("no row of S is known to pass the filter" in note for note in found.notes)


@pytest.mark.parametrize(
    "where",
    [
        "S.id = 3",
        "S.id BETWEEN 3 AND 3",
        "S.id > 3 AND S.id <> 4 AND S.id < 10",
        "S.id IN (NULL, 3)",
        "S.id IS NOT NULL",
        "NOT S.id = 3",
    ],
)
def test_a_filter_that_a_row_passes_beside_the_pattern_leaves_the_claim(where: str) -> None:
    claimed(f"{COUNT} WHERE {where}", R, S, T)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("S.id = U.x AND S.id = 1 AND U.x = 2", "the filter on id of S, which is joined"),
        ("NULLIF(S.id, S.id) = U.x", "is computed from columns of S"),
        ("NULLIF(S.id, S.id) = :given", "is computed from columns of S"),
    ],
)
def test_no_bound_is_claimed_where_a_join_beside_the_pattern_may_be_empty(where: str, reason: str) -> None:
    found = ivme.explain(f"{COUNT} CROSS JOIN U WHERE {where}", (R, S, T, table("U", {"x": "int"})))
    assert found.lower_bound is None
    assert any(reason in note for note in found.notes)


def test_a_constant_that_its_column_cannot_hold_gives_no_bound() -> None:
    body = "Q(.) = R(A), S(A, B, 1.234), T(B)"
    tables = [R, table("S", {"a": "int", "b": "int", "c": "decimal(10, 3)"}), T]
    claimed(body, *tables)
    tables[1] = table("S", {"a": "int", "b": "int", "c": "decimal(10, 2)"})
    assert bound_of(body, *tables) is None


def test_a_variable_over_columns_of_different_types_gives_no_bound() -> None:
    assert bound_of(HARD, R, table("S", {"a": "float", "b": "int"}), T) is None


def test_a_group_that_the_rows_hide_gives_no_bound() -> None:
    body = "COUNT(*) FROM R JOIN S ON R.b = S.b GROUP BY R.a"
    claimed(f"SELECT R.a, {body}")
    found = ivme.explain(f"SELECT {body}")
    assert found.lower_bound is None
    assert any("its proof reads a from the rows, which do not show it" in note for note in found.notes)


def test_a_key_column_of_two_values_is_no_fresh_value() -> None:
    wide = table("S", {"a": "int", "b": "int", "flag": "bool", "id": "int"})
    claimed(COUNT, R, replace(wide, primary_key=("flag", "id")), T)
    assert bound_of(COUNT, R, replace(wide, primary_key=("flag",)), T) is None


def test_four_cliques_have_a_bound_of_their_own() -> None:
    clique = "R(A, B), S(B, C), T(C, D), U(D, A), V(A, C), W(B, D)"
    for head in ("Q(.)", "Q(A, B, C, D)", "Q(COUNT)"):
        found = ivme.explain(f"{head} = {clique}").lower_bound
        assert found is not None
        assert found.exponent == 1
        assert "4-clique" in found.text
    for other in (f"Q(. | A) = {clique}", f"Q(.) = {clique.replace('W(B, D)', 'W(B, E)')}"):
        found = ivme.explain(other).lower_bound
        assert found is None or found.exponent == Fraction(1, 2)
    columns = {"x": "int", "y": "int"}
    keyed = [table(name, columns, primary_key="x" if name == "R" else None) for name in "RSTUVW"]
    assert ivme.explain(f"Q(.) = {clique}", keyed).lower_bound is None
