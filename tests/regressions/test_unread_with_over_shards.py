"""Over shards, views with a WITH that nothing reads were refused: their engines lacked the tables that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import PlanError
from tests.sharded_databases import local_database


def test_a_with_that_nothing_reads_names_tables_and_views(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"u": "int"})
    db.create_view("counts", "SELECT u, COUNT(*) AS n FROM r GROUP BY u")
    constant = db.create_view("constant", "WITH w AS (SELECT t.u FROM r AS t) SELECT 'a' AS c")
    rows = db.create_view("listed", "WITH w AS (SELECT t.u FROM counts AS t) SELECT u FROM r")
    db.insert("r", [(1,)])
    assert [("a",)] == list(constant)
    assert [(1,)] == list(rows)
    constant.verify()
    rows.verify()
    assert [("a",)] == list(local_database(tmp_path, None).view("constant"))


def test_what_such_a_with_names_is_not_dropped(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"u": "int"})
    db.create_view("counts", "SELECT u, COUNT(*) AS n FROM r GROUP BY u")
    db.create_view("constant", "WITH w AS (SELECT t.u FROM counts AS t) SELECT 'a' AS c")
    with pytest.raises(PlanError, match="constant needs it"):
        db.drop_view("counts")
    db.drop_view("constant")
    db.drop_view("counts")
    db.create_view("constant", "WITH w AS (SELECT t.u FROM r AS t) SELECT 'a' AS c")
    with pytest.raises(PlanError, match="constant needs it"):
        db.drop_table("r")
