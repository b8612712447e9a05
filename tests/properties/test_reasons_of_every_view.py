"""Every kind of view says why a row is in it, by rows that alone in an empty database give this row, and why not."""

from __future__ import annotations

import random
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ivme.algebra.ring import Element
from ivme.database import Database
from ivme.errors import DataError
from ivme.rings import Covariance, Relational
from tests.conformance.test_view_kinds import KINDS
from tests.properties import test_parameters, test_rules, test_select
from tests.properties.window_queries import COLUMNS, normal, random_row, window_select
from tests.witnesses import Contents, whole_answers, witness

Row = tuple[Any, ...]

EVERY_KIND = [
    "SELECT R.a, S.c FROM R LEFT JOIN S ON R.b = S.b",
    "SELECT COUNT(*) AS n FROM R GROUP BY a",
    "SELECT R.a, COUNT(S.c) AS n FROM R FULL JOIN S ON R.b = S.b GROUP BY R.a HAVING COUNT(*) > 0",
    "SELECT a FROM R WHERE b NOT IN (SELECT b FROM S WHERE b IS NOT NULL)",
    "SELECT a, (SELECT COUNT(*) FROM S WHERE S.b = R.b) AS n FROM R",
    "SELECT a FROM R WHERE b >= ALL (SELECT b FROM S WHERE b IS NOT NULL)",
    "SELECT a FROM R EXCEPT ALL SELECT b FROM S",
    "SELECT a FROM R INTERSECT SELECT b FROM S UNION SELECT d FROM T",
    "SELECT a, b, COUNT(*) AS n FROM R GROUP BY CUBE(a, b)",
    "SELECT v.x, R.a FROM R JOIN (VALUES (1, 'one'), (2, 'two')) AS v(y, x) ON v.y = R.a",
    "SELECT 7 AS a UNION ALL SELECT a FROM R",
    "SELECT u.a, SUM(u.b) AS s FROM (SELECT a, b FROM R UNION ALL SELECT a, d FROM T) AS u GROUP BY u.a",
    "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS s, LAG(b) OVER (ORDER BY a, b) AS l FROM R",
    "SELECT a, NTILE(2) OVER (ORDER BY s) AS n FROM (SELECT a, SUM(b) AS s FROM R GROUP BY a) x",
    "SELECT a, b, AVG(b) OVER (ORDER BY a, b ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) AS s FROM R",
    "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS n FROM R QUALIFY n <= 2",
    "SELECT a FROM R UNION SELECT b FROM S ORDER BY a DESC LIMIT 2 OFFSET 1",
    "SELECT a, SUM(b) AS s FROM R GROUP BY a ORDER BY s NULLS LAST, a LIMIT 2",
    "SELECT R.a, S.c FROM R ASOF JOIN S ON R.b >= S.b",
    "SELECT R.a, COUNT(*) AS n FROM R JOIN S ON R.b < S.b GROUP BY R.a",
    "SELECT b, COUNT(*) AS n FROM R WHERE a IN (:list) GROUP BY b",
    "SELECT DISTINCT b FROM R WHERE a IN (:list) ORDER BY b LIMIT 2",
    "SELECT a, SUM(b) AS s FROM R WHERE b > :p GROUP BY a",
    "SELECT * FROM (SELECT a, b, RANK() OVER (ORDER BY b) AS n FROM R) AS x WHERE a = :p",
    "SELECT x.b AS a, x.a AS b, x.n FROM (SELECT a, b, RANK() OVER (ORDER BY b) AS n FROM R) AS x WHERE x.a = :p",
    "SELECT a, b FROM R WHERE a = :p ORDER BY b LIMIT 1 OFFSET 1",
    "SELECT R.b, x.n FROM R, (SELECT COUNT(*) AS n FROM T WHERE a = :p) x",
    "WITH RECURSIVE t(a, b) AS (SELECT a, b FROM R UNION SELECT t.a, R.b FROM t JOIN R ON t.b = R.a) "
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a",
    "Q(x) = R(x, y), not S(y, _); Q(x) = T(x, x)",
    "Q(x, y) = R(x, y), closure(T)(x, y)",
    "Q(DISTINCT x | y) = R(x, y), T(x, _)",
]
WHOLE_CORPORA = [*test_select.QUERIES, *test_parameters.QUERIES, *(rule for rule, _ in test_rules.PAIRS)]


