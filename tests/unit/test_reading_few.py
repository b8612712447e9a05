"""A view of few rows is read in one call of the kernel, one of many by a cursor: the rows are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from ivme.view import _READS_OF_MANY

QUERIES = (
    "SELECT a, b FROM r",
    "SELECT DISTINCT a FROM r",
    "SELECT a, COUNT(*) AS n, SUM(b) AS s FROM r GROUP BY a",
    "SELECT COUNT(*) AS n, SUM(b) AS s FROM r",
    "SELECT b FROM r ORDER BY b DESC",
)


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 200])
def test_rows_are_those_of_items_and_arrow_whatever_their_number(size: int) -> None:
    db = Database()
    db.create_table("r", {"a": "int", "b": "int"})
    views = [db.create_view(f"v{number}", query) for number, query in enumerate(QUERIES)]
    db.insert("r", [(number, number % 7) for number in range(size)] * 2)
    for view in views:
        expected = Counter(dict(view.items()))
        for _ in range(3):
            assert expected == Counter(view) == Counter(view()) == Counter(iter(view))
        assert len(list(view)) == view.to_arrow().num_rows


def test_a_view_of_many_rows_that_has_few_again_is_read_at_once_again() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM r")
    for size in (200, 3, 300, 0):
        db.replace("r", [(number,) for number in range(size)])
        for _ in range(_READS_OF_MANY + 2):
            assert list(range(size)) == sorted(row[0] for row in view)
        assert (view._many_reads == 0) == (size < 64)


def test_rows_are_of_the_state_in_which_they_were_read() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM r")
    db.insert("r", [(1,), (2,)])
    begun = iter(view)
    db.insert("r", [(3,)])
    assert [(1,), (2,)] == sorted(begun)
    assert [(1,), (2,), (3,)] == sorted(view)


def test_a_dropped_view_and_an_unknown_parameter_are_refused_as_before() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM r")
    with pytest.raises(IvmeError, match="x"):
        view(x=1)
    db.drop_view("v")
    for read in (list, lambda gone: list(gone())):
        with pytest.raises(IvmeError):
            read(view)
