"""A key's columns may be declared in another order than the table has them."""

from __future__ import annotations

import pytest

from ivme.database import Database
from ivme.errors import DataError


def test_keys_are_given_in_the_order_in_which_the_key_was_declared() -> None:
    db = Database()
    db.create_table("t", {"a": "int", "b": "int", "c": "int"}, primary_key=["B", "a"])
    db.insert("t", [(1, 2, 10), (2, 1, 20), (3, 1, 30)])
    db.delete_keys("t", [(2, 1)])
    assert [(2, 1, 20), (3, 1, 30)] == sorted(db.table("t"))
    db.delete_keys("t", [{"a": 2, "b": 1}])
    assert [(3, 1, 30)] == list(db.table("t"))
    with pytest.raises(DataError):
        db.delete_keys("t", [(3, 1)])
    db.close()
