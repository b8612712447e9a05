"""CONCAT_WS over rows of which all parts are NULL: each has a value, the empty text."""

from __future__ import annotations

from ivme.database import Database


def test_rows_of_nulls_stay_rows() -> None:
    database = Database()
    database.create_table("r", {"n": "int", "s": "string", "t": "string"})
    view = database.create_view("v", "SELECT n, CONCAT_WS('-', s, t) AS x FROM r")
    rows = [(n, None, None) if n % 3 == 0 else (n, "a", None) for n in range(300)]
    database.insert("r", rows)

    assert sorted(view) == [(n, "" if n % 3 == 0 else "a") for n in range(300)]
    view.verify()


def test_a_quotient_that_is_the_greatest_is_rounded_as_its_type_has_it() -> None:
    database = Database()
    database.create_table("r", {"d": "decimal(20, 2)"})
    view = database.create_view("v", "SELECT MAX_BY(d / 3, d / 3) AS x FROM r")
    database.insert("r", [(-1,)])

    assert [str(value) for (value,) in view] == ["-0.333333"]
    view.verify()
