"""Views over shards say why a row is in them, from the rows of all shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import DataError
from tests.sharded_databases import local_database


def test_a_view_over_shards_names_rows_of_all_of_them(tmp_path: Path) -> None:
    db = local_database(tmp_path / "shards", 2)
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "string"})
    view = db.create_view("v", "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a")
    windows = db.create_view("w", "SELECT a, b, SUM(b) OVER (ORDER BY a, b) AS t FROM r")
    db.insert("r", [(1, n) for n in range(6)])
    db.insert("s", [(n, "x") for n in range(0, 6, 2)])
    (partners, others) = view.why((1, 3)).findings
    assert ("r", {(1, 0), (1, 2), (1, 4)}) == (partners.relation, set(partners.tuples))
    assert {(0, "x"), (2, "x"), (4, "x")} == set(others.tuples)
    assert "v has (1, 3) at a = 1" in str(view.why_not((1, 4)))
    assert "OVER (ORDER BY a, b) has (1, 0), (1, 1), (1, 2)" in str(windows.why((1, 2, 3)))
    with pytest.raises(DataError, match="says why"):
        view.why((2, 1))
    db.close()
