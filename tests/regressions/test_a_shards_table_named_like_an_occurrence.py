"""A shard's second table for a relation was named as the hypergraph names a relation's second occurrence."""

from __future__ import annotations

from pathlib import Path

from tests.sharded_databases import local_database


def test_occurrences_of_two_tables_of_a_relation_have_names_of_their_own(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("R0", {"a": "int"})
    db.insert("R0", [(0,), (1,)])
    view = db.create_view("v", "Q(. | .) = R0(A), R0(A), R0(0)")
    assert 2 == view.count()
