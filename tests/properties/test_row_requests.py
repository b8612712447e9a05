"""Window functions of the rows that a request names, `QUALIFY id = :id`, under random batches, against DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from ivme.errors import PlanError
from ivme.views.window_request_view import WindowRequestView
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.properties.window_queries import COLUMNS, normal, one_window, random_row

_KINDS = ("{}", "SELECT * FROM ({}) q WHERE id = :id", "WITH q AS ({}) SELECT w0, id AS n FROM q WHERE q.id = :id")


def _texts(rng: random.Random) -> tuple[str, str]:
    """A request, and the same for DuckDB, where $id is the parameter."""
    inner = f"SELECT id, g, {one_window(rng)} AS w0 FROM r{rng.choice(['', ' WHERE x > 0'])}"
    kind = rng.choice(_KINDS)
    if kind == "{}":
        return f"{inner} QUALIFY id = :id", f"SELECT * FROM ({inner}) WHERE id = $id"
    text = kind.format(inner)
    return text, text.replace(":id", "$id")


def run_requests(backend: str, seed: int, views: int, batches: int) -> int:
    """How many of the views find values by position; the others are maintained as any view."""
    rng = random.Random(seed)
    db, duck = make_database(backend), duckdb.connect()
    db.create_table("r", COLUMNS)
    duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    duck.execute("""CREATE TABLE r (id BIGINT, g BIGINT, x BIGINT, f DOUBLE, d DECIMAL(10, 2), name VARCHAR, day DATE,
        moment TIMESTAMP)""")
    texts = [_texts(rng) for _ in range(views)]
    made = [db.create_view(f"v{number}", text) for number, (text, _) in enumerate(texts)]
    rows: list[Any] = []
    fresh = rng.sample(range(10_000), 1_000)
    for _ in range(batches):
        new = [random_row(rng, fresh.pop(), 60) for _ in range(rng.randrange(9))]
        new += [rng.choice(new)] if new and seed % 3 == 0 else []
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(6)))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone))
        rows += new
        duck.execute("DELETE FROM r")
        if rows:
            duck.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        asked = [row[0] for row in rng.sample(rows, min(4, len(rows)))] + [-1]
        for view, (text, in_duckdb) in zip(made, texts, strict=True):
            for number in asked:
                expected = Counter(map(normal, duck.execute(in_duckdb, {"id": number}).fetchall()))
                found = Counter(map(normal, view(id=number)))
                assert expected == found, (text, number, expected, found)
            assert list(view(id=None)) == []
    for view in made:
        view.verify()
    duck.close()
    return sum(isinstance(view.state.group, WindowRequestView) for view in made)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_requests_have_the_values_of_duckdb(backend: str) -> None:
    assert run_requests(backend, 3, 8, 4) > 4


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.parametrize("backend", BACKENDS)
def test_requests_have_the_values_of_duckdb_for_longer(backend: str, seed: int) -> None:
    run_requests(backend, seed, 12, 12)


@pytest.fixture
def players() -> Database:
    db = Database()
    db.create_table("players", {"id": "int", "team": "string", "score": "int"}, primary_key=["id"])
    return db


_RANKED = "SELECT *, RANK() OVER (ORDER BY score DESC) AS place FROM players QUALIFY id = :id"


def test_the_rank_of_one_row_compares_few_rows_among_many(players: Database) -> None:
    """Also where most rows are like it: a hundred thousand have one of ten scores."""
    view = players.create_view("place", _RANKED)
    group: Any = view.state.group
    compared: list[int] = []
    for size in (1_000, 100_000):
        start = len(compared) and 1_000
        players.insert("players", [(n, "a", n % 10) for n in range(start, size)])
        before = group.operations
        assert list(view(id=999)) == [(999, "a", 9, 1)]
        assert list(view(id=500)) == [(500, "a", 0, size - size // 10 + 1)]
        compared.append(group.operations - before)
        before = group.operations
        players.insert("players", [(size, "b", 100)])
        players.delete("players", [(size, "b", 100)])
        compared.append(group.operations - before)
    assert compared[2] < 4 * compared[0]
    assert compared[3] < 4 * compared[1]


def test_rows_are_asked_for_by_several_columns_and_by_expressions(players: Database) -> None:
    text = """SELECT team, score + 1 AS s, ROW_NUMBER() OVER (PARTITION BY team ORDER BY score, id) AS n,
        SUM(score) OVER (PARTITION BY team ORDER BY score, id) AS total FROM players
        QUALIFY UPPER(team) = :team AND score = :score"""
    view = players.create_view("v", text)
    players.insert("players", [(1, "a", 5), (2, "a", 3), (3, "b", 5), (4, "a", 5)])
    assert view.parameters == ("team", "score")
    assert sorted(view(team="A", score=5)) == [("a", 6, 2, 8), ("a", 6, 3, 13)]
    assert list(view.request_many(team=["B", "A"], score=[5, 3])["n"].to_pylist()) == [1, 1]


def test_groups_are_asked_for_by_their_keys(players: Database) -> None:
    text = "SELECT team, SUM(score) AS s, RANK() OVER (ORDER BY SUM(score) DESC) AS place FROM players GROUP BY team"
    view = players.create_view("v", f"SELECT place FROM ({text}) WHERE team = :team")
    players.insert("players", [(1, "a", 5), (2, "b", 3), (3, "b", 5), (4, "c", 1)])
    assert [view.scalar(team=team) for team in "abc"] == [2, 1, 3]
    assert isinstance(view.state.group, WindowRequestView)


def test_such_a_view_is_not_followed_and_says_why(players: Database) -> None:
    view = players.create_view("place", _RANKED)
    with pytest.raises(PlanError, match="name rows, so its changes cannot be followed"):
        view.changes()


def test_its_cost_is_that_of_positions(players: Database) -> None:
    explained = players.create_view("place", _RANKED).explain()
    assert (str(explained.update), str(explained.delay)) == ("O(log N)", "O(log N)")
    assert "no value of a window is stored" in str(explained).replace("\n    ", " ")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *, DENSE_RANK() OVER (ORDER BY score) AS n FROM players QUALIFY id = :id",
        "SELECT *, RANK() OVER (ORDER BY score) + 1 AS n FROM players QUALIFY id = :id",
        "SELECT *, RANK() OVER (ORDER BY score) AS n, RANK() OVER (ORDER BY id) AS m FROM players QUALIFY id = :id",
        "SELECT *, RANK() OVER (ORDER BY score) AS n FROM players QUALIFY id = :id AND n < 5",
    ],
)
def test_what_is_not_found_by_one_position_is_maintained_as_before(players: Database, text: str) -> None:
    view = players.create_view("v", text)
    players.insert("players", [(1, "a", 5), (2, "b", 3)])
    assert not isinstance(view.state.group, WindowRequestView)
    assert len(list(view(id=2))) == 1


def test_a_batch_that_is_refused_leaves_both_maps(players: Database) -> None:
    view = players.create_view("place", _RANKED)
    players.insert("players", [(1, "a", 5), (2, "b", 3)])
    with pytest.raises(Exception, match="key"):
        players.insert("players", [(3, "c", 9), (1, "d", 4)])
    assert list(view(id=2)) == [(2, "b", 3, 2)]
    assert list(view(id=3)) == []
    view.verify()
