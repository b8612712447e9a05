"""An IES that a user registers takes part in the database's batches."""

from __future__ import annotations

from typing import Any

import pytest

import ivme
from ivme.errors import DataError, IvmeError, PlanError, SchemaError
from tests.databases import in_one_batch

FLIP = """
CREATE TEMP TABLE was AS SELECT one FROM even;
DELETE FROM even;
INSERT INTO even SELECT 1 WHERE NOT EXISTS (SELECT * FROM was);
"""


def parity(db: ivme.Database) -> Any:
    return db.create_ies("even", "t", {"one": "int"}, {}, FLIP, FLIP, on_start="INSERT INTO even SELECT 1")


@pytest.fixture
def db() -> ivme.Database:
    made = ivme.Database()
    made.create_table("t", {"x": "int"})
    return made


def test_the_answer_follows_the_tables(db: ivme.Database) -> None:
    db.insert("t", [(1,), (2,), (2,), (3,)])
    view = parity(db)
    assert ([], 0) == (list(view), view.count())
    feed = view.changes()
    db.delete("t", [(2,)])
    db.delete("t", [(2,)])
    in_one_batch(db, ("insert", "t", [(7,)]), ("delete", "t", [(1,)]))
    assert [{(1,): 1}] == list(feed)
    assert ([(1,)], True, {(1,): 1}) == (list(view), (1,) in view, dict(view.items()))
    feed.close()
    db.insert("t", [(9,)])
    assert ([], []) == (list(feed), list(view))


def test_a_batch_that_fails_leaves_the_answer_as_it_was(db: ivme.Database) -> None:
    db.create_table("u", {"k": "int"}, primary_key="k")
    view = parity(db)
    with pytest.raises(DataError, match="primary key"):
        in_one_batch(db, ("insert", "t", [(1,)]), ("insert", "u", [(1,), (1,)]))
    with pytest.raises(DataError, match="no NULL"):
        db.insert("t", [(1,), (None,)])
    assert [(1,)] == list(view)
    db.insert("t", [(1,)])
    assert [] == list(view)


def test_a_table_that_an_ies_reads_is_kept_until_the_ies_is_dropped(db: ivme.Database) -> None:
    parity(db)
    with pytest.raises(PlanError, match="even needs it"):
        db.drop_table("t")
    with pytest.raises(SchemaError, match="already"):
        parity(db)
    db.drop_view("even")
    db.drop_table("t")


def test_a_failing_program_undoes_the_batch(db: ivme.Database) -> None:
    view = db.create_ies(
        "c", ["t"], {"x": "int"}, {}, "INSERT INTO c SELECT 1 // (:x - 1) WHERE error('no')", "DELETE FROM c"
    )
    with pytest.raises(IvmeError, match="a program of IES c failed"):
        db.insert("t", [(1,)])
    rows = db.create_view("rows", "SELECT x FROM t")
    assert ([], []) == (list(view), list(rows))


def test_a_closure_of_two_tables_with_an_auxiliary_table(db: ivme.Database) -> None:
    db.create_table("s", {"x": "int"})
    programs = {"t": "INSERT INTO seen SELECT :x", "s": "INSERT INTO seen SELECT :x"}
    view = db.create_ies(
        "n", ["t", "s"], {"x": "int"}, {"seen": {"x": "int"}}, programs, dict.fromkeys("ts", "DELETE FROM n")
    )
    db.insert("t", [(1,)])
    db.insert("s", [(2,)])
    assert ([(1,), (2,)], ("x",)) == (view.table("seen"), view.columns)
