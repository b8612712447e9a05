"""Views that no key spreads are cut into fragments: outer joins, unions, values for all rows, first rows, windows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.database import ShardedDatabase
from tests.databases import in_one_batch
from tests.sharded_databases import local_database
from tests.unit.shards.test_exchange import Rows, change, declared

VIEWS = {
    "outer_two": """
        SELECT e.src, e.dst, c.name, f.dst AS other
        FROM edge e LEFT JOIN city c ON e.dst = c.id LEFT JOIN edge f ON f.src = e.src""",
    "outer_grouped": """
        SELECT c.name, COUNT(*) AS n, COUNT(d.n) AS known FROM edge e LEFT JOIN city c ON e.dst = c.id
        LEFT JOIN (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d ON d.n = e.src GROUP BY c.name""",
    "full_two": """
        SELECT d.n, c.name, e.dst FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d
        FULL JOIN city c ON d.n = c.id LEFT JOIN edge e ON e.src = d.src""",
    "above_average": "SELECT src, dst FROM edge WHERE dst > (SELECT AVG(dst) FROM edge)",
    "busy": """
        SELECT src, COUNT(*) AS n FROM edge GROUP BY src HAVING COUNT(*) > (SELECT AVG(id) FROM city)""",
    "with_largest": "SELECT src, (SELECT MAX(id) FROM city) AS m, (SELECT COUNT(*) FROM city) AS n FROM edge",
    "shares": "SELECT src, 1.0 * COUNT(*) / (SELECT COUNT(*) FROM edge) AS share FROM edge GROUP BY src",
    "one_value": "SELECT (SELECT COUNT(*) FROM edge) + SUM(id) AS s FROM city",
    "not_in": "SELECT src FROM edge WHERE dst NOT IN (SELECT id FROM city)",
    "ends": """
        SELECT n, COUNT(*) AS k FROM (
            SELECT src AS n FROM edge UNION ALL SELECT n FROM (SELECT dst, COUNT(*) AS n FROM edge GROUP BY dst) d
            UNION ALL SELECT 7
        ) u GROUP BY n""",
    "several": """
        SELECT a.n, b.k FROM (SELECT src AS n FROM edge UNION SELECT id FROM city) a
        JOIN (SELECT n, COUNT(*) AS k FROM (SELECT dst, COUNT(*) AS n FROM edge GROUP BY dst) e GROUP BY n) b
        ON a.n = b.k""",
    "first_joined": """
        SELECT e.src, d.dst FROM edge e JOIN (SELECT src, dst FROM edge ORDER BY dst DESC, src LIMIT 3 OFFSET 1) d
        ON e.dst = d.src""",
    "first_hidden": """
        SELECT e.src, d.src AS other FROM edge e JOIN (SELECT src FROM edge ORDER BY dst DESC, src LIMIT 4) d
        ON e.dst = d.src""",
    "ranked": """
        SELECT src, dst, n, ROW_NUMBER() OVER (PARTITION BY n ORDER BY src, dst) AS r
        FROM (SELECT e.src, e.dst, d.n FROM edge e JOIN (SELECT dst AS d, COUNT(*) AS n FROM edge GROUP BY dst) d
              ON d.d = e.src)""",
    "before": """
        SELECT d.src, d.n, c.name FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d
        JOIN city c ON c.id < d.n""",
    "early": "SELECT e.src, f.dst FROM edge e JOIN edge f ON e.dst < f.src",
    "middle": "SELECT src FROM edge WHERE dst = (SELECT MEDIAN(id) FROM city)",
    "asked": """
        SELECT e.src, c.name FROM edge e LEFT JOIN city c ON e.dst = c.id
        LEFT JOIN edge f ON f.src = e.src WHERE e.src = :m""",
    "first_of_all": """
        SELECT d.n, COUNT(*) AS k FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) d
        LEFT JOIN city c ON c.id = d.n GROUP BY d.n ORDER BY k DESC, d.n LIMIT 2""",
}


def answers(db: Any, names: list[str]) -> dict[str, Counter[Any]]:
    found = {name: Counter(db.view(name)) for name in names if name != "asked"}
    if "asked" in names:
        found |= {f"asked {number}": Counter(db.view("asked")(m=number)) for number in range(4)}
    return found


def check_stream(path: Path, names: list[str], seed: int, steps: int, sizes: tuple[int, ...] = (2, 1, 4)) -> None:
    chance, here = random.Random(seed), Rows(city=[], edge=[])
    expected, db = declared(Database()), declared(local_database(path, 3))
    databases: list[Any] = [expected, db]
    if seed % 2:
        change(chance, here, databases, size=12)
    for each in databases:
        for name in names:
            each.create_view(name, VIEWS[name])
    assert answers(db, names) == answers(expected, names)
    followed = [name for name in names if name != "asked"]
    feeds = {name: (Counter(db.view(name)), db.view(name).changes()) for name in followed}
    for number in range(steps):
        change(chance, here, databases, size=8)
        if number == steps // 2:
            db._cluster.kill(number % 3)
        for each in databases:
            with pytest.raises(IvmeError, match="not there"):
                in_one_batch(each, ("insert", "edge", [(1, 1)]), ("delete", "city", [(99, "nowhere")]))
            each.delete("edge", [(4, 4), (99, 99)], strict=False)
        if (4, 4) in here["edge"]:
            here["edge"].remove((4, 4))
        assert answers(db, names) == answers(expected, names)
    for name, (known, heard) in feeds.items():
        for delta in heard:
            known.update(dict(delta))
        assert +known == Counter(db.view(name)), name
        assert min(known.values(), default=0) >= 0
    for name in names:
        db.view(name).verify()
    assert ShardCatalog.from_json(db._catalog.to_json()) == db._catalog
    check_reopened(path, names, chance, here, expected, sizes)


def check_reopened(
    path: Path, names: list[str], chance: random.Random, here: Rows, expected: Database, sizes: tuple[int, ...]
) -> None:
    db = local_database(path, None)
    assert answers(db, names) == answers(expected, names)
    for shards in sizes:
        db.reshard(shards)
        assert answers(db, names) == answers(expected, names)
        change(chance, here, [expected, db])
        assert answers(db, names) == answers(expected, names)
    for name in names:
        db.drop_view(name)
    assert not db._catalog.views


@pytest.mark.parametrize(
    "names",
    [
        ["outer_two", "above_average", "first_joined"],
        pytest.param(["not_in", "ranked", "first_of_all"], marks=pytest.mark.long),
    ],
    ids=lambda names: names[0],
)
def test_views_in_fragments_are_those_of_one_engine(tmp_path: Path, names: list[str]) -> None:
    check_stream(tmp_path, names, 1, 2, sizes=(2,))


@pytest.mark.long
@pytest.mark.parametrize("name", VIEWS)
def test_each_view_in_fragments_is_that_of_one_engine(tmp_path: Path, name: str) -> None:
    check_stream(tmp_path, [name], 4, 4, sizes=(1, 4))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_views_in_fragments_are_those_of_one_engine_for_longer(tmp_path: Path, seed: int) -> None:
    check_stream(tmp_path, list(VIEWS), seed, 10)


def fragments(db: ShardedDatabase) -> dict[str, tuple[str, ...]]:
    return {entry.name: tuple(feed.name for feed in entry.feeds) for entry in db._catalog.views}


def notes(view: Any) -> str:
    return " ".join(str(view.explain()).split())


def test_an_outer_join_without_a_common_key_is_two_fragments_and_a_join(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 3)) as db:
        view = db.create_view("w", VIEWS["outer_two"])
        assert fragments(db) == {"w#3": (), "w#6": (), "w": ("w#3", "w#6")}
        assert all(entry.routing.variables for entry in db._catalog.views)
        assert "w#3: over 3 shards by #1 (city.id, edge.dst)" in notes(view)
        assert "fed by w#3, w#6" in notes(view)


def test_a_value_for_all_rows_goes_to_all_shards(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 3)) as db:
        view = db.create_view("w", VIEWS["above_average"])
        assert fragments(db) == {"w#1": (), "w": ("w#1",)}
        assert "over 3 shards by src (edge.src)" in notes(view)
        assert "each shard has all rows of w#1" in notes(view)
        db.insert("edge", [(n, n) for n in range(8)])
        assert sorted(view) == [(n, n) for n in range(4, 8)]
        parts = [shard.engines for shard in db._cluster.shards.values()]
        assert all(key.name != "w" or engine.entries for engines in parts for key, engine in engines.items())


def test_what_is_in_one_shard_is_said_with_the_reason(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 3)) as db:
        view = db.create_view("w", VIEWS["ends"])
        assert "w#4: in shard" in notes(view)
        assert "no column is a key of the blocks that it is made of" in notes(view)
        assert "over 3 shards" in notes(view)


def test_what_only_shows_rows_of_one_shard_is_there_too(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 3)) as db:
        view = db.create_view("w", VIEWS["early"])
        assert fragments(db) == {"w": ()}
        assert "alone, in an engine of its own" in notes(view)


def test_a_value_for_all_rows_that_does_not_fit_refuses_the_batch(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 3)) as db:
        view = db.create_view("w", "SELECT src FROM edge WHERE dst < (SELECT SUM(dst) FROM edge)")
        db.insert("edge", [(1, 2**62), (2, 3)])
        with pytest.raises(IvmeError, match="nothing was changed"):
            db.insert("edge", [(3, 2**62 + n) for n in range(8)])
        assert sorted(view) == [(1,), (2,)]
        db.insert("edge", [(3, 5)])
        assert sorted(view) == [(1,), (2,), (3,)]
        view.verify()


@pytest.mark.parametrize(
    "text",
    [
        """SELECT k, 10 / (k - 2) AS x FROM (
               SELECT n, COUNT(*) AS k FROM (SELECT src, COUNT(*) AS n FROM edge GROUP BY src) a GROUP BY n) b""",
        "SELECT a.src, 10 / (b.dst - 3) AS x FROM edge a JOIN edge b ON a.dst = b.src",
    ],
)
def test_a_row_that_fails_is_named_as_in_one_engine(tmp_path: Path, text: str) -> None:
    said = []
    for db in (declared(Database()), declared(local_database(tmp_path, 2))):
        db.create_view("w", text)
        with pytest.raises(IvmeError) as refused:
            db.insert("edge", [(1, 1), (1, 2), (2, 3), (2, 4)])
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_views_are_fed_by_one_row_and_by_first_rows(tmp_path: Path) -> None:
    chance, here = random.Random(3), Rows(city=[], edge=[])
    expected, db = declared(Database()), declared(local_database(tmp_path, 3))
    for each in (expected, db):
        each.create_view("total", "SELECT COUNT(*) AS n FROM edge")
        each.create_view("first", "SELECT src, dst FROM edge ORDER BY dst DESC, src LIMIT 2")
        each.create_view("above", "SELECT c.name, t.n, f.src FROM city c, total t, first f WHERE f.dst = c.id")
    assert [feed.name for feed in db._catalog.view("above").feeds] == ["total", "first"]
    for _ in range(4):
        change(chance, here, [expected, db], 6)
        assert Counter(db.view("above")) == Counter(expected.view("above"))
    db.view("above").verify()


def test_a_shard_has_more_engines_than_calls_are_nested_by_default(tmp_path: Path) -> None:
    with declared(local_database(tmp_path, 1)) as db:
        db.create_view("w", "SELECT src FROM edge")
        catalog = db._catalog
        for number in range(150):
            catalog = catalog.with_view(replace(catalog.view("w"), name=f"w{number}"))
        db._change_catalog(catalog)
        db.insert("edge", [(1, 2)])
        assert list(db.view("w149")) == [(1,)]