def _tables(rows: Contents | None = None) -> Database:
    db = Database()
    for name, columns in test_select.TABLES.items():
        db.create_table(name, columns)
        db.insert(name, list((rows or {}).get(name, Counter()).elements()))
    return db


def _drawn(rng: random.Random) -> Contents:
    def value(kind: str) -> Any:
        if rng.random() < 0.12:
            return None
        return rng.randrange(4) if kind == "int" else rng.choice("xyz")

    return {
        name: Counter(tuple(map(value, columns.values())) for _ in range(rng.randrange(3, 7)))
        for name, columns in test_select.TABLES.items()
    }


def _requests(view: Any) -> list[dict[str, Any]]:
    lists = dict(view.state.typed.query.lists)
    given = [
        {name: [n, 3] if name in lists else (n + k) % 4 for k, name in enumerate(view.parameters)} for n in range(3)
    ]
    return given if view.parameters else [{}]


def _other_row(rng: random.Random, schema: pa.Schema) -> Row:
    def value(type_: pa.DataType) -> Any:
        if pa.types.is_boolean(type_) or rng.random() < 0.1:
            return None
        if pa.types.is_string(type_):
            return rng.choice("xyzq")
        number = rng.choice([0, 1, 2, 3, 77])
        return (
            float(number) if pa.types.is_floating(type_) else Decimal(number) if pa.types.is_decimal(type_) else number
        )

    return tuple(value(field.type) for field in schema)


def _is_in_words(text: str) -> bool:
    """Whether no name is told that ivme made: `#value`, or the block `v#3`. That of the second R is R#2."""
    return re.search(r"#[a-z]|v#|[ (.]#", text) is None


def _check(text: str, seed: int) -> None:
    rng = random.Random(f"{text} {seed}")
    db = _tables(_drawn(rng))
    view = db.create_view("v", text)
    for request in _requests(view):
        rows = list(dict.fromkeys(view(**request)))
        for row in rng.sample(rows, min(4, len(rows))):
            reasons = view.why(row, **request)
            assert reasons.findings
            assert _is_in_words(str(reasons)), str(reasons)
            with whole_answers():
                named = witness(db, view, row, **request)
            assert row in list(_tables(named).create_view("v", text)(**request)), f"{request} {reasons} {named}"
        other = _other_row(rng, view.schema)
        if other not in rows:
            reasons = view.why_not(other, **request)
            assert reasons.findings
            assert _is_in_words(str(reasons)), str(reasons)
            with pytest.raises(DataError, match="says why"):
                view.why(other, **request)


@pytest.mark.parametrize("text", EVERY_KIND)
def test_the_rows_that_are_named_give_the_row(text: str) -> None:
    _check(text, 0)


