"""Arrays and structs in a directory that is opened again: from the log, from snapshots, and in stored views."""

from __future__ import annotations

import random
from pathlib import Path

from ivme.database import Database
from tests.durability.directories import crash
from tests.nested_values import EQUALITIES, ORDERS, R, S, some_others, some_rows

TEXTS = {
    name.replace(" ", "_"): text.replace("VARCHAR[]", "ARRAY<STRING>")
    for name, text in {**EQUALITIES, **ORDERS}.items()
}


def _contents(db: Database) -> dict[str, list[str]]:
    return {name: sorted(map(repr, db.view(name))) for name in TEXTS}


def test_views_of_arrays_are_there_after_closing_and_after_a_crash(tmp_path: Path) -> None:
    choose = random.Random(11)
    rows = some_rows(choose, 120)
    with Database(tmp_path / "db") as db:
        db.create_table("r", R)
        db.create_table("s", S)
        for name, text in TEXTS.items():
            db.create_view(name, text)
        db.insert("r", rows)
        db.insert("s", some_others(choose, 40))
        db.delete("r", rows[:30])
        expected = _contents(db)
    again = Database(tmp_path / "db")
    assert expected == _contents(again)
    again.insert("r", rows[:1])
    again.delete("r", rows[60:70])
    expected = _contents(again)
    crash(again)
    with Database(tmp_path / "db") as last:
        assert expected == _contents(last)
        for name in TEXTS:
            last.view(name).verify()
