"""Upserts, updates, deletes by a condition and new contents over shards, against the embedded database."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, ExpressionError, IvmeError, PlanError
from ivme.shards.database import ShardedDatabase
from tests.sharded_databases import LocalCluster, local_database, reopened

VIEWS = {
    "groups": "SELECT s, COUNT(*) AS c, SUM(n) AS t, MAX(d) AS m FROM item GROUP BY s",
    "pairs": "SELECT i.k, p.b FROM item i JOIN plain p ON i.n = p.a",
    "unmatched": "SELECT p.a, p.b, i.s FROM plain p LEFT JOIN item i ON i.k = p.a",
}


def declared(db: Any) -> Any:
    db.create_table("item", {"k": "int", "n": "int", "s": "string", "d": "decimal(9, 2)"}, primary_key="k")
    db.create_table("plain", {"a": "int", "b": "int"})
    for name, text in VIEWS.items():
        db.create_view(name, text)
    return db


def item(chance: random.Random) -> tuple[Any, ...]:
    d = chance.choice([None, Decimal("1.25"), Decimal("-3.50")])
    return chance.randrange(12), chance.choice([None, *range(6)]), chance.choice(["a", "b", "ä", None]), d


def pair(chance: random.Random) -> tuple[Any, ...]:
    return chance.randrange(6), chance.choice([None, 0, 1])


Change = Callable[[Any], None]


def drawn(chance: random.Random) -> Change:
    """A change of a batch; some of them fail, or change nothing."""
    number, other = chance.randrange(12), chance.randrange(6)
    items = [item(chance) for _ in range(chance.randrange(4))]
    pairs = [pair(chance) for _ in range(chance.randrange(4))]
    return chance.choice(
        [
            lambda batch: batch.upsert("item", items),
            lambda batch: batch.upsert("item", items, round_floats=True),
            lambda batch: batch.insert("plain", pairs),
            lambda batch: batch.delete("plain", pairs, strict=False),
            lambda batch: batch.update(
                "item", set={"n": "n + :d", "d": Decimal("2.75")}, where="k < :k", d=1, k=number
            ),
            lambda batch: batch.update("item", set={"k": "11 - k"}),
            lambda batch: batch.update("item", set={"k": "k + 1", "s": ":s"}, where="k > :k", k=number, s="it's"),
            lambda batch: batch.update("item", set={"k": other}, where="k IN (1, 2)"),
            lambda batch: batch.update("item", set={"n": "6 / n"}, where="n IS NOT NULL"),
            lambda batch: batch.update("plain", set={"a": "b", "b": "a"}),
            lambda batch: batch.update("plain", set={"b": None}, where="a = :a OR b IS NULL", a=other),
            lambda batch: batch.delete_where("item", "k = :k", k=number),
            lambda batch: batch.delete_where("plain", "a * 2 > :x", x=Decimal("6.5")),
            lambda batch: batch.delete_keys("item", [number, other], strict=False),
            lambda batch: batch.delete_keys("item", [number]),
            lambda batch: batch.replace("item", list({each[0]: each for each in items}.values())),
            lambda batch: batch.replace("plain", pairs),
            lambda batch: batch.truncate("plain"),
        ]
    )


def done(db: Any, changes: list[Change]) -> type[IvmeError] | None:
    """Makes a batch; the class of its error."""
    try:
        with db.batch() as batch:
            for change in changes:
                change(batch)
    except IvmeError as error:
        return type(error)
    return None


def state(db: Any) -> dict[str, Any]:
    tables = {}
    for table in ("item", "plain"):
        rows, weights = db.contents(table)
        tables[table] = Counter(dict(zip(map(str, rows.to_pylist()), weights.tolist(), strict=True)))
    return tables | {name: Counter(db.view(name)) for name in VIEWS}


def check_stream(path: Path, seed: int, steps: int) -> int:
    """How many batches were refused."""
    chance, refused = random.Random(seed), 0
    expected, db = declared(Database()), declared(local_database(path, 3))
    told = [each.view("groups").changes() for each in (expected, db)]
    for _ in range(steps):
        changes = [drawn(chance) for _ in range(chance.choice([1, 1, 2, 4]))]
        error = done(expected, changes)
        assert error == done(db, changes)
        refused += error is not None
        assert state(expected) == state(db)
        assert [dict(each) for each in told[0]] == [dict(each) for each in told[1]]
    for name in VIEWS:
        db.view(name).verify()
    assert state(expected) == state(reopened(db))
    return refused


@pytest.mark.slow
def test_changes_of_what_is_there_are_those_of_the_embedded_database(tmp_path: Path) -> None:
    assert check_stream(tmp_path, 1, 40) > 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 22))
def test_changes_of_what_is_there_are_those_of_the_embedded_database_for_longer(tmp_path: Path, seed: int) -> None:
    check_stream(tmp_path, seed, 150)


def test_a_shard_that_is_lost_resolves_the_change_again(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 2)
    db = declared(ShardedDatabase(cluster))
    db.insert("item", [(number, number, "a", None) for number in range(8)])
    cluster.kill(0)
    db.update("item", set={"n": "n * 10", "k": "k + 1"})
    cluster.kill(1)
    db.delete_where("item", "k > 6")
    assert [("a", 6, 150, None)] == list(db.view("groups"))
    db.view("groups").verify()


def test_only_the_rows_that_change_leave_their_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = declared(local_database(tmp_path, 2))
    db.insert("item", [(number, number, "a", None) for number in range(100)])
    answers, ask = list[int](), LocalCluster.ask

    def noted(self: LocalCluster, questions: Any, **options: Any) -> Any:
        found = ask(self, questions, **options)
        changes = (a for q, a in zip(questions, found, strict=True) if q.head["op"] == "change")
        answers.extend(rows.num_rows for answer in changes for rows in answer.tables)
        return found

    monkeypatch.setattr(LocalCluster, "ask", noted)
    db.update("item", set={"n": "n + 1"}, where="k = 7 OR n = 8")
    assert 4 == sum(answers)
    answers.clear()
    db.upsert("item", [(7, 0, "b", None)])
    assert [2] == answers  # the one shard that has the key


def test_what_fails_changes_nothing_and_says_why(tmp_path: Path) -> None:
    db = declared(local_database(tmp_path, 2))
    db.insert("item", [(1, 0, "a", None), (2, 2, "b", None)])
    before = state(db)
    with pytest.raises(ExpressionError, match="division by zero"):
        db.update("item", set={"n": "1 / n"})
    with pytest.raises(DataError, match="two rows of table item"):
        db.update("item", set={"k": 5})
    with pytest.raises(DataError, match=r"has no row with the key \(3,\)"):
        db.delete_keys("item", [1, 3])
    with pytest.raises(DataError, match="a primary key cannot be NULL"):
        db.upsert("item", [(None, 1, "a", None)])
    assert before == state(db)


def test_a_row_to_delete_has_no_defaults(tmp_path: Path) -> None:
    """A default is for rows that come; shards deleted the row that has it."""
    for db in (Database(), local_database(tmp_path, 2)):
        db.create_table("R", {"a": "int", "b": "int"}, defaults={"b": 7})
        db.insert("R", [{"a": 1}])
        with pytest.raises(DataError, match="the column b is missing"):
            db.delete("R", [{"a": 1}])
        with pytest.raises(DataError, match="the column b is missing"):
            db.apply("R", [{"a": 1}], [-1])
        assert [{"a": 1, "b": 7}] == db.contents("R")[0].to_pylist()


def test_a_frame_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = declared(local_database(tmp_path, 2))
    monkeypatch.setattr(LocalCluster, "is_frame", lambda _self, rows: rows == "frame")
    with pytest.raises(DataError, match=r"table item by its own rows, give them as frame.toArrow\(\)"):
        db.upsert("item", "frame")
    batch = db.batch().begin()
    batch.insert("item", "frame")
    batch.truncate("item")
    with pytest.raises(PlanError, match="make two batches"):
        batch.check()


def test_a_batch_that_nobody_entered_refuses_changes(tmp_path: Path) -> None:
    db = local_database(tmp_path)
    db.create_table("item", {"a": "int"})
    with pytest.raises(PlanError, match=r"write `with db.batch\(\) as batch:`"):
        db.batch().insert("item", [])
