"""Directories that earlier versions of ivme wrote are opened, show what they showed, and go on.

`fixtures/older/COMMIT.tar.xz` is what `fixtures/older/write.py` wrote when it was run with that commit: a checkpoint
and changes in the log behind it. `COMMIT.json` has the rows of its views as the commit showed them.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from ivme.database import Database
from ivme.view import View

FIXTURES = Path(__file__).parent / "fixtures" / "older"
COMMITS = sorted(path.name.partition(".")[0] for path in FIXTURES.glob("*.tar.xz"))


def shown(db: Database, name: str) -> list[str]:
    view = db.view(name)
    assert isinstance(view, View)
    rows = view(text="text 1 é") if view.state.typed.query.parameters else iter(view)
    return sorted(repr(tuple(row)) for row in rows)


def verify_all(db: Database) -> None:
    for name in db.views:
        db.view(name).verify()


def test_there_are_directories_of_several_versions() -> None:
    assert len(COMMITS) >= 3


@pytest.mark.parametrize("commit", COMMITS)
def test_a_directory_of_an_earlier_version_opens_and_goes_on(commit: str, tmp_path: Path) -> None:
    with tarfile.open(FIXTURES / f"{commit}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((FIXTURES / f"{commit}.json").read_text())
    path = tmp_path / commit
    with Database(path) as db:
        assert set(expected) == set(db.views)
        assert expected == {name: shown(db, name) for name in db.views}
        db.delete("orders", [(100, 3, 7)])
        db.insert("edges", [(2, 2), (0, 3)])
        db.insert("kinds", [(3, *[None] * 8), (1000, 0.5, *[None] * 2, "text 1 é", *[None] * 4)])
        verify_all(db)
        after = {name: shown(db, name) for name in db.views}
    assert after != expected
    with Database(path) as db:
        assert after == {name: shown(db, name) for name in db.views}
        db.checkpoint()
        db.drop_view("joined")
        db.create_view("joined", "SELECT k.s, o.amount FROM kinds k JOIN orders o ON k.i = o.kind")
        db.insert("orders", [(200, 4, 5)])
    with Database(path) as db:
        verify_all(db)
