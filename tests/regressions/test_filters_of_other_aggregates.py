"""FILTER stands behind each aggregate that ivme has, whatever the parser knows of its name.

Behind MEAN, EVERY, SOME and STD, which the parser has no class for, it ended with an AttributeError.
"""

from __future__ import annotations

import pytest

import ivme


@pytest.fixture
def db() -> ivme.Database:
    made = ivme.Database()
    made.create_table("t", {"id": "int", "a": "int", "b": "bool", "s": "string"})
    made.insert("t", [(1, 2, True, "x"), (2, 1, False, "y"), (3, 6, None, "z"), (4, 6, True, "x")])
    return made


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("MEAN(a)", "AVG(a)"),
        ("MEAN(DISTINCT a)", "AVG(DISTINCT a)"),
        ("EVERY(b)", "BOOL_AND(b)"),
        ("SOME(b)", "BOOL_OR(b)"),
        ("STD(a)", "STDDEV(a)"),
    ],
)
def test_a_filter_is_that_of_the_other_spelling(db: ivme.Database, written: str, same: str) -> None:
    query = "SELECT {0} FILTER (WHERE a > 1) AS x, {0} FILTER (WHERE s = 'y') AS y FROM t"
    query += " HAVING {0} FILTER (WHERE a > 1) IS NOT NULL"
    assert list(db.create_view("v", query.format(same))) == list(db.create_view("w", query.format(written)))


def test_a_filter_of_the_system_of_a_text(db: ivme.Database) -> None:
    view = db.create_view("v", "SELECT every(b) FILTER (WHERE a > 1) AS x FROM t", dialect="postgres")
    assert [(True,)] == list(view)


@pytest.mark.parametrize("function", ["NOSUCH(a)", "NOSUCH()"])
def test_a_filter_of_a_function_that_is_not_there_is_refused(db: ivme.Database, function: str) -> None:
    with pytest.raises(ivme.IvmeError, match="the function NOSUCH is not supported"):
        db.create_view("v", f"SELECT {function} FILTER (WHERE a > 1) AS x FROM t")


def test_an_aggregate_without_its_argument_stays_without_it(db: ivme.Database) -> None:
    with pytest.raises(ivme.IvmeError):
        db.create_view("v", "SELECT STD() FILTER (WHERE a > 1) AS x FROM t")
