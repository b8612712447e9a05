"""Batches that say how far their source has been applied."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import rows_of


@pytest.fixture
def table(db: Database) -> Database:
    db.create_table("R", {"a": "int"})
    db.create_view("v", "SELECT a FROM R")
    return db


def test_a_source_that_sent_nothing_has_no_position(table: Database) -> None:
    assert table.position("orders") is None


def test_a_batch_moves_the_position_of_its_source_alone(table: Database) -> None:
    with table.batch(source="orders", position=0) as batch:
        batch.insert("R", [(1,)])
    with table.batch(source="orders", position=17) as batch:
        batch.insert("R", [(2,)])
    with table.batch(source="clicks", position=3) as batch:
        batch.insert("R", [(3,)])
    assert (17, 3, None) == (table.position("orders"), table.position("clicks"), table.position("other"))
    assert [(1,), (2,), (3,)] == rows_of(table.view("v"))


def test_an_empty_batch_commits_its_position(table: Database) -> None:
    with table.batch(source="orders", position=5):
        pass
    assert 5 == table.position("orders")


@pytest.mark.parametrize("position", [4, 5])
def test_a_batch_at_or_below_the_position_is_refused_and_changes_nothing(table: Database, position: int) -> None:
    with table.batch(source="orders", position=5):
        pass
    with (
        pytest.raises(DataError, match=f"orders has been applied up to position 5.*position {position}"),
        table.batch(source="orders", position=position) as batch,
    ):
        batch.insert("R", [(1,)])
    assert ([], 5) == (rows_of(table.view("v")), table.position("orders"))


def test_of_two_open_batches_at_one_position_the_second_is_refused(table: Database) -> None:
    first, second = (table.batch(source="orders", position=1).begin() for _ in range(2))
    first.insert("R", [(1,)])
    second.insert("R", [(2,)])
    first.__exit__(None, None, None)
    with pytest.raises(DataError, match="applied before"):
        second.__exit__(None, None, None)
    assert [(1,)] == rows_of(table.view("v"))


def test_a_batch_that_fails_leaves_the_position(table: Database) -> None:
    with pytest.raises(DataError, match="not there"), table.batch(source="orders", position=1) as batch:
        batch.delete("R", [(9,)])
    with pytest.raises(ZeroDivisionError), table.batch(source="orders", position=1) as batch:
        batch.insert("R", [(1 // 0,)])
    assert table.position("orders") is None
    with table.batch(source="orders", position=1) as batch:
        batch.insert("R", [(1,)])
    assert 1 == table.position("orders")


@pytest.mark.parametrize(
    ("source", "position", "reason"),
    [
        ("orders", None, "position is missing"),
        (None, 1, "source is missing"),
        ("", 1, "named by a string"),
        (7, 1, "named by a string"),
        ("orders", -1, "integer from 0"),
        ("orders", True, "integer from 0"),
        ("orders", 1.0, "integer from 0"),
        ("orders", 2**63, "integer from 0"),
    ],
)
def test_a_progress_that_is_none_is_refused(table: Database, source: Any, position: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        table.batch(source=source, position=position)
