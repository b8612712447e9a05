"""The database over shards: the methods of `Database`, what is refused by name, and skewed keys."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError, SchemaError, UnknownNameError, VerificationError
from ivme.shards import database as sharded
from ivme.shards.changes import ShardedChanges
from ivme.shards.database import ShardedDatabase
from ivme.shards.shard import Shard
from ivme.shards.sharding import needs_merging
from tests.example_counts import some_of
from tests.sharded_databases import kill, local_database, negated, reopened


@pytest.fixture
def db(tmp_path: Path) -> ShardedDatabase:
    made = local_database(tmp_path, 4)
    made.create_table("r", {"a": "int", "b": "int"})
    made.create_table("s", {"b": "int", "c": "int"})
    return made


# Skew


def skewed(db: Any, rows: int) -> None:
    """Nine tenths of r, and half of s, have the same key."""
    db.insert("r", [(i, 7 if i % 10 else i) for i in range(rows)])
    db.insert("s", [(7 if i % 2 else i, i) for i in range(rows // 10)])


def largest_over_mean(view: Any) -> float:
    entries = list(view.stats()["entries"].values())
    return float(max(entries) * len(entries) / sum(entries))


@pytest.mark.parametrize("shards", [2, 8])
def test_a_view_over_skewed_rows_spreads_them(tmp_path: Path, shards: int) -> None:
    db = local_database(tmp_path, shards)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "int"})
    skewed(db, 4000)
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b")
    assert [[], ["b"]] == [pattern["heavy"] for pattern in view.stats()["patterns"]]
    assert largest_over_mean(view) < 2
    assert _joined(4000) == view.scalar()


def _joined(rows: int) -> int:
    r = [7 if i % 10 else i for i in range(rows)]
    s = [7 if i % 2 else i for i in range(rows // 10)]
    return sum(s.count(key) for key in set(s) & set(r) for _ in range(r.count(key)))


def test_plain_hashing_would_overload_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above would find without grids for heavy values."""
    monkeypatch.setattr(sharded, "_FIRST_LOOK", 10**9)
    db = local_database(tmp_path, 8)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "int"})
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b")
    skewed(db, 4000)
    assert largest_over_mean(view) > 2


@pytest.mark.parametrize("shards", some_of([2, 8], 2))
def test_a_view_whose_rows_become_skewed_is_spread_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    monkeypatch.setattr(sharded, "_FIRST_LOOK", 1000)
    db = local_database(tmp_path, shards)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "int"})
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b")
    skewed(db, 4000)
    assert largest_over_mean(view) < 2
    assert _joined(4000) == view.scalar()
    db.delete("r", [(1, 7)])
    view.verify()


@pytest.mark.slow
def test_a_count_of_triangles_with_a_hub_is_spread_and_split_in_each_shard(tmp_path: Path) -> None:
    """Statistics of all shards choose where rows go; each engine finds its own heavy keys when it is built (0092)."""
    db: Any = local_database(tmp_path, 3)
    circle = [(i, (i * 7 + 1) % 500) for i in range(500)]
    rows = {"r": [(0, i) for i in range(500)], "s": circle, "t": [(i, 0) for i in range(500)]}
    for name, edges in rows.items():
        db.create_table(name, {"a": "int", "b": "int"})
        db.insert(name, edges)
    view = db.create_view("v", "Q(COUNT) = r(A, B), s(B, C), t(C, A)", strategy="skew", epsilon=0.5)
    assert any(pattern["heavy"] for pattern in view.stats()["patterns"]), "the hub has a grid of its own"
    assert largest_over_mean(view) < 2
    assert 500 == view.scalar()
    engines = [
        engine for shard in db._cluster.shards.values() for key, engine in shard.engines.items() if key.pattern > 0
    ]
    split = [part for engine in engines for part in engine.stats()["partitions"].values()]
    assert any(part["heavy"] for part in split)


# Views


def test_occurrences_that_are_routed_alike_share_a_table(db: ShardedDatabase) -> None:
    same = db.create_view("same", "Q(A, B, C) = r(A, B), r(A, C)")
    other = db.create_view("other", "Q(A, B, C) = r(A, B), r(B, C)")
    assert ["r"] == [o.table for o in same.sharding.occurrences]
    assert ["r", "r~2"] == [o.table for o in other.sharding.occurrences]
    db.insert("r", [(1, 2), (2, 3), (2, 2), (3, 1)])
    same.verify()
    other.verify()


