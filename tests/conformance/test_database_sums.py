"""Sums of integers and decimals near the ends of their types: only a value that is shown must fit. On both backends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import rows_of

LARGEST = 2**63 - 1


def accounts(db: Database) -> Any:
    db.create_table("moves", {"account": "int", "amount": "int"})
    return db.create_view("balance", "SELECT account, SUM(amount) AS s FROM moves GROUP BY account")


def test_a_batch_may_pass_the_range_of_a_sum_on_its_way(db: Database) -> None:
    view = accounts(db)
    db.insert("moves", [(1, 10**18)] * 40 + [(1, -(10**18))] * 40 + [(1, 7)])
    assert rows_of(view) == [(1, 7)]
    db.apply("moves", [(1, LARGEST), (1, -LARGEST)], 2**61)
    db.apply("moves", [(1, 7), (1, 3)], [-1, 1])
    assert rows_of(view) == [(1, 3)]
    view.verify()


@pytest.mark.parametrize("rows", [[(1, LARGEST), (1, 1)], [(1, -LARGEST), (1, -1)]])
def test_a_stored_sum_beyond_its_type_refuses_the_batch_and_names_view_and_column(db: Database, rows: Any) -> None:
    view = accounts(db)
    db.insert("moves", [(2, 5)])
    for given in (rows, pa.table({"account": [a for a, _ in rows], "amount": [x for _, x in rows]})):
        with pytest.raises(DataError, match=r"column s of view balance does not fit int.*nothing was changed"):
            db.insert("moves", given)
    db.insert("moves", rows[:1])
    with pytest.raises(DataError, match="column s of view balance does not fit"):
        db.insert("moves", rows[1:])
    assert rows_of(view) == sorted([(1, rows[0][1]), (2, 5)])
    db.insert("moves", [*rows[1:], (1, -rows[1][1])])
    assert rows_of(view) == sorted([(1, rows[0][1]), (2, 5)])


def test_a_sum_that_only_an_average_uses_may_exceed_the_type_of_sums(db: Database) -> None:
    db.create_table("R", {"x": "int"})
    view = db.create_view("v", "SELECT AVG(x) AS m, COUNT(x) AS n FROM R")
    db.insert("R", [(LARGEST,), (LARGEST - 2,)])
    assert list(view) == [(float(LARGEST), 2)]
    with pytest.raises(DataError, match="column s of view w does not fit"):
        db.create_view("w", "SELECT SUM(x) AS s FROM R")
    assert db.views == ("v",)


def test_a_sum_that_is_a_product_of_stored_ones_is_refused_when_it_is_read_until_a_change_mends_it(
    db: Database,
) -> None:
    """A change of one factor concerns as many sums as there are partners, which a batch must not visit: only where sums
    are stored, as `classical` does, the batch is refused."""
    db.create_table("R", {"a": "int", "x": "int"})
    db.create_table("S", {"a": "int", "b": "int"})
    text = "SELECT R.a, S.b, SUM(R.x) AS s FROM R JOIN S ON R.a = S.a GROUP BY R.a, S.b"
    made = db.create_view("made", text, strategy="view-tree")
    db.insert("R", [(1, LARGEST), (2, 5)])
    db.insert("S", [(1, 7), (1, 7), (2, 8)])
    with pytest.raises(DataError, match="column s of view made does not fit int"):
        list(made)
    with pytest.raises(DataError, match="column s of view stored does not fit int"):
        db.create_view("stored", text, strategy="classical")
    db.delete("S", [(1, 7)])
    assert rows_of(made) == [(1, 7, LARGEST), (2, 8, 5)]
    db.create_view("stored", text, strategy="classical")
    with pytest.raises(DataError, match=r"column s of view stored does not fit int.*nothing was changed"):
        db.insert("S", [(1, 7)])
    assert rows_of(made) == [(1, 7, LARGEST), (2, 8, 5)]


def test_only_the_sum_of_all_weights_of_a_batch_must_fit(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM R")
    db.apply("R", [(1,), (2,), (1,), (3,), (2,)], [2**62, 2**62, -(2**62), 2**62, -(2**62)])
    assert view.scalar() == 2**62
    with pytest.raises(DataError, match="does not fit 64 bits; nothing was changed"):
        db.apply("R", [(4,), (5,), (6,), (7,)], [2**62, 2**62, 2**62, 2**62])
    assert view.scalar() == 2**62


@pytest.mark.parametrize(
    "query", ["SELECT COUNT(*) AS n FROM R JOIN S ON R.a = S.a", "SELECT R.a FROM R JOIN S ON R.a = S.a"]
)
def test_no_count_on_the_way_through_a_batch_has_to_fit(db: Database, query: str) -> None:
    """What single batches may do in one order, one batch may do in any."""
    for name in "RS":
        db.create_table(name, {"a": "int"})
    view = db.create_view("v", query)
    feed = view.changes()
    db.apply("S", [(1,)], 2**40)
    with db.batch() as batch:
        batch.apply("R", [(1,)], 2**40)
        batch.apply("S", [(1,)], 1 - 2**40)
    assert [2**40] == [row[0] if "COUNT" in query else times for row, times in view.items()]
    assert len(list(feed)) == 1
    view.verify()


def too_many(db: Database) -> None:
    with db.batch() as batch:
        batch.apply("R", [(1,), (1,)], 2**62)
        batch.delete("R", [(2,)], strict=False)


def test_lenient_deletes_beside_too_many_inserts_are_a_data_error(db: Database) -> None:
    db.create_table("R", {"a": "int"})
    with pytest.raises(DataError, match="table R does not fit 64 bits"):
        too_many(db)


READS: list[Callable[[Any], Any]] = [
    list,
    lambda view: list(view.items()),
    lambda view: view.to_arrow(),
    lambda view: view.verify(),
    lambda view: view.changes(),
]


@pytest.mark.parametrize("read", READS)
def test_a_sum_that_is_multiplied_while_it_is_read_is_refused_in_the_right_words(db: Database, read: Any) -> None:
    db.create_table("R", {"g": "int", "x": "int"})
    db.create_table("S", {"g": "int", "h": "int"})
    view = db.create_view("v", "SELECT R.g, h, SUM(x) AS s FROM R, S GROUP BY R.g, h")
    db.insert("R", [(1, LARGEST - 1)])
    db.insert("S", [(1, 1), (2, 1)])
    with pytest.raises(DataError, match="column s of view v does not fit int") as refused:
        read(view)
    assert "rolled back" not in str(refused.value)
    db.delete("S", [(2, 1)])
    assert list(view) == [(1, 1, LARGEST - 1)]


def test_a_count_that_is_multiplied_while_it_is_read_is_refused_in_the_right_words(db: Database) -> None:
    for name in "RS":
        db.create_table(name, {"g": "int"})
    view = db.create_view("v", "SELECT R.g AS a, S.g AS b FROM R, S")
    asked = db.create_view("w", "SELECT S.g AS b FROM R, S WHERE R.g = :g")
    db.apply("R", [(1,)], 2**40)
    db.apply("S", [(1,)], 2**40)
    for read in (list, lambda v: list(v.items()), lambda v: v.to_arrow(), lambda v: v.verify()):
        with pytest.raises(DataError, match=r"view v.*does not fit 64 bits"):
            read(view)
    for ask in (lambda: list(asked(g=1)), lambda: list(asked.items(g=1)), lambda: asked.to_arrow(g=1)):
        with pytest.raises(DataError, match=r"view w.*does not fit 64 bits"):
            ask()


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_directory_whose_sums_passed_the_range_of_a_sum_opens_again(tmp_path: Path, snapshot: bool) -> None:
    with Database(tmp_path / "db") as db:
        view = accounts(db)
        db.create_view("total", "SELECT SUM(s) AS t FROM balance")
        if snapshot:
            db.insert("moves", [(2, 1)])
            db.checkpoint()
        for _ in range(10):
            db.insert("moves", [(1, 10**18)])
            db.insert("moves", [(1, -(10**18))])
        for _ in range(10):
            db.insert("moves", [(1, 10**18)])
            db.delete("moves", [(1, 10**18)])
        expected = rows_of(view)
    for _ in range(2):
        with Database(tmp_path / "db") as db:
            assert expected == rows_of(db.view("balance"))
            db.view("balance").verify()
            db.insert("moves", [(1, 5)])
            db.delete("moves", [(1, 5)])
            if snapshot:
                db.checkpoint()
