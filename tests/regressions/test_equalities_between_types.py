"""An equality between columns of different types compares them as Spark does, and changes neither.

The common type of both was once the type of the variable: 2^53 and 2^53 + 1, which equal the same double, became one
integer, one group and one row of a request, and `verify()` agreed.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ivme
from ivme.errors import IvmeError, SchemaError, VerificationError
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples, some_of
from tests.sharded_databases import local_database

BIG = 2**53
TABLES = {
    "a": {"x": "int", "g": "int"},
    "b": {"y": "float", "z": "int"},
    "c": {"w": "decimal(20, 2)", "z": "int"},
    "d": {"t": "timestamp"},
    "e": {"t": "date", "x": "float"},
}
ROWS: dict[str, list[Any]] = {
    "a": [(BIG, 1), (BIG + 1, 2), (3, 3), (None, 4)],
    "b": [(float(BIG), 7), (3.0, 8), (3.5, 9), (None, 10)],
    "c": [(Decimal(BIG + 1), 7), (Decimal("3.00"), 8), (Decimal("3.50"), 9)],
    "d": [(datetime.datetime(2026, 1, 1),), (datetime.datetime(2026, 1, 1, 12),)],
    "e": [(datetime.date(2026, 1, 1), 3.0)],
}
DAY = datetime.date(2026, 1, 1)


@pytest.fixture(params=some_of([*BACKENDS, "sharded"], *BACKENDS))
def db(request: Any, tmp_path: Path) -> Any:
    made: Any = local_database(tmp_path, 3) if request.param == "sharded" else make_database(request.param)
    for name, schema in TABLES.items():
        made.create_table(name, schema)
        made.insert(name, ROWS[name])
    return made


ANSWERS: list[tuple[str, list[Any]]] = [
    ("SELECT a.x, b.z FROM a JOIN b ON a.x = b.y", [(3, 8), (BIG, 7), (BIG + 1, 7)]),
    ("SELECT b.y, a.x FROM a JOIN b ON b.y = a.x", [(3.0, 3), (float(BIG), BIG), (float(BIG), BIG + 1)]),
    ("SELECT DISTINCT a.x FROM a JOIN b ON a.x = b.y", [(3,), (BIG,), (BIG + 1,)]),
    ("SELECT a.x, COUNT(*) AS n FROM a JOIN b ON a.x = b.y GROUP BY a.x", [(3, 1), (BIG, 1), (BIG + 1, 1)]),
    ("SELECT b.y, COUNT(*) AS n FROM a JOIN b ON a.x = b.y GROUP BY b.y", [(3.0, 1), (float(BIG), 2)]),
    ("SELECT COUNT(DISTINCT a.x) AS n FROM a JOIN b ON a.x = b.y", [(3,)]),
    ("SELECT SUM(a.x) AS s, MAX(a.x) AS m FROM a JOIN b ON a.x = b.y", [(2 * BIG + 4, BIG + 1)]),
    ("SELECT a.x, c.w FROM a JOIN c ON a.x = c.w", [(3, Decimal("3.00")), (BIG + 1, Decimal(BIG + 1))]),
    (
        "SELECT b.y, c.w FROM b JOIN c ON b.y = c.w AND b.z = c.z",
        [(3.0, Decimal(3)), (3.5, Decimal("3.50")), (float(BIG), Decimal(BIG + 1))],
    ),
    ("SELECT e.t, d.t AS u FROM d JOIN e ON d.t = e.t", [(DAY, datetime.datetime(2026, 1, 1))]),
    ("SELECT x, e.t FROM a JOIN e USING (x)", [(3, DAY)]),
    ("SELECT x FROM a WHERE x = 9007199254740993.0", [(BIG + 1,)]),
    ("SELECT x FROM a WHERE x = 9007199254740993e0", [(BIG,), (BIG + 1,)]),
    ("SELECT x FROM a WHERE x IN (9007199254740993, 1.5)", [(BIG + 1,)]),
    ("SELECT x FROM a WHERE x IN (9007199254740993, 1e0)", [(BIG,), (BIG + 1,)]),
    ("SELECT x FROM a WHERE x > 9007199254740992.5", [(BIG + 1,)]),
    ("SELECT z FROM b WHERE y = 3.50", [(9,)]),
    ("SELECT z FROM c WHERE w = 3.5e0", [(9,)]),
    ("Q(X, Z) = a(X, _), b(X, Z)", [(3, 8), (BIG, 7), (BIG + 1, 7)]),
    ("Q(X, count) = b(X, _), a(X, _)", [(3.0, 1), (float(BIG), 2)]),
    ("Q(X, G) = a(X, G), b(X, _), c(X, _)", [(3, 3), (BIG + 1, 2)]),
]


@pytest.mark.parametrize(("query", "expected"), ANSWERS)
def test_each_column_stays_as_it_is(db: Any, query: str, expected: list[Any]) -> None:
    view = db.create_view("v", query)
    assert sorted(view) == sorted(expected)
    assert {tuple(map(type, row)) for row in view} == {tuple(map(type, row)) for row in expected}
    view.verify()


REQUESTS: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("SELECT b.z FROM a JOIN b ON a.x = b.y WHERE a.x = :p", {"p": BIG + 1}, [(7,)]),
    ("SELECT a.x, a.g FROM a JOIN b ON a.x = b.y WHERE a.x = :p", {"p": BIG + 1}, [(BIG + 1, 2)]),
    ("SELECT a.x FROM a JOIN b ON a.x = b.y WHERE b.y = :p", {"p": float(BIG)}, [(BIG,), (BIG + 1,)]),
    ("SELECT a.g, b.z FROM a, b WHERE a.x = :p AND b.y = :p", {"p": BIG + 1}, [(2, 7)]),
    ("SELECT a.g, b.z FROM a, b WHERE b.y = :p AND a.x = :p", {"p": float(BIG)}, [(1, 7), (2, 7)]),
    ("SELECT COUNT(*) AS n FROM a, b WHERE a.x = b.y AND a.x = :p", {"p": 5}, [(0,)]),
    ("Q(Z | X) = a(X, _), b(X, Z)", {"X": BIG + 1}, [(7,)]),
]


@pytest.mark.parametrize(("query", "request_", "expected"), REQUESTS)
def test_each_request_finds_its_own_rows(db: Any, query: str, request_: dict[str, Any], expected: list[Any]) -> None:
    view = db.create_view("v", query)
    assert sorted(view(**request_)) == expected
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_on_views_and_followers_see_the_declared_types(backend: str) -> None:
    db = make_database(backend)
    for name in "ab":
        db.create_table(name, TABLES[name])
    joined = db.create_view("joined", "SELECT a.x, b.z FROM a JOIN b ON a.x = b.y")
    counted = db.create_view("counted", "SELECT x, COUNT(*) AS n FROM joined GROUP BY x")
    changes = joined.changes()
    for name in "ab":
        db.insert(name, ROWS[name])
    assert sorted(counted) == [(3, 1), (BIG, 1), (BIG + 1, 1)]
    db.delete("a", [(BIG, 1)])
    assert sorted(counted) == [(3, 1), (BIG + 1, 1)]
    total: dict[Any, int] = {}
    for change in changes:
        for row, weight in change.items():
            total[row] = total.get(row, 0) + weight
    assert {row for row, weight in total.items() if weight} == set(joined)
    counted.verify()


@pytest.mark.parametrize(
    "query", ["Q(A) = R(A), S(A)", "SELECT R.a FROM R JOIN S ON R.a = S.a", "SELECT a FROM R JOIN S USING (a)"]
)
def test_explain_refuses_what_create_view_refuses(query: str) -> None:
    tables = {"R": {"a": "int"}, "S": {"a": "string"}}
    db = make_database("pure")
    for name, schema in tables.items():
        db.create_table(name, schema)
    with pytest.raises(IvmeError, match="int and string"):
        ivme.explain(query, tables)
    with pytest.raises(IvmeError, match="int and string"):
        db.create_view("v", query)


def test_explain_shows_the_widths_of_the_keys() -> None:
    explained = ivme.explain("Q(Z | X) = a(X, _), b(X, Z)", TABLES)
    assert str(explained.query).endswith("a(X, _1, X_float), b(X_float, Z)")


def test_ends_of_edges_that_are_not_the_same_nodes_are_refused() -> None:
    db = make_database("pure")
    db.create_table("edge", {"src": "int", "dst": "float"})
    for query in ("Q(X, Y) = closure(edge)(X, Y)", "Q(X) = closure(edge)(X, Y), edge(Y, X)"):
        with pytest.raises(SchemaError, match="give both one type"):
            db.create_view("v", query)


def test_verify_finds_a_column_that_changed_its_type(monkeypatch: Any) -> None:
    db = make_database("pure")
    db.create_table("a", TABLES["a"])
    db.insert("a", [(1, 1)])
    view = db.create_view("v", "SELECT x FROM a")
    monkeypatch.setattr(ivme.View, "items", lambda *_: iter([((1.0,), 1)]))
    with pytest.raises(VerificationError, match=r"has the row \(1\.0,\); computed from its tables it is \(1,\)"):
        view.verify()


def test_verify_finds_rows_of_requests_that_should_have_none(monkeypatch: Any) -> None:
    db = make_database("pure")
    for name in "ab":
        db.create_table(name, TABLES[name])
    db.insert("a", [(5, 1)])
    view = db.create_view("v", "SELECT b.z FROM a JOIN b ON a.x = b.y WHERE a.x = :p")
    monkeypatch.setattr(ivme.View, "items", lambda *_, **__: iter([((7,), 1)]))
    with pytest.raises(VerificationError, match=r"for \(5,\) has the row \(7,\) 1 times"):
        view.verify()


# Against nested loops

NUMBERS = st.sampled_from([0, 1, BIG - 1, BIG, BIG + 1, BIG + 2, -BIG - 1])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": NUMBERS,
    "float": NUMBERS.map(float) | st.just(0.5),
    "decimal(18, 1)": NUMBERS.map(Decimal) | st.just(Decimal("0.5")),
    "decimal(20, 2)": NUMBERS.map(Decimal) | st.just(Decimal("0.50")),
}


def are_equal(one: Any, other: Any) -> bool:
    return bool(float(one) == float(other) if float in (type(one), type(other)) else one == other)


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(BACKENDS))
def test_joins_are_those_of_nested_loops(data: Any, backend: str) -> None:
    types = [data.draw(st.sampled_from(sorted(VALUES))) for _ in range(3)]
    tables = [data.draw(st.lists(st.tuples(VALUES[type_]), min_size=1, max_size=5)) for type_ in types]
    first, second = data.draw(st.sampled_from([((0, 1), (1, 2)), ((0, 1), (0, 2)), ((0, 2), (1, 2))]))
    db = make_database(backend)
    for number, type_ in enumerate(types):
        db.create_table(f"t{number}", {"v": type_})
    on = " AND ".join(f"t{i}.v = t{j}.v" for i, j in (first, second))
    view = db.create_view("v", f"SELECT t0.v AS a, t1.v AS b, t2.v AS c FROM t0, t1, t2 WHERE {on}")
    groups = db.create_view("g", f"SELECT t1.v AS b, COUNT(*) AS n FROM t0, t1, t2 WHERE {on} GROUP BY t1.v")
    for number, rows in enumerate(tables):
        db.insert(f"t{number}", rows)
    expected = [
        (*one, *two, *three)
        for one, two, three in product(*tables)
        if all(are_equal((one, two, three)[i][0], (one, two, three)[j][0]) for i, j in (first, second))
    ]
    assert sorted(view) == sorted(expected)
    assert sum(n for _, n in groups) == len(expected)
    assert {b for b, _ in groups} == {b for _, b, _ in expected}
    view.verify()
    groups.verify()


def test_a_column_of_another_type_than_a_closures_keeps_its_type() -> None:
    """It was shown in the closure's type."""
    db = ivme.Database()
    db.create_table("e", {"a": "int", "b": "int"})
    db.create_table("r", {"d": "decimal(20,2)"})
    paths = "WITH RECURSIVE p(x, y) AS (SELECT a, b FROM e UNION SELECT p.x, e.b FROM p JOIN e ON p.y = e.a) "
    direct = db.create_view("direct", paths + "SELECT p.y, r.d FROM p, r WHERE p.y = r.d")
    db.create_view("p", paths + "SELECT x, y FROM p")
    view = db.create_view("v", "SELECT p.y, r.d FROM p JOIN r ON p.y = r.d")
    db.insert("e", [(1, 2), (2, 3)])
    db.insert("r", [(Decimal("3"),)])
    assert [(3, Decimal("3.00")), (3, Decimal("3.00"))] == list(view) == list(direct)
