"""Views that are built while others write show what they show when nobody does."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.runtime import build_beside
from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import DataError, ExpressionError, IvmeError

QUERIES = {
    "groups": "SELECT a, COUNT(*) AS n, SUM(b) AS t FROM R GROUP BY a",
    "filter": "SELECT a, b * 2 AS twice FROM R WHERE s LIKE 'x%'",
    "join": "SELECT R.a, S.c, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a, S.c",
    "self-join": "SELECT x.a, y.b FROM R x JOIN R y ON x.b = y.a",
    "extremes": "SELECT a, MIN(s) AS low, MAX(b) AS high FROM R GROUP BY a",
    "triangle": "SELECT COUNT(*) FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c AND T.a = R.a",
    "floats": "SELECT a, SUM(f) AS t FROM R GROUP BY a",
    "parameter": "SELECT b, s FROM R WHERE a = :a",
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_beside, "LEAST_ROWS", 1)
    monkeypatch.setattr(build_beside, "PIECE", 50)
    monkeypatch.setattr(build_beside, "FEW_BATCHES", 2)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each view was built beside writers."""
    found: list[bool] = []
    run, image = build_beside.BuildBeside.run, build_beside.BuildBeside.image

    def noted_run(build: build_beside.BuildBeside) -> bool:
        done = run(build)
        if not done:
            found.append(False)
        return done

    def noted_image(build: build_beside.BuildBeside) -> Any:
        made = image(build)
        found.append(made is not None)
        return made

    monkeypatch.setattr(build_beside.BuildBeside, "run", noted_run)
    monkeypatch.setattr(build_beside.BuildBeside, "image", noted_image)
    return found


def row(rng: random.Random) -> tuple[Any, ...]:
    return (rng.randrange(20), rng.randrange(20), rng.choice(["x", "xy", "z", None]), rng.choice([0.1, 1e300, -0.5]))


def filled(rng: random.Random) -> Database:
    db = Database()
    db.create_table("R", {"a": "int", "b": "int", "s": "string", "f": "float"})
    db.create_table("S", {"b": "int", "c": "int"})
    db.create_table("T", {"c": "int", "a": "int"})
    db.insert("R", [row(rng) for _ in range(400)])
    db.apply("R", [row(rng) for _ in range(20)], [rng.randrange(200, 400) for _ in range(20)])
    for table in ("S", "T"):
        db.insert(table, [(rng.randrange(20), rng.randrange(20)) for _ in range(60)])
    return db


def change(db: Database, rng: random.Random) -> None:
    """One small change of some kind."""
    kind = rng.randrange(6)
    if kind == 0:
        db.insert("R", [row(rng)])
    elif kind == 1:
        db.insert("R", [row(rng) for _ in range(30)])
    elif kind == 2:
        db.delete_where("R", "a = :a AND b > 10", a=rng.randrange(20))
    elif kind == 3:
        db.update("R", set={"b": "(b + 1) % 20"}, where="a = :a", a=rng.randrange(20))
    elif kind == 4:
        db.insert("S", [(rng.randrange(20), rng.randrange(20))])
    else:
        with db.batch() as batch:
            batch.insert("R", [row(rng)])
            batch.insert("T", [(rng.randrange(20), rng.randrange(20))])


def at_each_breath(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    monkeypatch.setattr(build_beside, "let_writers_in", work)


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
def test_changes_between_pieces_are_in_the_view(monkeypatch: pytest.MonkeyPatch, query: str, built: list[bool]) -> None:
    rng = random.Random(3)
    db = filled(rng)
    other = db.create_view("other", "SELECT b, COUNT(*) AS n FROM R GROUP BY b")
    built.clear()
    at_each_breath(monkeypatch, lambda: change(db, rng))
    view = db.create_view("v", query)
    assert [True] == built
    for _ in range(10):
        view.verify()
        change(db, rng)
    other.verify()
    assert not db._runtime.catalog.builds


@pytest.mark.parametrize("query", [QUERIES["join"], QUERIES["triangle"]])
def test_a_writer_beside_it(query: str) -> None:
    rng = random.Random(4)
    db = filled(rng)
    over = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            while not over.is_set():
                change(db, rng)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            db.create_view(f"v{number}", query)
            if number % 2:
                db.drop_view(f"v{number}")
    finally:
        over.set()
        writer.join()
    assert [] == failures
    for name in db.views:
        db.view(name).verify()


def test_rows_that_move_while_they_are_read_are_read_under_the_lock(
    monkeypatch: pytest.MonkeyPatch, built: list[bool]
) -> None:
    db = Database()
    db.create_table("R", {"a": "int"})
    db.insert("R", [(number,) for number in range(5000)])
    at_each_breath(monkeypatch, lambda: db.delete_where("R", "a > 100"))
    view = db.create_view("v", "SELECT a FROM R")
    assert [False] == built
    assert list(range(101)) == sorted(a for (a,) in view)


def test_a_table_that_is_made_anew_is_another(monkeypatch: pytest.MonkeyPatch, built: list[bool]) -> None:
    db = Database()
    once = iter((1,))

    def begin() -> None:
        db.create_table("R", {"a": "int"})
        db.insert("R", [(number,) for number in range(200)])

    def again() -> None:
        for _ in once:
            db.drop_table("R")
            begin()
            db.insert("R", [(777,)])

    begin()
    at_each_breath(monkeypatch, again)
    view = db.create_view("v", "SELECT a FROM R")
    assert [False] == built
    assert 201 == len(list(view))


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_one_that_is_interrupted_leaves_nothing(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    rng = random.Random(5)
    db = filled(rng)
    calls = iter(range(100))

    def fail() -> None:
        change(db, rng)
        if next(calls) == 3:
            raise error

    at_each_breath(monkeypatch, fail)
    with pytest.raises(error):
        db.create_view("v", QUERIES["join"])
    assert () == db.views
    gc.collect()
    assert not db._runtime.catalog.builds
    db.create_view("v", QUERIES["join"]).verify()


def test_what_fails_says_what_it_says_without_writers() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "b": "int"})
    db.insert("R", [(number, 2**62) for number in range(200)])
    refused: dict[str, type[IvmeError]] = {
        "SELECT SUM(b) AS t FROM R": DataError,
        "SELECT b * 4 AS c FROM R": ExpressionError,
    }
    for query, error in refused.items():
        with pytest.raises(error):
            db.create_view("v", query)
        assert () == db.views
        assert not db._runtime.catalog.builds


def test_codes_of_values_that_are_gone_are_not_given_again_while_a_view_is_built(
    monkeypatch: pytest.MonkeyPatch, built: list[bool]
) -> None:
    db = Database()
    db.create_table("R", {"k": "int", "s": "string"}, primary_key="k")
    db.insert("R", [(number, f"old {number}") for number in range(300)])
    numbers = iter(range(299, -1, -1))

    def write() -> None:
        for number, _ in zip(numbers, range(20), strict=False):
            db.upsert("R", [(number, f"new {number}")])
            reclaim(db._runtime.catalog, now=True)

    at_each_breath(monkeypatch, write)
    view = db.create_view("v", "SELECT s, COUNT(*) AS n FROM R WHERE s LIKE 'old%' GROUP BY s")
    assert [True] == built
    view.verify()
