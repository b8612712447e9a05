"""Views of several blocks and views on views that are spread by a key which all their blocks have."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from tests.sharded_databases import local_database, reopened

TABLES = {
    "r": {"a": "int", "b": "int"},
    "s": {"a": "int", "c": "int"},
    "w": {"a": "decimal(9, 2)", "b": "int"},
    "f": {"a": "float", "b": "int"},
}

KEYED = {
    "outer_join": "SELECT r.a, r.b, s.c FROM r LEFT JOIN s ON r.a = s.a",
    "absent": "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a)",
    "member": "SELECT a, b FROM r WHERE a IN (SELECT a FROM s)",
    "minus": "SELECT a FROM r EXCEPT SELECT a FROM s",
    "minus_all": "SELECT a FROM r EXCEPT ALL SELECT a FROM s",
    "in_both": "SELECT a FROM r INTERSECT SELECT a FROM s",
    "all_of_both": "SELECT a, b FROM r UNION ALL SELECT a, c FROM s",
    "of_either": "SELECT a FROM r UNION SELECT a FROM s",
    "several": "SELECT a, COUNT(*) AS n FROM r GROUP BY a HAVING COUNT(*) > 1",
    "numbered": "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM r",
    "running": "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY b) AS t FROM r",
    "correlated": "SELECT a, b, (SELECT SUM(c) FROM s WHERE s.a = r.a) AS t FROM r",
    "coarser": "SELECT a, MAX(n) AS most FROM (SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b) x GROUP BY a",
    "on_a_view": "SELECT v.a, v.n, s.c FROM counted v JOIN s ON v.a = s.a",
    "on_a_keyed_view": "SELECT a, COUNT(*) AS n, SUM(t) AS t FROM running GROUP BY a",
}

GATHERED = {
    "first": "SELECT a, b FROM r ORDER BY b, a LIMIT 2",
    "above": "SELECT a, b FROM r WHERE b > (SELECT AVG(b) FROM r)",
    "by_another_key": "SELECT n, COUNT(*) AS m FROM counted GROUP BY n",
    "all_groups": "SELECT SUM(n) AS n FROM counted",
    "two_columns": "SELECT r.a, o.a AS x FROM r LEFT JOIN r AS o ON o.b = r.a",
    "a_constant": "SELECT a FROM r UNION ALL SELECT 1",
    "computed": "SELECT r.a + 1 AS k, s.c FROM r LEFT JOIN s ON r.a + 1 = s.a",
    "other_types": "SELECT r.a, w.b FROM r LEFT JOIN w ON r.a = w.a",
    "floats": "SELECT f.a, COUNT(*) AS n FROM f GROUP BY f.a HAVING COUNT(*) > 1",
    "hidden_key": "SELECT r.b FROM r LEFT JOIN s ON r.a = s.a",
    "a_parameter": "SELECT a, b FROM r WHERE a = :a AND NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a)",
    "whole_window": "SELECT a, b, ROW_NUMBER() OVER (ORDER BY b, a) AS n FROM r",
    "no_member": "SELECT a FROM r WHERE a NOT IN (SELECT a FROM s)",
    "not_equal": "SELECT r.a, s.a AS x FROM r LEFT JOIN s ON r.a < s.a",
}

COUNTED = "SELECT a, COUNT(*) AS n FROM r GROUP BY a"


def made(db: Any, views: dict[str, str]) -> Any:
    for name, columns in TABLES.items():
        db.create_table(name, columns)
    db.create_view("counted", COUNTED)
    for name, text in views.items():
        db.create_view(name, text)
    return db


def is_keyed(db: Any, view: str) -> bool:
    return "all its blocks have this key" in " ".join(db.view(view).explain().notes)


@pytest.mark.parametrize("name", GATHERED)
def test_what_has_no_common_key_stays_in_one_shard(tmp_path: Path, name: str) -> None:
    with local_database(tmp_path, 3) as db:
        made(db, {name: GATHERED[name]})
        assert not is_keyed(db, name)


def change(chance: random.Random, present: dict[str, list[Any]], databases: list[Any]) -> None:
    for table, rows in present.items():
        new = [(chance.choice([None, *range(6)]), chance.randrange(5)) for _ in range(8)]
        gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(len(rows), 5))]
        for db in databases:
            with db.batch() as batch:
                batch.insert(table, new)
                batch.delete(table, gone)
        rows += new


def test_views_with_a_common_key_are_spread_and_have_the_rows_and_changes_of_the_embedded_database(
    tmp_path: Path,
) -> None:
    chance, present = random.Random(7), {"r": [], "s": []}  # type: ignore[var-annotated]
    with made(Database(), KEYED) as expected, made(local_database(tmp_path, 3), KEYED) as db:
        assert [] == [name for name in KEYED if not is_keyed(db, name)]
        feeds = {name: (expected.view(name).changes(), db.view(name).changes()) for name in KEYED}
        for _ in range(6):
            change(chance, present, [expected, db])
            for name, (wanted, found) in feeds.items():
                assert Counter(expected.view(name)) == Counter(db.view(name)), name
                assert [dict(each) for each in wanted] == [dict(each) for each in found], name
        assert all(len([n for n in db.view(name).stats()["entries"].values() if n]) > 1 for name in KEYED)
        for name in ("outer_join", "on_a_keyed_view"):
            db.view(name).verify()
        again = reopened(db)
        again.reshard(2)
        change(chance, present, [expected, again])
        for name in KEYED:
            assert Counter(expected.view(name)) == Counter(again.view(name)), name
