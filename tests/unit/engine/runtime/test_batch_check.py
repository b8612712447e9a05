"""`Batch.check`: what ending a batch would raise, and nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import ivme
from ivme.errors import DataError
from tests.databases import BACKENDS, make_database


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_raises_what_the_end_would_raise_and_changes_nothing(backend: str) -> None:
    db = make_database(backend)
    db.create_table("r", {"k": "int", "v": "string"}, primary_key="k")
    view = db.create_view("v", "SELECT v, COUNT(*) AS n FROM r GROUP BY v")
    changes = view.changes()
    db.insert("r", [(1, "a")])
    with db.batch() as batch:
        batch.insert("r", [(2, "b")])
        batch.check()
        assert [{"k": 1, "v": "a"}] == db.contents("r")[0].to_pylist()
        batch.insert("r", [(1, "other")])
        with pytest.raises(DataError):
            batch.check()
        batch.discard()
        batch.insert("r", [(3, "c")])
    assert {("a", 1), ("c", 1)} == set(view)
    assert [("a", 1), ("c", 1)] == [row for change in changes for row in change]
    view.verify()


def test_a_check_leaves_nothing_in_the_log(tmp_path: Path) -> None:
    with ivme.Database(tmp_path / "db") as db:
        db.create_table("r", {"k": "int"})
        with db.batch() as batch:
            batch.insert("r", [(i,) for i in range(100)])
            batch.check()
            batch.discard()
    with ivme.Database(tmp_path / "db") as db:
        assert 0 == db.contents("r")[0].num_rows