@pytest.mark.slow
def test_aggregates_of_every_kind_and_type_add_up(tmp_path: Path) -> None:
    schema = {
        "k": "int",
        "d": "decimal(10, 2)",
        "f": "float",
        "t": "string",
        "day": "date",
        "at": "timestamp",
        "x": "bool",
    }
    rows: list[tuple[Any, ...]] = [
        (
            i % 3,
            Decimal(i) / 4 if i % 5 else None,
            i / 8,
            f"t{i % 11}" if i % 7 else None,
            datetime.date(2020, 1, 1 + i % 28),
            datetime.datetime(2020, 1, 1, i % 24),
            i % 2 == 0,
        )
        for i in range(200)
    ]
    text = (
        "SELECT m.k, COUNT(*) AS n, SUM(m.d) AS sd, AVG(m.d) AS ad, SUM(m.f) AS sf, AVG(m.f) AS af, MIN(m.t) AS lt, "
        "MAX(m.day) AS hd, MIN(m.at) AS la, COUNT(m.t) AS ct, STDDEV(m.d) AS dd, VARIANCE(m.f) AS vf, "
        "STDDEV(m.k) AS dk FROM m GROUP BY m.k"
    )
    db, expected = local_database(tmp_path, 4), Database()
    for each in (db, expected):
        each.create_table("m", schema)
        each.insert("m", rows)
        each.create_view("v", text)
    assert expected.view("v").to_arrow().schema == db.view("v").to_arrow().schema
    assert sorted(expected.view("v")) == sorted(db.view("v"))
    for each in (db, expected):
        each.delete("m", rows[::3])
    assert sorted(expected.view("v")) == sorted(db.view("v"))


def test_requests_one_at_a_time_and_many_at_once(db: ShardedDatabase) -> None:
    db.insert("r", [(i % 10, i) for i in range(100)])
    db.insert("s", [(i, i % 4) for i in range(100)])
    rows = db.create_view("rows", "Q(B, C | A) = r(A, B), s(B, C)")
    count = db.create_view("count", "SELECT COUNT(*) AS n FROM r WHERE a = :a")
    assert sorted((b, b % 4) for b in range(3, 100, 10)) == sorted(rows(A=3))
    assert [] == list(rows(A=99))
    assert [(10,)] == list(count(a=3))
    assert [(0,)] == list(count(a=99))
    assert {"a": [3, 99, 3], "n": [10, 0, 10]} == count.request_many(a=[3, 99, 3]).to_pydict()
    many = rows.request_many(A=pa.array([99, 1, 2])).to_pylist()
    assert 20 == len(many)
    assert [1] * 10 + [2] * 10 == [row["A"] for row in many]
    with pytest.raises(UnknownNameError, match="needs a value for A"):
        rows.items()
    with pytest.raises(UnknownNameError, match="no parameter B"):
        rows.items(A=1, B=2)
    with pytest.raises(DataError, match="is a str"):
        rows.items(A="x")


def test_a_view_is_read_in_all_the_ways_of_the_embedded_one(db: ShardedDatabase) -> None:
    view = db.create_view("v", "Q(A, C) = r(A, B), s(B, C)")
    db.insert("r", [(1, 1), (1, 2), (2, 2)])
    db.insert("s", [(1, 5), (2, 5), (2, 6)])
    expected = [(1, 5), (1, 5), (1, 6), (2, 5), (2, 6)]
    assert expected == sorted(view)
    assert {(1, 5): 2, (1, 6): 1, (2, 5): 1, (2, 6): 1} == dict(view.items())
    assert 5 == view.count() == view.to_arrow().num_rows == len(view.to_pandas()) == view.snapshot().num_rows
    assert (1, 5) in view
    assert 2 == view.multiplicity((1, 5))
    assert 0 == view.multiplicity((9, 9))
    assert ("A", "C") == view.columns
    assert "over 4 shards" in str(view.explain())
    with pytest.raises(DataError, match="not a single value"):
        view.scalar()


def test_lenient_deletes_take_only_what_is_there(db: ShardedDatabase) -> None:
    view = db.create_view("v", "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a")
    db.insert("r", [(1, 1), (2, 1), (2, 1)])
    db.insert("s", [(1, 1)])
    db.delete("r", [(1, 1), (1, 1), (2, 1), (9, 9)], strict=False)
    assert [(2, 1)] == list(view)
    view.verify()


def test_primary_keys_hold_over_shards(tmp_path: Path) -> None:
    db = local_database(tmp_path, 4)
    db.create_table("p", {"id": "int", "name": "string"}, primary_key="id")
    db.insert("p", [(i, "x") for i in range(20)])
    with pytest.raises(DataError, match=r"primary key \(3,\)"):
        db.insert("p", [(3, "other")])
    with db.batch() as batch:
        batch.delete("p", [(3, "x")])
        batch.insert("p", [(3, "other")])


