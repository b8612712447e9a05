"""One suite for every kind of view, over every kind of database: what `BaseView` promises holds for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ivme.algebra.ring import add
from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError, SchemaError, UnknownNameError, VerificationError
from ivme.rings import Covariance, Relational
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.graphs import closure_of
from tests.sharded_databases import local_database

Row = tuple[Any, ...]
Edges = Counter[Row]
"""The rows of the table e(a, b), with their multiplicities."""

DATABASES = (*BACKENDS, "durable", "sharded")


@dataclass(frozen=True)
class Kind:
    """A kind of view: how it is made, and its items by definition.

    `request` are the parameters that it is read by; its changes have their values in front.
    """

    make: Callable[[Any], Any]
    items: Callable[[Edges], Mapping[Row, Any]]
    request: tuple[tuple[str, Any], ...] = ()
    only_embedded: bool = False
    """Whether it cannot be sharded: its state is Python objects, or tables of DuckDB."""


def _query(text: str, **options: object) -> Callable[[Any], Any]:
    return lambda db: db.create_view("v", text, **options)


def _ring(db: Any) -> Any:
    return db.create_ring_view("v", "Q(A) = e(A, B)", Covariance("B"))


def _ies(db: Any) -> Any:
    text = "INSERT INTO v VALUES (:a, :b)", "DELETE FROM v WHERE a = :a AND b = :b"
    return db.create_ies("v", "e", {"a": "int", "b": "int"}, {"note": {"x": "int"}}, *text)


def _joined(edges: Edges) -> Edges:
    found: Edges = Counter()
    for (a, b), n in edges.items():
        for (c, d), m in edges.items():
            if b == c:
                found[a, d] += n * m
    return found


def _triangles(edges: Edges) -> Edges:
    found: Edges = Counter()
    for (a, c), n in _joined(edges).items():
        found[()] += n * edges[c, a]
    return Counter({(total,): 1 for total in found.values()} or {(0,): 1})


def _grouped(edges: Edges) -> Edges:
    groups = {a: [(b, n) for (x, b), n in edges.items() if x == a] for a, _ in edges}
    return Counter({(a, sum(n for _, n in rows), sum(b * n for b, n in rows)): 1 for a, rows in groups.items()})


def _elements(edges: Edges) -> dict[Row, Any]:
    ring = Covariance("B")
    found: dict[Row, Any] = {}
    for (a, b), n in edges.items():
        element = ring.lift("B", b).scaled(n)
        found[a,] = add(found[a,], element) if (a,) in found else element
    return found


def _paths(edges: Edges) -> Edges:
    pairs: list[Any] = list(edges)
    return Counter(dict.fromkeys(closure_of(pairs, "digraph"), 1))


def _either_end(edges: Edges) -> Edges:
    found: Edges = Counter()
    for (a, b), n in edges.items():
        found[(a,)] += n if a < 3 else 0
        found[b + 1,] += n
    return +found


def _ends(edges: Edges) -> Edges:
    found: Edges = Counter()
    for (a, _), n in edges.items():
        for (_, d), m in edges.items():
            found[a, d] += n * m
    return found


def _last_three(edges: Edges) -> Edges:
    return Counter(sorted(edges.elements(), key=lambda row: (-row[1], row[0]))[1:4])


def _likely_two(edges: Edges) -> Edges:
    """The first two by b, and all that have the b of the second."""
    rows = sorted(edges.elements(), key=lambda row: row[1])
    return Counter(row for row in rows if len(rows) < 3 or row[1] <= rows[1][1])


def _first_of_each(edges: Edges) -> Edges:
    rows = sorted(edges.elements(), key=lambda row: (row[0], -row[1]))
    numbers = [
        (row, rows[:i].count(row) + sum(r[0] == row[0] and r[1] > row[1] for r in rows)) for i, row in enumerate(rows)
    ]
    return Counter((a, b, number + 1) for (a, b), number in numbers if number < 2)


def _windows(edges: Edges) -> Edges:
    rows = sorted(edges.elements())
    return Counter(
        (a, b, sum(d for c, d in rows if c == a and d <= b), rows[i - 1][1] if i else 0)
        for i, (a, b) in enumerate(rows)
    )


TRIANGLES = "SELECT COUNT(*) AS n FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a AND z.b = x.a"

KINDS = {
    "rows": Kind(_query("SELECT a, b FROM e"), lambda edges: edges),
    "distinct": Kind(_query("SELECT DISTINCT a FROM e"), lambda edges: Counter({(a,): 1 for a, _ in edges})),
    "a join": Kind(_query("SELECT x.a, y.b FROM e x JOIN e y ON x.b = y.a"), _joined),
    "recomputed": Kind(_query("SELECT x.a, y.b FROM e x JOIN e y ON x.b = y.a", strategy="recompute"), _joined),
    "groups": Kind(_query("SELECT a, COUNT(*) AS n, SUM(b) AS s FROM e GROUP BY a"), _grouped),
    "heavy and light parts": Kind(_query(TRIANGLES, strategy="skew"), _triangles),
    "a parameter": Kind(
        _query("SELECT b FROM e WHERE a = :a"),
        lambda edges: Counter({(b,): n for (a, b), n in edges.items() if a == 1}),
        request=(("a", 1),),
    ),
    "a rule with negation": Kind(
        _query("Q(A, B) = e(A, B), not e(B, _)"),
        lambda edges: Counter({(a, b): n for (a, b), n in edges.items() if all(b != c for c, _ in edges)}),
    ),
    "several rules": Kind(_query("Q(A) = e(A, _), A < 3; Q(B) = e(_, C), B = C + 1"), _either_end),
    "an order": Kind(_query("SELECT a, b FROM e ORDER BY b DESC"), lambda edges: edges),
    "a limit": Kind(_query("SELECT a, b FROM e ORDER BY b DESC LIMIT 3 OFFSET 1"), _last_three),
    "a limit of recomputed rows": Kind(
        _query("SELECT a, b FROM e ORDER BY b DESC LIMIT 3 OFFSET 1", strategy="recompute"), _last_three
    ),
    "a limit with ties": Kind(_query("SELECT a, b FROM e ORDER BY b FETCH FIRST 2 ROWS WITH TIES"), _likely_two),
    "windows": Kind(
        _query(
            "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS s, LAG(b, 1, 0) OVER (ORDER BY a, b) AS l FROM e"
        ),
        _windows,
    ),
    "ranks": Kind(
        _query("SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM e QUALIFY n <= 2"),
        _first_of_each,
    ),
    "a negated closure": Kind(
        _query("Q(A, B) = e(A, _), e(_, B), not closure(e)(A, B)"),
        lambda edges: Counter({p: n for p, n in _ends(edges).items() if p not in _paths(edges)}),
    ),
    "a closure": Kind(_query("Q(X, Y) = closure(e)"), _paths),
    "a ring": Kind(_ring, _elements, only_embedded=True),
    "an ies": Kind(_ies, lambda edges: Counter(dict.fromkeys(edges, 1)), only_embedded=True),
}

EVERYWHERE = ("a join", "groups", "a closure")
"""Kinds that the default run has on all databases but the plain engine; all others are there on the native one only."""

CASES = [
    pytest.param((d, k), marks=() if d == "native" or (d != "pure" and k in EVERYWHERE) else pytest.mark.long)
    for d in DATABASES
    for k, kind in KINDS.items()
    if d != "sharded" or not kind.only_embedded
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}: {case[1]}")
def case(request: Any, tmp_path: Path) -> Iterator[tuple[Any, Kind]]:
    """A database with the table e, and a kind of view."""
    database, name = request.param
    kind = KINDS[name]
    if database == "sharded":
        made: Any = local_database(tmp_path / "shards", 2)
    else:
        made = Database(tmp_path / "db") if database == "durable" else make_database(database)
    made.create_table("e", {"a": "int", "b": "int"})
    made.create_table("f", {"k": "int"})
    yield made, kind
    made.close()


def _items(view: Any, kind: Kind) -> dict[Row, Any]:
    return dict(view.items(**dict(kind.request)))


def _changed(db: Any) -> Edges:
    """Batches that come and go, with rows twice and a batch of two tables; what is left."""
    db.insert("e", [(1, 2), (2, 3), (3, 1), (1, 2), (1, 3)])
    db.delete("e", [(1, 2), (3, 1)])
    db.insert("e", [(3, 4)])
    with db.batch() as batch:
        batch.insert("e", [(4, 1), (3, 3)])
        batch.delete("e", [(1, 3)])
        batch.insert("f", [(1,)])
    db.delete("e", [(3, 3)])
    return Counter({(1, 2): 1, (2, 3): 1, (3, 4): 1, (4, 1): 1})


def test_its_rows_are_those_of_its_definition(case: tuple[Any, Kind]) -> None:
    db, kind = case
    db.insert("e", [(7, 8), (1, 7)])
    view = kind.make(db)
    edges = _changed(db) + Counter({(7, 8): 1, (1, 7): 1})
    assert dict(kind.items(edges)) == _items(view, kind)
    rows = list(view(**dict(kind.request)))
    assert sorted({row for row, _ in view.items(**dict(kind.request))}) == sorted(set(rows))
    view.verify()


def test_its_changes_add_up_to_its_rows(case: tuple[Any, Kind]) -> None:
    db, kind = case
    db.insert("e", [(7, 8), (1, 7)])
    view = kind.make(db)
    total = _items(view, kind)
    feed = view.changes()
    _changed(db)
    given = tuple(value for _, value in kind.request)
    for change in feed:
        for row, weight in change.items():
            if row[: len(given)] == given:
                shown = row[len(given) :]
                total[shown] = add(total[shown], weight) if shown in total else weight
    feed.close()
    db.insert("e", [(9, 9)])
    assert [] == list(feed)
    db.delete("e", [(9, 9)])
    left = {row: n for row, n in total.items() if (n if isinstance(n, int) else n.count)}
    assert _items(view, kind) == left


def test_a_batch_that_fails_changes_nothing_and_tells_nothing(case: tuple[Any, Kind]) -> None:
    db, kind = case
    view = kind.make(db)
    _changed(db)
    feed = view.changes()
    before = _items(view, kind)
    with pytest.raises(DataError, match="not there"):
        in_one_batch(db, ("insert", "e", [(1, 1), (5, 6)]), ("delete", "f", [(99,)]))
    assert (before, []) == (_items(view, kind), list(feed))
    view.verify()


def test_it_is_listed_found_and_described(case: tuple[Any, Kind]) -> None:
    db, kind = case
    view = kind.make(db)
    _changed(db)
    assert ("v",) == db.views
    assert db.view("V") is view or db.view("V").name == "v"
    assert isinstance(view.columns, tuple)
    assert isinstance(str(view.explain()), str)
    assert isinstance(view.stats(), dict)
    with pytest.raises(SchemaError, match="already"):
        kind.make(db)
    with pytest.raises(UnknownNameError, match="unknown"):
        list(view.items(**dict(kind.request), unknown=1))


def test_it_is_dropped_like_any_other(case: tuple[Any, Kind]) -> None:
    db, kind = case
    view = kind.make(db)
    with pytest.raises(PlanError, match="v needs it"):
        db.drop_table("e")
    db.drop_view("v")
    assert () == db.views
    with pytest.raises(IvmeError, match=r"dropped|no view"):
        _items(view, kind)
    db.insert("e", [(1, 2)])
    db.drop_table("e")


def test_it_ends_with_its_database(case: tuple[Any, Kind]) -> None:
    db, kind = case
    view = kind.make(db)
    db.close()
    if isinstance(db, Database):  # others may go on reading a sharded one
        with pytest.raises(PlanError, match="closed"):
            _items(view, kind)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_element_of_a_ring_is_found(backend: str) -> None:
    db = make_database(backend)
    db.create_table("e", {"a": "int", "b": "int"})
    view: Any = db.create_ring_view("v", "Q(A) = e(A, B)", Relational("B"))
    db.insert("e", [(1, 2), (1, 3)])
    view._interpreter.apply("e", {(1, 9): 1})
    with pytest.raises(VerificationError, match=r"for the row \(1,\)"):
        view.verify()


def test_a_wrong_covariance_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    db = make_database("native")
    db.create_table("e", {"a": "int", "b": "int"})
    view = _ring(db)
    db.insert("e", [(1, 2), (1, 3)])
    view.verify()
    real = view._element
    monkeypatch.setattr(view, "_element", lambda row: real((*row[:-1], row[-1] + 1)))
    with pytest.raises(VerificationError, match=r"for the row \(1,\)"):
        view.verify()


def test_a_wrong_row_of_an_ies_is_found() -> None:
    db = make_database("native")
    db.create_table("e", {"a": "int", "b": "int"})
    view = _ies(db)
    db.insert("e", [(1, 2), (1, 3)])
    view._executor.insert("e", (5, 5))
    with pytest.raises(VerificationError, match=r"the row \(5, 5\) 1 times"):
        view.verify()
