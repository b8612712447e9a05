"""Found by the marks over shards: `request_many` of a view without columns lost its rows in the merge."""

from __future__ import annotations

from pathlib import Path

from tests.sharded_databases import local_database


def test_many_requests_to_a_view_without_columns_give_the_parameters_as_often_as_the_row_is_there(
    tmp_path: Path,
) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "b": "int"})
    view = db.create_view("v", "Q(. | A) = r(A, B)")
    db.insert("r", [(1, 1), (1, 2), (3, 3)])
    assert {"A": [1, 1, 3]} == view.request_many(A=[1, 2, 3]).to_pydict()
