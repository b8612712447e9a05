"""Queries that are explained without being made."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ivme
from ivme.database import Database
from ivme.serve.explaining import MOST_CHARACTERS, explain_request
from ivme.serve.grants import OPEN
from ivme.serve.problem import Problem


def explain(client: httpx.Client, query: Any, **options: Any) -> httpx.Response:
    return client.post("/explain", json={"query": query, "options": options})


def test_a_query_is_explained_over_the_tables_and_views_that_are_there(client: httpx.Client, db: Database) -> None:
    for query in (
        "SELECT f.no FROM flights f JOIN airports a ON f.src = a.id WHERE a.city = :city",
        "Q(A, COUNT) = flights(N, A, B), airports(B, C)",
        "SELECT city FROM per_city WHERE n = :n",
    ):
        found = explain(client, query).json()
        made = db.create_view("Q", query).explain().to_dict()
        db.drop_view("Q")
        assert made == {name: value for name, value in found.items() if name not in ("tradeoff", "cost", "parameters")}


def test_nothing_is_made(client: httpx.Client, db: Database) -> None:
    before = db.views, db.entries()
    explain(client, "Q(A) = airports(A, B)")
    assert before == (db.views, db.entries())


def test_the_curve_has_the_exponents_of_the_source_at_each_epsilon(client: httpx.Client) -> None:
    """Source 003, section 5: a hierarchical query that is not in CQAP_0 trades N^ε for N^(1-ε)."""
    query = "SELECT f.no, g.no AS other FROM flights f JOIN flights g ON f.src = g.src"
    curve = explain(client, query, strategy="skew", epsilon=0.25).json()["tradeoff"]
    assert [i / 12 for i in range(13)] == pytest.approx(curve["epsilon"])
    assert curve["epsilon"] == pytest.approx(curve["update"])
    assert [1 - epsilon for epsilon in curve["epsilon"]] == pytest.approx(curve["delay"])


def test_bounds_without_epsilon_have_no_curve(client: httpx.Client) -> None:
    assert None is explain(client, "Q(A, B) = airports(A, B)").json()["tradeoff"]
    assert None is client.get("/views/search/explain").json()["tradeoff"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "expected the name of the query"),
        ("SELECT no FROM trains", "there is no table 'trains'"),
        ("SELECT no, FROM flights", ""),
        ("SELECT nothing FROM flights", "nothing"),
        ("Q(A) = flights(A)", "flights"),
        ("SELECT f.no FROM flights f TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT no FROM search", "parameters"),
        ("SELECT no FROM flights WHERE src = 'London'", ""),
        ("SELECT * FROM ivme_requests", "there is no table"),
        ("\x00", ""),
        ("SELECT " + "(" * 3000, "nested"),
    ],
)
def test_a_query_that_cannot_be_maintained_is_refused_with_the_reason(
    client: httpx.Client, query: str, said: str
) -> None:
    client.post("/tables/flights/changes", json={"insert": []}, headers={"Idempotency-Key": "makes ivme_requests"})
    found = explain(client, query)
    assert 422 == found.status_code
    assert said in found.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": 17}, 422),
        ({"query": None}, 422),
        ({"query": "Q(A) = airports(A, B)", "options": []}, 422),
        ({"query": "Q(A) = airports(A, B)", "options": {"epsilon": "x"}}, 422),
        ({"query": "Q(A) = airports(A, B)", "options": {"nothing": 1}}, 422),
        ({"query": "Q(A) = airports(A, B)", "options": {"semantics": []}}, 422),
        ({"query": "Q(A) = airports(A, B)", "more": 1}, 422),
        ({"query": "x" * (MOST_CHARACTERS + 1)}, 413),
        ([], 422),
        (17, 422),
    ],
)
def test_a_body_that_asks_for_no_explanation_is_refused(steady: httpx.Client, body: Any, status: int) -> None:
    assert status == steady.post("/explain", json=body).status_code


def test_a_body_that_is_not_json_is_refused(steady: httpx.Client) -> None:
    assert 415 == steady.post("/explain", content=b"query=x").status_code
    assert 400 == steady.post("/explain", content=b"{", headers={"Content-Type": "application/json"}).status_code
    assert 405 == steady.get("/explain").status_code


WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "COUNT(*)",
    "JOIN",
    "ON",
    "AS",
    "=",
    ",",
    "(",
    ")",
    "|",
    ":p",
    "'",
    ";",
    "*",
]
NAMES = [
    "flights",
    "airports",
    "per_city",
    "f",
    "no",
    "src",
    "id",
    "city",
    "Q",
    "A",
    "B",
    "1",
    "1e999",
    "NULL",
    "\ud800",
]


def outcome(db: Database, query: str) -> tuple[int, str]:
    """The class of a query, or why it is refused."""
    try:
        return 200, str(explain_request(db, json.dumps({"query": query}).encode(), OPEN)["query_class"])
    except Problem as problem:
        return problem.status, problem.message


def test_any_text_is_explained_or_refused_with_a_reason(steady_db: Database) -> None:
    @settings(max_examples=150, deadline=None)
    @given(words=st.lists(st.sampled_from(WORDS + NAMES), max_size=14))
    def check(words: list[str]) -> None:
        status, said = outcome(steady_db, " ".join(words))
        assert status in (200, 422)
        assert said

    check()


def test_the_same_as_the_library_says(steady: httpx.Client) -> None:
    tables = {"airports": {"id": "int", "city": "string"}}
    query = "Q(A | B) = airports(A, B)"
    assert ivme.explain(query, tables).to_dict()["program"] == explain(steady, query).json()["program"]