def test_static_tables_are_loaded_once(tmp_path: Path) -> None:
    db = local_database(tmp_path, 4)
    db.create_table("t", {"a": "int"}, static=True)
    db.insert("t", [(1,)])
    with pytest.raises(DataError, match="static"):
        db.insert("t", [(2,)])


def test_a_batch_of_a_source_counts_once(db: ShardedDatabase) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r")
    with db.batch("feed", 3) as batch:
        batch.insert("r", [(1, 1)])
    with pytest.raises(DataError, match="has been applied before"), db.batch("feed", 3) as batch:
        batch.insert("r", [(2, 2)])
    assert 3 == db.position("feed")
    assert 1 == view.scalar()
    assert 3 == reopened(db).position("feed")


def test_verify_finds_a_shard_that_lost_a_row(db: ShardedDatabase) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM r")
    db.insert("r", [(i, i) for i in range(20)])
    cluster: Any = db._cluster
    shard: Shard = cluster.shards[0]
    key = next(key for key in shard.engines if not key.is_table)
    (rows,) = (rows for _, rows in shard.engines[key].contents())
    shard.engines[key].apply([("r", negated(rows))])
    with pytest.raises(VerificationError, match="computed from its tables"):
        view.verify()


# Changes


def test_changes_of_whole_rows_are_followed_also_with_aggregates(db: ShardedDatabase) -> None:
    view = db.create_view("v", "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a", whole_rows=True)
    db.insert("s", [(1, 1)])
    with view.changes() as feed:
        db.insert("r", [(1, 1), (2, 1), (3, 9)])
        db.insert("r", [(1, 1)])
        with pytest.raises(DataError):
            db.apply("r", [(5, 1), (7, 7)], [1, -1])
        assert [{(1, 1): 1, (2, 1): 1}, {(1, 1): -1, (1, 2): 1}] == list(feed)
        assert [] == list(feed)


SPREAD = {
    "groups": "SELECT s.c, COUNT(*) AS n, MIN(r.a) AS least FROM r JOIN s ON r.b = s.b GROUP BY s.c",
    "hidden": "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY s.c",
    "all": "SELECT COUNT(*) AS n, AVG(r.a) AS mean FROM r JOIN s ON r.b = s.b",
    "set": "SELECT DISTINCT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "asked": "SELECT DISTINCT s.c FROM r JOIN s ON r.b = s.b WHERE r.a = :a",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPREAD)
def test_changes_of_rows_with_parts_in_several_shards_are_those_of_the_embedded_view(tmp_path: Path, name: str) -> None:
    db, embedded = local_database(tmp_path, 3), Database()
    for each in (db, embedded):
        each.create_table("r", {"a": "int", "b": "int"})
        each.create_table("s", {"b": "int", "c": "int"})
        each.create_view("v", SPREAD[name])
    assert needs_merging(db.view("v").sharding)
    feeds = [each.view("v").changes() for each in (db, embedded)]
    rows = [(i % 4, i % 7) for i in range(28)]
    batches = [("s", rows[:20], 1), ("r", rows, 1), ("r", rows[::3], -1), ("s", rows[5:9], -1), ("r", rows[1::3], -1)]
    for number, (table, changed, weight) in enumerate(batches):
        for each in (db, embedded):
            each.apply(table, changed, [weight] * len(changed))
        if number == 2:
            with pytest.raises(DataError):
                db.apply("r", [(5, 1), (70, 70)], [1, -1])
            kill(db, 1)
    found, expected = map(list, feeds)
    assert expected
    assert expected == found


def test_changes_that_were_not_read_are_there_when_the_database_is_opened_again(tmp_path: Path) -> None:
    db = local_database(tmp_path, 3)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_view("v", "SELECT COUNT(*) AS n FROM r").changes()
    before = db.step
    db.insert("r", [(i, i) for i in range(9)])
    db.delete("r", [(i, i) for i in range(5)])
    feed = ShardedChanges(reopened(db), "v")
    feed.seen = before
    assert [{(0,): -1, (9,): 1}, {(9,): -1, (4,): 1}] == list(feed)


def test_a_followed_sum_over_shards_that_does_not_fit_refuses_the_batch(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "b": "int"})
    view = db.create_view("v", "SELECT SUM(b) AS total FROM r")
    feed = view.changes()
    most = 2**62
    db.insert("r", [(0, most)])
    for a in range(1, 9):
        with pytest.raises(DataError, match="column total of view v does not fit"):
            db.insert("r", [(a, most + a)])
    assert most == view.scalar()
    db.delete("r", [(0, most)])
    assert [{(None,): -1, (most,): 1}, {(most,): -1, (None,): 1}] == list(feed)


