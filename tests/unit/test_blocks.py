"""Views of several blocks, as users meet them: one view, whatever it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ivme.database import Database
from ivme.engine.codes import domain as domains
from ivme.engine.ordered import Ties, Window
from ivme.errors import ExpressionError, PlanError, SchemaError, UnsupportedError, VerificationError
from ivme.views.first_rows_view import FirstRowsView

LEFT = "SELECT R.a, S.c FROM R LEFT JOIN S ON R.b = S.b"


@pytest.fixture
def db() -> Database:
    made = Database()
    made.create_table("R", {"a": "int", "b": "int"})
    made.create_table("S", {"b": "int", "c": "string"})
    made.insert("R", [(1, 1), (2, 2), (3, None)])
    made.insert("S", [(1, "x"), (9, "y")])
    return made


def test_blocks_are_not_listed_and_go_with_their_view(db: Database) -> None:
    view = db.create_view("v", LEFT)

    assert sorted(view, key=str) == [(1, "x"), (2, None), (3, None)]
    assert db.views == ("v",)
    db.drop_view("v")
    assert not db.definitions.catalog.views
    db.drop_table("S")


def test_a_table_that_blocks_read_is_needed_by_their_view(db: Database) -> None:
    db.create_view("v", LEFT)

    with pytest.raises(PlanError, match="cannot drop table S: v needs it; drop view v first"):
        db.drop_table("S")


def test_the_name_of_a_block_is_taken(db: Database) -> None:
    db.create_view("v", LEFT)

    with pytest.raises(SchemaError, match="already"):
        db.create_table("v#1", {"a": "int"})


def test_views_on_views_of_several_blocks(db: Database) -> None:
    db.create_view("v", LEFT)
    counts = db.create_view("counts", "SELECT c, COUNT(*) AS n FROM v GROUP BY c HAVING COUNT(*) > 1")

    assert list(counts) == [(None, 2)]
    db.insert("S", [(2, "x")])
    assert list(counts) == [("x", 2)]
    counts.verify()


def test_columns_come_and_go_where_blocks_do_not_read_them(db: Database) -> None:
    view = db.create_view("v", LEFT)
    db.add_column("S", "d", "int", default=7)
    db.insert("S", [(2, "z", 1)])

    assert sorted(view, key=str) == [(1, "x"), (2, "z"), (3, None)]
    db.drop_column("S", "d")
    db.delete("S", [(2, "z")])
    assert sorted(view, key=str) == [(1, "x"), (2, None), (3, None)]
    with pytest.raises(PlanError, match="cannot drop column c of table S: view v reads it"):
        db.drop_column("S", "c")


def test_a_directory_has_the_view_with_its_blocks(tmp_path: Path) -> None:
    with Database(tmp_path) as made:
        made.create_table("R", {"a": "int", "b": "int"})
        made.create_view("top", "SELECT a, SUM(b) AS s FROM R GROUP BY a HAVING COUNT(*) > 1 ORDER BY s DESC LIMIT 2")
        made.insert("R", [(1, 1), (1, 2), (2, 9), (3, 4), (3, 4), (4, 1), (4, 1)])
    with Database(tmp_path) as opened:
        assert list(opened.view("top")) == [(3, 8), (1, 3)]
        opened.insert("R", [(2, 9)])
        assert list(opened.view("top")) == [(2, 18), (3, 8)]
        opened.view("top").verify()


def test_a_scalar_subquery_with_several_rows_refuses_the_batch_that_brings_the_second(db: Database) -> None:
    view = db.create_view("v", "SELECT a, (SELECT c FROM S WHERE S.b = R.b) AS c FROM R")
    before = sorted(view, key=str)

    with pytest.raises(ExpressionError, match="a subquery used as a value has several rows"):
        db.insert("S", [(1, "second")])
    assert sorted(view, key=str) == before
    db.insert("S", [(9, "nobody asks for it"), (2, "first")])
    assert (2, "first") in list(view)


def test_an_order_is_that_of_the_values_with_nulls_where_spark_has_them(db: Database) -> None:
    assert list(db.create_view("up", "SELECT b FROM R ORDER BY b")) == [(None,), (1,), (2,)]
    assert list(db.create_view("down", "SELECT b FROM R ORDER BY b DESC")) == [(2,), (1,), (None,)]
    last = db.create_view("last", "SELECT a FROM R ORDER BY b NULLS LAST, a LIMIT 1 OFFSET 2")
    assert list(last) == [(3,)]
    assert last.to_arrow().to_pylist() == [{"a": 3}]


def test_one_row_has_no_order_and_is_there_for_every_request(db: Database) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n FROM R WHERE a = :a ORDER BY SUM(b) LIMIT 1")

    assert view.columns == ("n",)
    assert list(view(a=1)) == [(1,)]
    assert list(view(a=77)) == [(0,)]
    view.verify()


def test_verify_checks_the_order_of_requests(db: Database) -> None:
    view = db.create_view("v", "SELECT R.b FROM R LEFT JOIN S ON R.b = S.b WHERE a = :a ORDER BY R.b DESC LIMIT 1")
    db.insert("R", [(1, 5), (1, 7), (1, None)])

    assert list(view(a=1)) == [(7,)]
    view.verify()
    with (
        patch("ivme.views.ordered_rows.cut", lambda _data, rows, counts, _order: (rows, counts)),
        pytest.raises(VerificationError),
    ):
        view.verify()


def test_verify_checks_the_first_rows_that_an_ordered_map_gives(db: Database) -> None:
    view = db.create_view("v", "SELECT b FROM R WHERE a = :a ORDER BY b DESC LIMIT 1")
    db.insert("R", [(1, 5), (1, 7), (1, None)])

    assert list(view(a=1)) == [(7,)]
    view.verify()
    more = Window(0, 2, Ties.NONE, 2).packed()
    with patch.object(FirstRowsView, "_window", lambda _: more), pytest.raises(VerificationError):
        view.verify()


def test_the_changes_of_a_limit_are_those_of_the_rows_that_it_shows(db: Database) -> None:
    view = db.create_view("v", "SELECT a FROM R ORDER BY a DESC LIMIT 2")
    feed = view.changes()
    db.insert("R", [(0, 0)])
    db.insert("R", [(7, 0)])

    assert [dict(change) for change in feed] == [{(7,): 1, (2,): -1}]


def test_a_parameter_inside_a_subquery(db: Database) -> None:
    view = db.create_view("v", "SELECT x.a, x.n FROM (SELECT a, COUNT(*) AS n FROM R WHERE b = :b GROUP BY a) x")

    assert view.parameters == ("b",)
    assert list(view(b=2)) == [(2, 1)]
    with pytest.raises(UnsupportedError, match="the parameter :c is not supported in this place"):
        db.create_view("w", "SELECT a FROM R WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.b = R.b AND S.c > :c)")


def test_the_explanation_has_all_blocks_and_their_sum(db: Database) -> None:
    text = "SELECT a FROM R WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.b = R.b) ORDER BY a"
    explanation = db.create_view("v", text).explain()

    blocks = explanation.to_dict()["blocks"]
    assert [block["name"] for block in blocks] == [*(f"v#{n}" for n in range(1, len(blocks))), "v"]
    assert all(block["update"]["text"].startswith("O(") for block in blocks)
    assert text in " ".join(str(explanation).split())


def test_rows_between_blocks_stay_codes(db: Database) -> None:
    """No value is decoded when a batch goes through unions, groups and a join."""
    view = db.create_view("v", "SELECT S.c, COUNT(R.a) AS n FROM S LEFT JOIN R ON R.b = S.b GROUP BY S.c")
    decoded: list[str] = []

    def noted(name: str, right: Any) -> Any:
        def call(self: Any, *args: Any) -> Any:
            decoded.append(name)
            return right(self, *args)

        return call

    kinds = [each for each in vars(domains).values() if isinstance(each, type)]
    names = ("decode", "decode_value", "values")
    patches = [
        patch.object(kind, name, noted(name, vars(kind)[name]))
        for kind in kinds
        for name in names
        if name in vars(kind)
    ]
    for each in patches:
        each.start()
    try:
        db.insert("S", [(n % 50, f"name {n % 7}") for n in range(300)])
        db.insert("R", [(n, n % 60) for n in range(300)])
    finally:
        for each in patches:
            each.stop()
    assert patches
    assert decoded == []
    view.verify()


@pytest.mark.parametrize(("strategy", "always"), [("view-tree", 1), ("recompute", 0)])
def test_rows_that_are_recomputed_are_followed_only_while_the_limit_is(strategy: str, always: int) -> None:
    """Those of other strategies are in an ordered map from the start."""
    database = Database()
    database.create_table("r", {"a": "int", "b": "int"})
    view = database.create_view(
        "v", "SELECT a, SUM(b) AS s FROM r GROUP BY a ORDER BY s DESC LIMIT 2", strategy=strategy
    )
    block = database.definitions.catalog.views["v#1"]
    assert block.followers == always
    database.insert("r", [(1, 5), (2, 7), (3, 6)])
    assert list(view) == [(2, 7), (3, 6)]

    changes = view.changes()
    assert block.followers == 1
    database.insert("r", [(1, 5)])
    assert [dict(change.items()) for change in changes] == [{(1, 10): 1, (3, 6): -1}]
    changes.close()
    assert block.followers == always
    database.delete("r", [(1, 5)])
    assert list(view) == [(2, 7), (3, 6)]

    on_top = database.create_view("w", "SELECT COUNT(*) AS n, SUM(s) AS s FROM v")
    assert block.followers == 1
    database.insert("r", [(4, 8)])
    assert list(on_top) == [(2, 15)]
    database.drop_view("w")
    database.drop_view("v")
    assert list(database.definitions.catalog.views) == []
