"""Arrays and structs over shards answer as in the embedded database."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from tests.nested_values import EQUALITIES, ORDERS, R, S, some_others, some_rows
from tests.sharded_databases import local_database

_NAMES = ("joined", "grouped", "distinct", "in", "union", "same")
_COUNTED = {"counted": "SELECT COUNT(DISTINCT deep) AS n FROM r"}
TEXTS = (
    _COUNTED | {name: EQUALITIES[name] for name in _NAMES} | {name: ORDERS[name] for name in ("extremes", "by group")}
)


@pytest.mark.slow
def test_arrays_and_structs_are_joined_grouped_and_counted_over_shards(tmp_path: Path) -> None:
    choose = random.Random(5)
    sharded, embedded = local_database(tmp_path, 2), Database()
    views: list[dict[str, Any]] = []
    for db in (sharded, embedded):
        db.create_table("r", R)
        db.create_table("s", S)
        made = {name: db.create_view(name.replace(" ", "_"), text) for name, text in TEXTS.items()}
        made["asked"] = db.create_view("asked", "SELECT id, place FROM r WHERE tags = :tags")
        views.append(made)
    rows = some_rows(choose, 40)
    for db in (sharded, embedded):
        db.insert("r", rows)
        db.insert("s", some_others(random.Random(6), 15))
        db.delete("r", rows[::4])
    for name in TEXTS:
        assert sorted(views[1][name], key=repr) == sorted(views[0][name], key=repr), name
        views[0][name].verify()
    for tags in ([], ["a", None], ["nowhere"]):
        wanted = sorted(views[1]["asked"](tags=tags), key=repr)
        assert wanted == sorted(views[0]["asked"](tags=tags), key=repr)