# Refusals


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("SELECT a FROM asked", {}, "asked"),
        ("Q(X, Y) = closure(r)", {"strategy": "classical"}, "cannot maintain a closure"),
        ("Q(X, Y) = closure(r)", {"semantics": "ring"}, "semantics='ring'"),
        ("SELECT a FROM r", {"semantics": "ring"}, "semantics='ring'"),
        ("SELECT COUNT(*) FROM r", {"whole_rows": True}, "one row, which cannot be whole"),
        ("SELECT a FROM r", {"strategy": "magic"}, "no strategy 'magic'"),
    ],
)
def test_what_shards_cannot_do_is_refused_by_name(
    db: ShardedDatabase, text: str, options: dict[str, Any], reason: str
) -> None:
    db.create_view("asked", "SELECT a FROM r WHERE b = :b")
    with pytest.raises(IvmeError, match=reason):
        db.create_view("v", text, **options)
    assert ("asked",) == db.views


def test_ring_views_are_refused_by_name(db: ShardedDatabase) -> None:
    with pytest.raises(PlanError, match="ring view w cannot be sharded"):
        db.create_ring_view("w")


def test_the_catalog_refuses_what_the_embedded_one_does(db: ShardedDatabase) -> None:
    db.create_view("v", "SELECT a FROM r")
    with pytest.raises(SchemaError, match="already a table named R"):
        db.create_table("R", {"a": "int"})
    with pytest.raises(PlanError, match="v needs it"):
        db.drop_table("r")
    with pytest.raises(UnknownNameError, match="is a view"):
        db.insert("v", [(1,)])
    db.drop_view("v")
    db.drop_table("r")
    assert (("s",), ()) == (db.tables, db.views)
    db.close()
    with pytest.raises(PlanError, match="closed"):
        db.insert("s", [(1, 1)])


@pytest.mark.parametrize("options", [{"epsilon": 0.5}, {"append_only": "r"}, {"strategy": "classical"}])
def test_options_reach_the_shards_and_survive_the_checkpoint(db: ShardedDatabase, options: dict[str, Any]) -> None:
    view = db.create_view("v", "Q(A, B, C) = r(A, B), r(B, C)", **options)
    db.insert("r", [(1, 2), (2, 3)])
    assert [(1, 2, 3)] == list(view)
    again = reopened(db)
    assert db._catalog == again._catalog
    assert [(1, 2, 3)] == list(again.view("v"))


# Rows for which an expression fails


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT r.a, r.a / r.b AS q FROM r JOIN s ON r.a = s.b WHERE s.c > 0", [(6, 3.0)]),
        (
            "SELECT r.a / r.b AS q, COUNT(*) AS n FROM r JOIN s ON r.a = s.b WHERE s.c > 0 GROUP BY r.a / r.b",
            [(3.0, 1)],
        ),
        ("SELECT SUM(r.a / r.b) AS q FROM r JOIN s ON r.a = s.b WHERE s.c > 0", [(3.0,)]),
        ("SELECT r.a FROM r JOIN s ON r.a = s.b WHERE s.c > 0 AND r.a / r.b > 1", [(6,)]),
        ("SELECT r.a / r.b AS q FROM r JOIN s ON r.a = s.b WHERE s.c > 0 AND r.a = :a", [(3.0,)]),
    ],
)
@pytest.mark.parametrize("first", ["view", "rows"])
def test_a_row_that_no_shard_shows_may_fail(db: ShardedDatabase, sql: str, rows: list[Any], first: str) -> None:
    given = {"a": 6} if ":a" in sql else {}
    if first == "rows":
        db.insert("r", [(6, 2), (7, 0), (8, 0)])
        db.insert("s", [(6, 1), (7, 0)])
    view = db.create_view("v", sql)
    if first == "view":
        db.insert("r", [(6, 2), (7, 0), (8, 0)])
        db.insert("s", [(6, 1), (7, 0)])
    assert rows == list(view(**given))
    for table, row in (("s", (7, 1)), ("s", (8, 1)), ("r", (6, 0))):
        with pytest.raises(DataError, match=r"view v: .*a / b.* fails for the row"):
            db.insert(table, [row])
    assert rows == list(view(**given))
    db.delete("r", [(7, 0)])
    db.insert("s", [(7, 1)])
    assert rows == list(view(**given))
    view.verify()
