"""A sum that does not fit is named as its view names it, not by the columns in which shards keep its parts.

A view whose sum did not fit from the beginning was made, and could not be read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import DataError
from tests.sharded_databases import local_database


def test_a_sum_that_does_not_fit_is_named_as_the_view_names_it(tmp_path: Path) -> None:
    with local_database(tmp_path, 2) as db:
        db.create_table("moves", {"account": "int", "amount": "int"})
        db.create_view("balance", "SELECT account, SUM(amount) AS s FROM moves GROUP BY account")
        with pytest.raises(DataError, match=r"column s of view balance does not fit int.*nothing was changed"):
            db.insert("moves", [(1, 2**62), (1, 2**62)])
        db.insert("moves", [(1, 2**62), (2, 2**62)])
        with pytest.raises(DataError, match="column total of view w does not fit"):
            db.create_view("w", "SELECT SUM(amount) AS total FROM moves")
        assert ("balance",) == db.views
        assert [(1, 2**62), (2, 2**62)] == sorted(db.view("balance"))
