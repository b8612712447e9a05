"""Defaults of columns are in the log and in checkpoints, and views are made over tables that have them.

Those of arrays and structs came back in a form that cannot be compared: the directory could not be opened again, and a
view over the table could not be stored.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database

DEFAULTS: dict[str, Any] = {
    "array<struct<x int>>": [{"x": 1}, None],
    "array<date>": [date(2026, 11, 17), None],
    "struct<a int, b array<string>>": {"a": 1, "b": ["x", None]},
    "decimal(8, 2)": Decimal("2.50"),
    "timestamp": datetime(2026, 11, 17, 8),
    "date": date(2026, 11, 17),
    "binary": b"\x00\xff",
    "float": 0.1,
    "bool": False,
    "string": "it's",
}


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["log", "checkpoint"])
@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_default_is_the_same_after_the_directory_is_opened_again(
    tmp_path: Path, kind: str, is_snapshot: bool
) -> None:
    with Database(tmp_path / "db") as db:
        db.create_table("r", {"id": "int"})
        db.insert("r", [(1,)])
        db.add_column("r", "a", kind, default=DEFAULTS[kind])
        db.create_view("v", "SELECT id, a FROM r")
        db.insert("r", [{"id": 2}])
        if is_snapshot:
            db.checkpoint()
        expected = sorted(db.view("v"))
        declared = db.definitions.relations()
    with Database(tmp_path / "db") as db:
        assert declared == db.definitions.relations()
        assert expected == sorted(db.view("v"))
        db.insert("r", [{"id": 3}])
        assert [(id_, expected[0][1]) for id_ in (1, 2, 3)] == sorted(db.view("v"))
        db.create_view("again", "SELECT a, COUNT(*) AS n FROM r GROUP BY a").verify()
