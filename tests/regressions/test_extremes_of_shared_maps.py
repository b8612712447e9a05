"""A map that a later view sorts, for MIN or MAX of a text, sorts by the values: their codes are in no order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.engines import Engine


@pytest.mark.parametrize("backend", ["native", "pure"])
def test_views_that_share_a_map_have_the_greatest_text(backend: str, tmp_path: Path) -> None:
    database = Engine(backend, tmp_path).database
    database.create_table("r", {"s": "string", "j": "int"})
    database.insert("r", [("b", 2), ("A", 0), ("c", 2), ("a", 2)])
    database.create_view("by_both", "SELECT s, j, MAX(s) AS m FROM r GROUP BY s, j")
    by_number = database.create_view("by_number", "SELECT j, MAX(s) AS m FROM r GROUP BY j")
    all_rows = database.create_view("all_rows", "SELECT MAX(s) AS m FROM r")

    assert sorted(by_number) == [(0, "A"), (2, "c")]
    assert list(all_rows) == [("c",)]
    by_number.verify()
    all_rows.verify()
