"""Views of several blocks and views on views that are spread by a key which all their blocks have."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.shards.sharding import is_whole
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
    "either_column": "SELECT a FROM r UNION SELECT b FROM r",
    "one_column_only": "SELECT a FROM r EXCEPT SELECT b FROM r",
    "two_columns": "SELECT r.a, o.a AS x FROM r LEFT JOIN r AS o ON o.b = r.a",
    "three_places": "SELECT x.a, y.b, z.c FROM r x LEFT JOIN r y ON x.a = y.b FULL JOIN s z ON z.c = x.a",
}

MERGED = {
    "numbered": "SELECT b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM r",
    "hidden_key": "SELECT r.b FROM r LEFT JOIN s ON r.a = s.a",
    "both_sides": "SELECT r.b, s.c FROM r FULL JOIN s ON r.a = s.a",
    "of_two_joins": "SELECT r.b FROM r LEFT JOIN s ON r.a = s.a UNION ALL SELECT s.c FROM s LEFT JOIN r ON r.b = s.c",
    "by_another_key": "SELECT n, COUNT(*) AS m FROM counted GROUP BY n",
    "all_groups": "SELECT SUM(n) AS n, MAX(n) AS most FROM counted",
    "by_what_is_joined": "SELECT s.c, COUNT(r.b) AS n, AVG(r.b) AS mean FROM s LEFT JOIN r ON r.a = s.a GROUP BY s.c",
    "distinct": "SELECT DISTINCT s.c, r.b FROM s LEFT JOIN r ON r.a = s.a",
    "absent_by_another": "SELECT b, COUNT(*) AS n FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a) GROUP BY b",
    "on_a_merged_view": "SELECT COUNT(*) AS n, SUM(b) AS b FROM hidden_key",
    "sums_of_first": "SELECT SUM(b) AS b FROM numbered WHERE n = 1",
}
"""Views that do not show their key."""

ORDERED = {
    "first": "SELECT a, b FROM r ORDER BY b, a LIMIT 2",
    "later": "SELECT a, b FROM r ORDER BY b DESC NULLS FIRST, a LIMIT 3 OFFSET 2",
    "behind": "SELECT a, b FROM r ORDER BY b OFFSET 3",
    "likely": "SELECT a, b FROM r ORDER BY b FETCH FIRST 3 ROWS WITH TIES",
    "largest": "SELECT a, COUNT(*) AS n FROM r GROUP BY a ORDER BY n DESC LIMIT 2",
    "first_of_joined": "SELECT r.b, s.c FROM r LEFT JOIN s ON r.a = s.a ORDER BY c DESC, b LIMIT 4",
    "first_of_view": "SELECT a, n FROM counted ORDER BY n DESC, a LIMIT 2",
    "in_order": "SELECT a, b FROM r ORDER BY b DESC, a",
    "on_an_order": "SELECT b, COUNT(*) AS n FROM in_order GROUP BY b",
}
"""Views whose first rows are those of shards, put in order."""

WITHOUT_KEY = {
    "by_what_is_not_shown": "SELECT a FROM r ORDER BY b LIMIT 2",
    "of_merged_groups": "SELECT n, COUNT(*) AS m FROM counted GROUP BY n ORDER BY n LIMIT 2",
    "on_first_rows": "SELECT COUNT(*) AS n FROM (SELECT a, b FROM r ORDER BY b, a LIMIT 2) x",
    "above": "SELECT a, b FROM r WHERE b > (SELECT AVG(b) FROM r)",
    "median": "SELECT MEDIAN(n) AS m FROM counted",
    "distinct_count": "SELECT COUNT(DISTINCT n) AS n FROM counted",
    "twice_regrouped": "SELECT m, COUNT(*) AS k FROM (SELECT n, COUNT(*) AS m FROM counted GROUP BY n) x GROUP BY m",
    "limited": "SELECT SUM(b) AS b FROM (SELECT b FROM r ORDER BY b LIMIT 3) x",
    "distinct_first": "SELECT COUNT(*) AS n FROM (SELECT DISTINCT b FROM r LEFT JOIN s ON r.a = s.a) x",
    "a_constant": "SELECT a FROM r UNION ALL SELECT 1",
    "computed": "SELECT r.a + 1 AS k, s.c FROM r LEFT JOIN s ON r.a + 1 = s.a",
    "other_types": "SELECT r.a, w.b FROM r LEFT JOIN w ON r.a = w.a",
    "floats": "SELECT f.a, COUNT(*) AS n FROM f GROUP BY f.a HAVING COUNT(*) > 1",
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


@pytest.mark.parametrize(
    "names",
    [
        ["by_what_is_not_shown", "above", "median", "a_constant", "floats"],
        pytest.param(list(WITHOUT_KEY), marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_what_has_no_common_key_is_fed_by_views_or_in_one_shard(tmp_path: Path, names: list[str]) -> None:
    with local_database(tmp_path, 2) as db:
        made(db, {name: WITHOUT_KEY[name] for name in names})
        feeds = {name: [feed.name for feed in db._catalog.view(name).feeds] for name in names}
        assert [] == [name for name in names if is_keyed(db, name) and not feeds[name]]
        assert {"by_what_is_not_shown", "median", "a_constant", "whole_window"} & set(names) == {
            name for name in names if not feeds[name]
        }


def change(chance: random.Random, present: dict[str, list[Any]], databases: list[Any]) -> None:
    for table, rows in present.items():
        new = [(chance.choice([None, *range(6)]), chance.randrange(5)) for _ in range(8)]
        gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(len(rows), 5))]
        for db in databases:
            with db.batch() as batch:
                batch.insert(table, new)
                batch.delete(table, gone)
        rows += new


SOME = {name: text for views in (KEYED, MERGED, ORDERED) for name, text in list(views.items())[:2]}
ALL = {**KEYED, **MERGED, **ORDERED}


@pytest.mark.parametrize("views", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"])
def test_views_with_a_common_key_are_spread_and_have_the_rows_and_changes_of_the_embedded_database(
    tmp_path: Path, views: dict[str, str]
) -> None:
    chance = random.Random(7)
    present: dict[str, list[Any]] = {"r": [], "s": []}
    with made(Database(), views) as expected, made(local_database(tmp_path, 3), views) as db:
        assert [] == [name for name in views if not is_keyed(db, name)]
        feeds = {name: (expected.view(name).changes(), db.view(name).changes()) for name in views}
        for number in range(6 if len(views) > 20 else 3):
            change(chance, present, [expected, db])
            if number == 1:
                db._cluster.kill(1)
            for name, (wanted, found) in feeds.items():
                assert Counter(expected.view(name)) == Counter(db.view(name)), name
                if "ORDER BY" in views[name]:
                    assert list(expected.view(name)) == list(db.view(name)) or "OVER" in views[name], name
                assert [dict(each) for each in wanted] == [dict(each) for each in found], name
        assert all(len([n for n in db.view(name).stats()["entries"].values() if n]) > 1 for name in views)
        for name in views:
            db.view(name).verify()
        again = reopened(db)
        again.reshard(2)
        change(chance, present, [expected, again])
        for name in views:
            assert Counter(expected.view(name)) == Counter(again.view(name)), name


def test_whole_rows_take_only_keys_that_a_view_shows(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 3), {}) as db:
        whole = db.create_view("whole", KEYED["outer_join"], whole_rows=True)
        fed = db.create_view("one", MERGED["hidden_key"], whole_rows=True)
        assert [(False, True), (True, True)] == [
            (bool(db._catalog.view(view.name).feeds), is_whole(view.sharding)) for view in (whole, fed)
        ]


def test_a_key_that_is_not_shown_is_explained(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 3), {"v": MERGED["by_what_is_joined"]}) as db:
        said = " ".join(db.view("v").explain().notes)
        assert "over 3 shards by r.a, s.a" in said
        assert "merged from those of the shards" in said


def test_first_rows_are_explained(tmp_path: Path) -> None:
    with made(local_database(tmp_path, 3), {"v": ORDERED["later"]}) as db:
        assert "; the first 5 rows of each shard are put in order where it is read" in " ".join(
            db.view("v").explain().notes
        )
