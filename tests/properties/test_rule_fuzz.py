"""Whatever text it is given, the rule parser makes a query or raises an error of ivme's own."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ivme.errors import IvmeError, QueryError
from ivme.query.model import Query, table
from ivme.query.rule import is_join, parse_rule
from ivme.query.sql_script import read_script
from tests.random_queries import rule_texts

SEEDS = (
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(DISTINCT A, B | C) :- db.R(A, _, 'it''s'), S(B, C, -1.50, 2e3, TRUE).",
    'Q(A, SUM(X), COUNT, COUNT(*), COUNT(DISTINCT X), min(A) | B) = R(A, X), `S t`(A, "B");',
    "Q(Y | X) = closure(edge)(X, Y), NOT r(X), X <> 3",
    "Q(A, SUM(A * 2) | B) = R(A, B), not edge(_, A), Z = A + 1, (Z < 3 or A in (1, 2)); Q(X, SUM(X) | B) = R(X, B).",
    "Q(x, y) = edge(x, y); Q(x, z) = Q(x, y), edge(y, z)",
    "Q(. | ·) = closure(edge)",
)
PIECES = (*"()|,.;=_'\"`·<!*+-:3AQR", ":-", "NULL", "DISTINCT ", "COUNT", "SUM(", "closure(", "1e999", "٣", "\n", "''")
KNOWN = (table("R", {"a": "int", "b": "date"}), table("edge", ["x", "y"]))
TYPED = (table("R", {"a": "int", "b": "int"}), table("edge", {"x": "int", "y": "int"}))


@st.composite
def mutated_rules(draw: st.DrawFn) -> str:
    """A valid rule, or nearly one, with a few slices replaced by pieces of the grammar or by anything."""
    text = draw(st.sampled_from(SEEDS) | rule_texts(max_atoms=3, aggregates=True, constants=True))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 3)))
        text = text[:start] + draw(st.sampled_from(PIECES) | st.text(max_size=2)) + text[end:]
    return text


@given(st.text() | st.text(alphabet="QRAB01(),|=.;:-_'\" \n") | mutated_rules())
def test_no_text_makes_the_parser_fail_in_any_other_way(text: str) -> None:
    for tables in ((), KNOWN):
        with contextlib.suppress(IvmeError):
            assert isinstance(parse_rule(text, tables), Query)


@given(mutated_rules())
def test_no_rule_makes_the_passes_behind_the_parser_fail_in_any_other_way(text: str) -> None:
    refused = _refusal_of_passes(text)
    assert refused is None or refused.text in ("", text)
    assert refused is None or refused.position is None or 0 <= refused.position <= len(text)


def _refusal_of_passes(text: str) -> QueryError | None:
    try:
        if not is_join(text, TYPED):
            read_script(text, TYPED)
    except QueryError as refused:
        return refused
    return None


def refusal(text: str) -> QueryError | None:
    try:
        parse_rule(text)
    except QueryError as refused:
        return refused
    return None


@given(mutated_rules())
def test_a_refusal_points_into_the_text_and_says_what_to_do(text: str) -> None:
    refused = refusal(text)
    if refused is not None:
        assert refused.position is not None
        assert 0 <= refused.position <= len(text)
        assert refused.instead


@given(rule_texts(constants=True) | rule_texts(aggregates=True))
def test_a_query_printed_and_read_again_is_the_same(text: str) -> None:
    query = parse_rule(text)
    assert parse_rule(str(query)) == query


@given(rule_texts(max_atoms=3), st.data())
def test_known_tables_change_the_names_of_columns_and_nothing_else(text: str, data: st.DataObject) -> None:
    inferred = parse_rule(text)
    tables = [table(t.name, [f"c{i}" for i in range(len(t.columns))]) for t in inferred.tables]
    query = parse_rule(text, data.draw(st.permutations(tables)))
    assert query.tables == tuple(tables)
    assert str(query) == str(inferred)
    assert replace(query, atoms=inferred.atoms, tables=inferred.tables) == inferred
