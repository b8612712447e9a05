"""Whatever the text, the SQL front end either makes a query or raises an error of ivme."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.errors import IvmeError, QueryError
from ivme.query.ddl import parse_create_tables
from ivme.query.model import Query, Table, table
from ivme.query.sql import parse_sql
from tests.example_counts import examples

TABLES = [
    table("r", {"a": "int", "b": "int"}),
    table("s", {"b": "int", "c": "string", "d": "date"}),
    table("edge", {"src": "int", "dst": "int"}),
]
VALID = [
    "SELECT r.a , COUNT ( * ) AS n FROM r JOIN s ON r.b = s.b WHERE s.c = :c AND r.a > 3 GROUP BY r.a",
    "SELECT DISTINCT a , b + 1 AS x FROM r WHERE a IN ( 1 , 2 ) OR b BETWEEN 3 AND 4",
    "SELECT * FROM r JOIN s USING ( b ) , edge e WHERE e . src = r . a",
    "SELECT UPPER ( c ) u , SUM ( b ) , AVG ( b * 2.5 ) , COUNT ( DISTINCT d ) FROM s GROUP BY u",
    "SELECT x . a AS xa FROM r x CROSS JOIN r y WHERE x . a = y . b AND CASE WHEN x . b = 1 THEN TRUE END",
    "SELECT YEAR ( d ) FROM s WHERE NOT c LIKE 'a%' ESCAPE '!' AND d >= DATE '2020-01-01' AND CAST ( b AS STRING ) = c",
    "WITH RECURSIVE p ( x , y ) AS ( SELECT src , dst FROM edge UNION SELECT p . x , e . dst FROM p JOIN edge e "
    "ON p . y = e . src ) SELECT x , y FROM p WHERE x = :start",
]
ODD = """ORDER_BY LIMIT LEFT HAVING UNION OVER (SELECT_1) NULL - :: ` ' " ; ? $p {p} [ ] -> INTERVAL LATERAL VIEW
PIVOT EXISTS FILTER ALL 1e999 0x . /* -- */ é \x00 TRY_CAST EXTRACT TABLESAMPLE VALUES UNNEST |> @ #
:p @@p %s f(x) IDENTIFIER('a') (a,_b) AS_x_(a) FOR_UPDATE VARCHAR(2) UNION_ALL"""
WORDS = [*sorted({word for text in VALID for word in text.split()}), *(word.replace("_", " ") for word in ODD.split())]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid query after a few deletions, insertions, duplications and swaps of its words."""
    words = draw(st.sampled_from(VALID)).split()
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(words) - 1, 0)))
        match draw(st.sampled_from(["delete", "insert", "duplicate", "swap", "replace"])):
            case "delete":
                del words[place : place + 1]
            case "insert":
                words.insert(place, draw(st.sampled_from(WORDS)))
            case "duplicate":
                words[place:place] = words[place : place + 1]
            case "replace":
                words[place : place + 1] = [draw(st.sampled_from(WORDS))]
            case "swap":
                other = draw(st.integers(0, max(len(words) - 1, 0)))
                if words:
                    words[place], words[other] = words[other], words[place]
    return draw(st.sampled_from([" ", "\n"])).join(words)


def read(text: str) -> None:
    """Parses with and without declared tables, and checks that errors point into the text."""
    for tables in (TABLES, ()):
        outcome = read_or_refuse(text, tables)
        if isinstance(outcome, QueryError):
            assert outcome.position is None or 0 <= outcome.position <= len(text)
        assert str(outcome)
    with suppress(IvmeError):
        parse_create_tables(text)


def read_or_refuse(text: str, tables: Iterable[Table]) -> Query | IvmeError:
    try:
        return parse_sql(text, tables)
    except IvmeError as error:
        return error


@pytest.mark.parametrize("text", VALID)
def test_the_texts_that_are_mutated_are_queries(text: str) -> None:
    assert parse_sql(text, TABLES).text == text


@settings(max_examples=examples(300), deadline=None)
@given(mutated())
def test_a_mutated_query_is_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(lambda words: "SELECT " + " ".join(words)))
def test_a_random_list_of_words_is_read_or_refused(text: str) -> None:
    read(text)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["", "SELECT ", "SELECT a FROM r WHERE ", "CREATE TABLE t ("]))
def test_random_text_is_read_or_refused(text: str, start: str) -> None:
    read(start + text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 2000 + "a" + ")" * 2000 + " FROM r",
        "SELECT a FROM r WHERE " + " OR ".join(["a = 1"] * 3000),
        "SELECT a FROM r WHERE " + " AND ".join(["a > 1"] * 3000),
        "SELECT a" + " + 1" * 3000 + " FROM r",
        "SELECT " + "NOT " * 2000 + "a FROM r",
        "SELECT " + "CASE WHEN TRUE THEN " * 500 + "a" + " END" * 500 + " FROM r",
        "SELECT a FROM r WHERE a = " + "9" * 6000,
        "SELECT a FROM r WHERE a IN (" + ", ".join(map(str, range(3000))) + ")",
    ],
    ids=["parentheses", "or", "and", "sum", "not", "case", "digits", "in"],
)
def test_long_and_deep_texts_are_read_or_refused(text: str) -> None:
    read(text)
