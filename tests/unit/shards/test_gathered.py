"""Closures and views on views over shards: each is kept whole in one shard, and answers as the embedded database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, VerificationError
from ivme.shards.database import ShardedDatabase
from tests.example_counts import some_of
from tests.graphs import closure_of, stream
from tests.sharded_databases import local_database, negated

REACH = """WITH RECURSIVE reach(x, y) AS (
    SELECT src, dst FROM edge UNION SELECT r.x, e.dst FROM reach r JOIN edge e ON r.y = e.src
)"""
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "pairs": ("Q(X, Y) = closure(edge)", {}),
    "onward": ("Q(Y | X) = closure(edge)(X, Y)", {}),
    "back": ("Q(X | Y) = closure(edge)(X, Y)", {}),
    "whether": ("Q(. | X, Y) = closure(edge)(X, Y)", {}),
    "connected": ("Q(X, Y) = closure(edge)", {"graph": "undirected"}),
    "cities": (
        f"""{REACH} SELECT DISTINCT b.name FROM city a JOIN reach r ON a.id = r.x JOIN city b ON r.y = b.id
        WHERE a.name = :name""",
        {},
    ),
    "sizes": (f"{REACH} SELECT x, COUNT(*) AS n, MAX(y) AS last FROM reach GROUP BY x", {}),
}
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "onward": [{"X": i} for i in range(6)],
    "back": [{"Y": i} for i in range(6)],
    "whether": [{"X": i, "Y": (i * i + 1) % 6} for i in range(6)],
    "cities": [{"name": name} for name in ("A", "B", "nowhere")],
}


def declare(db: Any) -> Any:
    db.create_table("edge", {"src": "int", "dst": "int"})
    db.create_table("city", {"id": "int", "name": "string"}, primary_key="id")
    db.insert("city", [(i, "ABC"[i % 3]) for i in range(6)])
    return db


def check_same(db: ShardedDatabase, embedded: Database) -> None:
    for name in embedded.views:
        for request in REQUESTS.get(name, [{}]):
            expected = Counter(dict(embedded.view(name).items(**request)))
            assert expected == Counter(dict(db.view(name).items(**request))), (name, request)
        if name in REQUESTS:
            many = {key: [request[key] for request in REQUESTS[name]] for key in REQUESTS[name][0]}
            rows = (each.view(name).request_many(**many).to_pylist() for each in (db, embedded))
            listed = [Counter(tuple(row.items()) for row in found) for found in rows]
            assert listed[0] == listed[1], name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shards", "seed"), [(3, 3), *(pytest.param(each, each, marks=pytest.mark.long) for each in (1, 2))]
)
def test_closures_over_shards_answer_as_the_embedded_database(tmp_path: Path, shards: int, seed: int) -> None:
    embedded, db = declare(Database()), declare(local_database(tmp_path, shards))
    for each in (embedded, db):
        each.insert("edge", [(0, 1), (1, 2), (2, 0), (3, 4)])
        for name, (text, options) in VIEWS.items():
            each.create_view(name, text, **options)
        each.delete("edge", [(0, 1), (1, 2), (2, 0), (3, 4)])
    feeds = {name: (embedded.view(name).changes(), db.view(name).changes()) for name in VIEWS}
    for number, change in enumerate(stream("digraph", seed, nodes=6, steps=9)):
        for each in (embedded, db):
            each.apply("edge", list(change), list(change.values()))
        check_same(db, embedded)
        if number == 4:
            db._cluster.kill(0)
            db._cluster.kill(shards - 1)
    for name, (expected, found) in feeds.items():
        assert list(expected) == list(found), name
    for name in VIEWS:
        db.view(name).verify()
    check_same(local_database(tmp_path, None), embedded)


def test_a_closure_lives_in_one_shard_and_says_so(tmp_path: Path) -> None:
    db = declare(local_database(tmp_path, 4))
    edges = [(i, i + 1) for i in range(200)]
    db.insert("edge", edges)
    view = db.create_view("pairs", "Q(X, Y) = closure(edge)")
    text = str(view.explain())
    assert "strategy       closure" in text
    assert "of 4 alone, in an engine of its own" in " ".join(text.split())
    loads = view.stats()["entries"]
    assert 1 == sum(1 for entries in loads.values() if entries >= 200)
    assert closure_of(edges, "digraph") == set(view)
    assert not db.rebalance("pairs")


def test_paths_of_a_closure_are_asked_of_its_shard(tmp_path: Path) -> None:
    db: Any = declare(local_database(tmp_path, 3))
    db.insert("edge", [(1, 2), (2, 3), (1, 4), (4, 5), (5, 3)])
    view = db.create_view("pairs", "Q(X, Y) = closure(edge)")
    assert [1, 2, 3] == view.path(1, 3)
    assert 2 == view.distance(1, 3)
    assert (None, None) == (view.path(3, 1), view.distance(3, 1))
    assert (None, None) == (view.path(1, 99), view.distance(1, 99))
    with pytest.raises(DataError, match="is a str"):
        view.path("one", 3)
    other = db.create_view("other", "SELECT src FROM edge")
    with pytest.raises(PlanError, match="not just a closure"):
        other.path(1, 2)


def test_a_batch_that_an_acyclic_closure_refuses_leaves_no_trace(tmp_path: Path) -> None:
    db = declare(local_database(tmp_path, 3))
    order = db.create_view("order", "Q(X, Y) = closure(edge)", graph="acyclic")
    count = db.create_view("count", "SELECT COUNT(*) AS n FROM edge")
    db.insert("edge", [(1, 2), (2, 3)])
    with pytest.raises(DataError, match="cycle"):
        db.insert("edge", [(3, 1), (4, 5)])
    assert [(1, 2), (1, 3), (2, 3)] == sorted(order)
    assert 2 == count.scalar()


STACK: dict[str, tuple[str, dict[str, Any]]] = {
    "short": ("SELECT src, dst FROM edge WHERE dst < 5", {}),
    "degrees": ("SELECT src, COUNT(*) AS n FROM short GROUP BY src", {}),
    "named": ("SELECT c.name, d.n FROM degrees d JOIN city c ON d.src = c.id", {}),
    "reach": ("Q(X, Y) = closure(short)", {}),
    "ends": ("SELECT name FROM city JOIN reach ON city.id = reach.Y", {"semantics": "set"}),
    "total": ("SELECT SUM(n) AS n, MAX(n) AS most FROM degrees", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("shards", some_of([1, 3], 3))
def test_views_on_views_answer_as_in_the_embedded_database(tmp_path: Path, shards: int) -> None:
    embedded, db = declare(Database()), declare(local_database(tmp_path, shards))
    for each in (embedded, db):
        for name, (text, options) in STACK.items():
            each.create_view(name, text, **options)
    feeds = {name: (embedded.view(name).changes(), db.view(name).changes()) for name in ("named", "ends", "total")}
    for change in stream("digraph", 9, nodes=6, steps=10):
        for each in (embedded, db):
            each.apply("edge", list(change), list(change.values()))
        check_same(db, embedded)
    for name, (expected, found) in feeds.items():
        assert list(expected) == list(found), name
    for name in STACK:
        db.view(name).verify()
    assert "and the views short beneath it:" in " ".join(str(db.view("reach").explain()).split())
    with pytest.raises(PlanError, match="cannot drop view short: degrees, named, reach, ends, total need it"):
        db.drop_view("short")
    with pytest.raises(PlanError, match="cannot drop table edge"):
        db.drop_table("edge")
    check_same(local_database(tmp_path, None), embedded)


BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "named": ("SELECT c.name, COUNT(e.dst) AS n FROM city c LEFT JOIN edge e ON e.src = c.id GROUP BY c.name", {}),
    "lonely": ("SELECT id FROM city WHERE NOT EXISTS (SELECT 1 FROM edge WHERE edge.src = city.id)", {}),
    "busy": ("SELECT src, COUNT(*) AS n FROM edge GROUP BY src HAVING COUNT(*) > 1 ORDER BY n DESC, src LIMIT 2", {}),
    "ends": ("SELECT src FROM edge UNION SELECT dst FROM edge", {}),
    "onward": ("SELECT x.n FROM (SELECT src, COUNT(*) AS n FROM edge WHERE src = :X GROUP BY src) x", {}),
    "most": ("SELECT MAX(n) AS n FROM busy", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("shards", some_of([1, 3], 3))
def test_views_of_several_blocks_answer_as_in_the_embedded_database(tmp_path: Path, shards: int) -> None:
    embedded, db = declare(Database()), declare(local_database(tmp_path, shards))
    for each in (embedded, db):
        for name, (text, options) in BLOCKS.items():
            each.create_view(name, text, **options)
    feeds = {name: (embedded.view(name).changes(), db.view(name).changes()) for name in ("named", "lonely", "busy")}
    for change in stream("digraph", 9, nodes=6, steps=10):
        for each in (embedded, db):
            each.apply("edge", list(change), list(change.values()))
        check_same(db, embedded)
    for name, (expected, found) in feeds.items():
        assert list(expected) == list(found), name
    for name in BLOCKS:
        db.view(name).verify()
    with pytest.raises(PlanError, match="cannot drop table edge"):
        db.drop_table("edge")
    check_same(local_database(tmp_path, None), embedded)


def test_verify_finds_a_closure_that_lost_an_edge(tmp_path: Path) -> None:
    db: Any = declare(local_database(tmp_path, 2))
    view = db.create_view("pairs", "Q(X, Y) = closure(edge)")
    db.insert("edge", [(1, 2), (2, 3)])
    for shard in db._cluster.shards.values():
        for key, engine in shard.engines.items():
            if key.name == "pairs":
                engine.apply([(table, negated(rows.slice(0, 1))) for table, rows in engine.contents() if rows.num_rows])
    with pytest.raises(VerificationError, match="computed from its tables"):
        view.verify()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("Q(X, Y) = closure(r)", "the paths of a closure go through all rows"),
        ("SELECT a FROM r UNION ALL SELECT 1", "it has several blocks, and no column is a key"),
        ("SELECT a FROM r ORDER BY b LIMIT 2", "it has several blocks, and no column is a key"),
        ("SELECT MEDIAN(a) AS m FROM r", "of all rows does not add up over shards"),
        ("SELECT COUNT(DISTINCT a) AS x, COUNT(DISTINCT b) AS y FROM r", "different COUNT(DISTINCT) of all rows"),
        ("SELECT MEDIAN(n) AS m FROM beneath", "of all rows does not add up over shards"),
    ],
)
def test_explain_says_why_a_view_is_in_one_shard(tmp_path: Path, query: str, reason: str) -> None:
    with local_database(tmp_path, 2) as db:
        db.create_table("r", {"a": "int", "b": "int"})
        db.create_view("beneath", "SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY n LIMIT 3")
        assert reason in " ".join(db.create_view("v", query).explain().notes)
