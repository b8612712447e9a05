"""The facade: names, properties, the kernel that is chosen."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import PlanError, SchemaError, UnknownNameError


def test_tables_and_views_are_listed_in_the_order_of_their_making() -> None:
    with Database() as db:
        for name in ("S", "R"):
            db.create_table(name, {"a": "int"})
        for name in ("w", "v"):
            db.create_view(name, "SELECT a FROM R")
        assert (db.tables, db.views) == (("S", "R"), ("w", "v"))


def test_without_the_compiled_kernel_views_run_in_plain_python_with_one_warning(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "ivme.engine.codes.native_dictionary", None)
    with pytest.warns(UserWarning, match="compiled kernel is missing") as warned:
        db = Database()
    assert len(warned) == 1
    db.create_table("R", {"a": "int", "s": "string"})
    view = db.create_view("v", "SELECT a, MAX(s) AS h FROM R GROUP BY a")
    db.insert("R", [(1, "x"), (1, "y")])
    assert type(db._runtime.backend).__name__ == "PureBackend"
    assert list(view) == [(1, "y")]


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_name_is_a_string_that_is_not_empty(name: Any) -> None:
    db = Database()
    with pytest.raises(SchemaError, match="name"):
        db.create_table(name, {"a": "int"})
    with pytest.raises(UnknownNameError):
        db.view(name)


def test_distinct_is_refused_in_ring_mode() -> None:
    db = Database()
    db.create_table("R", {"a": "int"})
    with pytest.raises(PlanError, match="DISTINCT"):
        db.create_view("v", "SELECT DISTINCT a FROM R", semantics="ring")
    assert db.views == ()


def test_a_view_over_a_view_knows_the_types_of_its_columns() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "d": "decimal(8, 2)"})
    db.create_view("v", "SELECT a, SUM(d) AS total FROM R GROUP BY a")
    over = db.create_view("w", "SELECT MAX(total) AS h FROM v")
    assert str(over.to_arrow().schema.field("h").type) == str(db.view("v").to_arrow().schema.field("total").type)
