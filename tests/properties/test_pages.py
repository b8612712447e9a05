"""Pages of rows by an ordered map, against the same pages of rows that are sorted for each."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import pytest

from ivme.database import Database
from ivme.errors import DataError
from ivme.view import View
from tests.databases import BACKENDS, in_one_batch, make_database

_SELECT = "SELECT id, amount, name FROM r"
_ORDERS = {
    "amount DESC, name": ["-amount", "name"],
    "name DESC, amount": ["-name", "amount"],
    "id": ["id"],
}


def run_pages(backend: str, seed: int, batches: int) -> None:
    rng = random.Random(seed)
    db = make_database(backend)
    db.create_table("r", {"id": "int", "amount": "float", "name": "string"})
    plain = db.create_view("plain", _SELECT)
    made = {
        order: [
            db.create_view(f"kept{number}", f"{_SELECT} ORDER BY {order}", favour="reads"),
            db.create_view(f"cut{number}", f"{_SELECT} ORDER BY {order} LIMIT 1000"),
        ]
        for number, order in enumerate(_ORDERS)
    }
    rows: list[Any] = []
    for _ in range(batches):
        new = [
            (rng.randrange(6), rng.choice([0.5, -1.0, 2.0, None]), rng.choice(["a", "é", "longer than eight", None]))
            for _ in range(rng.randrange(1, 9))
        ]
        rows += new
        gone = [rows.pop(rng.randrange(len(rows))) for _ in range(min(len(rows), rng.randrange(5)))]
        in_one_batch(db, ("insert", "r", new), ("delete", "r", gone))
        for order, views in made.items():
            given: dict[str, Any] = {"limit": rng.choice([None, 0, 1, 3, 50]), "offset": rng.choice([0, 0, 1, 7])}
            expected = plain.rows(order_by=_ORDERS[order], **given)
            after = rng.choice([*rows, (3, 0.75, "not there"), (None, None, None)])
            behind = plain.rows(order_by=_ORDERS[order], after=after, **given)
            for view in views:
                assert expected == view.rows(**given) == view.rows(order_by=_ORDERS[order], **given)
                assert behind == view.rows(order_by=_ORDERS[order], after=after, **given)
                assert behind == view.rows(after=after, **given)
                assert len(rows) == len(view)
                assert view[:3] == plain.rows(order_by=_ORDERS[order])[:3]
    for views in made.values():
        for view in views:
            view.verify()


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_pages_by_the_map_are_those_of_sorted_rows(backend: str) -> None:
    run_pages(backend, 1, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("backend", BACKENDS)
def test_pages_by_the_map_are_those_of_sorted_rows_for_longer(backend: str, seed: int) -> None:
    run_pages(backend, seed, 40)


@pytest.fixture
def view() -> View:
    db = Database()
    db.create_table("r", {"id": "int", "amount": "float", "name": "string"})
    made = db.create_view("v", f"{_SELECT} ORDER BY amount DESC, name", favour="reads")
    db.insert("r", [(n, float(n % 7), f"name {n % 10}") for n in range(300)])
    assert isinstance(made, View)
    return made


def test_a_page_reads_no_other_rows(view: View) -> None:
    with patch.object(View, "to_arrow", side_effect=AssertionError("all rows are read")):
        first = view.rows(limit=5)
        assert view.rows(limit=5, after=first[-1]) == view.rows(offset=5, limit=5)
        assert view[5:10] == view.rows(offset=5, limit=5)
        assert view.rows(order_by=["-amount", "name"], limit=5) == first
        assert len(view) == 300
        assert len(view.sample(4, seed=1)) == 4


def test_another_order_is_sorted(view: View) -> None:
    assert view.rows(order_by="id", limit=2) == [(0, 0.0, "name 0"), (1, 1.0, "name 1")]
    assert view.rows(order_by="-amount", limit=1) == [(6, 6.0, "name 6")]  # then by all columns, not by name


def test_what_is_no_page_is_refused(view: View) -> None:
    with pytest.raises(DataError, match="limit is a whole number"):
        view.rows(limit=-1)
    with pytest.raises(DataError, match="is a row of view v, of 3 columns"):
        view.rows(after=(1, 2))
    with pytest.raises(DataError, match="is not a row of view v"):
        view.rows(after=("one", 2.0, "b"))


def test_a_row_has_no_place_in_an_order_that_is_not_shown() -> None:
    """Pages by position are there; those behind a row need a row that is in the view."""
    db = Database()
    db.create_table("r", {"id": "int", "amount": "int"})
    hidden = db.create_view("hidden", "SELECT id FROM r ORDER BY amount + 1 DESC", favour="reads")
    db.insert("r", [(n, n * n % 5) for n in range(9)])
    assert hidden.rows(limit=2, offset=1) == [(3,), (7,)]
    assert hidden.rows(limit=2, after=(3,)) == [(7,), (8,)]
    with pytest.raises(DataError, match="is not in view hidden"):
        hidden.rows(after=(99,))


def test_its_cost_is_said_with_and_without_the_map() -> None:
    db = Database()
    db.create_table("r", {"id": "int"})
    sorted_ = db.create_view("s", "SELECT id FROM r ORDER BY id").explain()
    kept = db.create_view("k", "SELECT id FROM r ORDER BY id", favour="reads").explain()
    assert any('with favour="reads"' in note for note in sorted_.notes)
    assert (str(kept.update), str(kept.delay)) == ("O(log N)", "O(1)")
    assert any("an ordered map has all rows" in note for note in kept.notes)


def test_a_view_that_is_opened_again_has_its_map(tmp_path: Any) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("r", {"id": "int"})
        db.create_view("v", "SELECT id FROM r ORDER BY id DESC", favour="reads")
        db.insert("r", [(1,), (3,)])
    with Database(tmp_path / "db") as db, patch.object(View, "to_arrow", side_effect=AssertionError("all rows")):
        db.insert("r", [(2,)])
        assert db.view("v").rows(limit=2) == [(3,), (2,)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_number_of_groups_is_known_without_reading_them(backend: str) -> None:
    db = make_database(backend)
    db.create_table("r", {"g": "int", "x": "int"})
    texts = [
        "SELECT g, SUM(x) AS s FROM r GROUP BY g",
        "SELECT g, MEDIAN(x) AS s FROM r GROUP BY g",
        "SELECT DISTINCT g, x FROM r",
        "SELECT COUNT(*) AS n FROM r GROUP BY g",
        "SELECT a.g, COUNT(*) AS n FROM r a JOIN r b ON a.x = b.x GROUP BY a.g",
        "SELECT g, COUNT(*) AS n FROM r GROUP BY g HAVING COUNT(*) > 1",
        "SELECT COUNT(*) AS n FROM r",
        "SELECT g, x FROM r",
    ]
    views = [db.create_view(f"v{number}", text) for number, text in enumerate(texts)]
    for change in ([(1, 1), (1, 1), (2, 3), (None, 1)], [(2, 4), (3, None)], []):
        db.insert("r", change)
        assert [len(list(iter(view))) for view in views] == [len(view) for view in views]
    db.delete("r", [(1, 1), (1, 1), (2, 3)])
    assert [len(list(iter(view))) for view in views] == [len(view) for view in views]
    known = [view.known_size() for view in views if isinstance(view, View)]
    assert known[:3] == [3, 3, 3]
