"""A batch that is held: applied, its changes known, and then kept or taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("r", {"a": "int", "b": "int"})
    made.create_view("v", "SELECT a, SUM(b) AS s FROM r GROUP BY a")
    made.insert("r", [(1, 2), (1, 3)])
    return made


@pytest.mark.parametrize("keep", [True, False])
def test_a_held_batch_is_kept_or_taken_back(db: Database, keep: bool) -> None:
    feed = db.view("v").changes()
    seen: list[Any] = []

    def decide(changes: Mapping[str, Any]) -> bool:
        seen.append((dict(changes["v"]), sorted(db.view("v"))))
        return keep

    batch = db.batch().begin()
    batch.insert("r", [(1, 5), (2, 7)])
    assert keep == batch.hold(decide)
    assert [({(1, 5): -1, (1, 10): 1, (2, 7): 1}, [(1, 10), (2, 7)])] == seen
    assert sorted(db.view("v")) == ([(1, 10), (2, 7)] if keep else [(1, 5)])
    assert [{(1, 5): -1, (1, 10): 1, (2, 7): 1}][: int(keep)] == list(feed)
    db.view("v").verify()


def test_a_batch_of_nothing_is_decided_once(db: Database) -> None:
    calls: list[Mapping[str, Any]] = []
    batch = db.batch().begin()
    batch.apply("r", [(9, 9), (9, 9)], [1, -1])

    def decide(changes: Mapping[str, Any]) -> bool:
        calls.append(changes)
        return False

    assert not batch.hold(decide)
    assert 1 == len(calls)


def test_a_batch_that_fails_is_not_decided(db: Database) -> None:
    batch = db.batch().begin()
    batch.delete("r", [(8, 8)])
    with pytest.raises(DataError, match="cannot delete"):
        batch.hold(lambda _: pytest.fail("nothing is to be decided"))


def test_transactions_of_several_databases_are_held_within_each_other(db: Database) -> None:
    other = Database()
    other.create_table("r", {"a": "int", "b": "int"})
    first, second = db.batch().begin(), other.batch().begin()
    first.insert("r", [(3, 3)])
    second.insert("r", [(3, 3)])
    assert first.hold(lambda _: second.hold(lambda _: True))
    assert [(1, 5), (3, 3)] == sorted(db.view("v"))
    assert [(3, 3)] == list(other.table("r"))