@pytest.mark.long
@pytest.mark.parametrize("text", [*EVERY_KIND, *WHOLE_CORPORA])
def test_the_rows_that_are_named_give_the_row_of_every_query(text: str) -> None:
    for seed in range(1, 4):
        _check(text, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_the_rows_that_are_named_give_the_values_of_windows(seed: int) -> None:
    rng = random.Random(seed)
    text = window_select(rng)

    def tables(rows: Contents) -> Any:
        db = Database()
        db.create_table("r", COLUMNS)
        db.create_table("s", {"k": "int"})
        for name in "rs":
            db.insert(name, list(rows.get(name, Counter()).elements()))
        return db, db.create_view("v", text)

    db, view = tables({"r": Counter(random_row(rng, n, 20) for n in range(12)), "s": Counter([(1,), (2,), (3,)])})
    rows = list(dict.fromkeys(view))
    for row in rng.sample(rows, min(4, len(rows))):
        with whole_answers():
            named = witness(db, view, row)
        _, alone = tables(named)
        assert normal(row) in list(map(normal, alone)), f"{text} {view.why(row)} {named}"


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_view_answers(name: str) -> None:
    kind = KINDS[name]
    db = Database()
    db.create_table("e", {"a": "int", "b": "int"})
    view = kind.make(db)
    db.insert("e", [(1, 2), (2, 3), (3, 4), (4, 1), (7, 8), (1, 7), (1, 2), (7, 7)])
    request = dict(kind.request)
    for row, item in view.items(**request):
        with whole_answers():
            named = witness(db, view, row, **request)
        alone = Database()
        alone.create_table("e", {"a": "int", "b": "int"})
        alone.insert("e", list(named.get("e", Counter()).elements()))
        found = dict(kind.make(alone).items(**request))
        assert row in found, f"{view.why(row, **request)} {named}"
        assert not isinstance(item, Element) or item.is_close(found[row])
    other = (99,) * len(view.columns)
    assert view.why_not(other, **request).findings
    with pytest.raises(DataError, match="says why"):
        view.why(other, **request)
    with pytest.raises(DataError, match="a row of view v has"):
        view.why((1,) * (len(view.columns) + 1), **request)


@pytest.mark.parametrize("ring", [Covariance("B", "C"), Relational("C")], ids=["covariance", "relational"])
def test_the_elements_of_the_rows_that_are_named_add_up(ring: Any) -> None:
    rng = random.Random(8)
    db = Database()
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "int"})
    view = db.create_ring_view("v", "Q(A) = r(A, B), s(B, C)", ring)
    for name in "rs":
        db.insert(name, [(rng.randrange(4), rng.randrange(4)) for _ in range(7)])
    there = dict(view.items())
    assert len(there) > 1
    for row, element in there.items():
        with whole_answers():
            named = witness(db, view, row)
        alone = Database()
        for name in "rs":
            alone.create_table(name, {"a": "int", "b": "int"} if name == "r" else {"b": "int", "c": "int"})
            alone.insert(name, list(named[name].elements()))
        assert dict(alone.create_ring_view("v", "Q(A) = r(A, B), s(B, C)", ring).items())[row].is_close(element)
    assert "has nothing" in str(view.why_not((9,)))


def test_a_row_of_an_ies_has_rows_that_no_other_can_stand_for() -> None:
    """The programs keep the pairs that two edges lead to; nothing says so but what they answer."""
    db = Database()
    db.create_table("e", {"a": "int", "b": "int"})
    insert = (
        "INSERT INTO v SELECT :a, b FROM e WHERE a = :b AND NOT EXISTS (SELECT 1 FROM v WHERE v.a = :a AND v.b = e.b);"
        "INSERT INTO v SELECT a, :b FROM e WHERE b = :a AND NOT EXISTS (SELECT 1 FROM v WHERE v.a = e.a AND v.b = :b)"
    )
    view = db.create_ies("v", "e", {"a": "int", "b": "int"}, {}, insert, "DELETE FROM v WHERE a = :a AND b = -1")
    db.insert("e", [(n, n + 1) for n in range(12)])
    assert ["  e has (4, 5), (5, 6)"] == str(view.why((4, 6))).splitlines()[1:]
    assert ["  v has nothing at a = 4, b = 7", "  v has (4, 6) at a = 4", "  v has (5, 7) at b = 7"] == str(
        view.why_not((4, 7))
    ).splitlines()[1:]
    assert ["  v has nothing at a = 40, b = 70"] == str(view.why_not((40, 70))).splitlines()[1:]


def test_a_row_of_an_ies_may_need_no_row_at_all() -> None:
    db = Database()
    db.create_table("task", {"a": "int"})
    flip = "INSERT INTO odd SELECT 1 FROM even; DELETE FROM even"
    view = db.create_ies(
        "even", "task", {"yes": "int"}, {"odd": {"yes": "int"}}, flip, flip, on_start="INSERT INTO even SELECT 1"
    )
    assert ["  task has nothing"] == str(view.why((1,))).splitlines()[1:]


def test_views_on_views_name_their_rows() -> None:
    db = _tables({"R": Counter([(1, 2), (1, 3), (2, 5)])})
    db.create_view("w", "SELECT a, SUM(b) AS s FROM R GROUP BY a")
    view = db.create_view("v", "SELECT s FROM w WHERE s > 4")
    assert ["  w (filtered) has (1, 5), (2, 5) at s = 5"] == str(view.why((5,))).splitlines()[1:]
    assert {"R": Counter([(1, 2), (1, 3), (2, 5)])} == witness(db, view, (5,))
