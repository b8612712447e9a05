"""Over shards, blocks without a type in common were refused by our own words, not where they are written."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from ivme.errors import UnsupportedError
from tests.sharded_databases import local_database


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT r.a FROM r WHERE r.d < (SELECT MAX(s.t) FROM s)", "compares decimal with string"),
        ("SELECT r.a FROM r UNION ALL SELECT s.t FROM s", "with no type in common"),
    ],
)
def test_types_without_one_in_common_are_refused_where_they_are_written(
    tmp_path: Path, query: str, reason: str
) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "d": "decimal(9, 2)"})
    db.create_table("s", {"t": "string", "e": "decimal(38, 0)"})
    with pytest.raises(UnsupportedError, match=reason):
        db.create_view("v", query)


def test_a_sum_of_all_digits_is_compared_with_a_decimal_of_few(tmp_path: Path) -> None:
    """It was refused, as the two have no type of 38 digits in common (TPC-DS 1)."""
    db = local_database(tmp_path, 2)
    db.create_table("r", {"a": "int", "d": "decimal(9, 2)"})
    db.create_table("s", {"t": "string", "e": "decimal(38, 0)"})
    view = db.create_view("v", "SELECT r.a FROM r WHERE r.d < (SELECT SUM(s.e) FROM s)")
    db.insert("r", [(1, Decimal("9.50")), (2, Decimal("10.50")), (3, Decimal(-1))])
    db.insert("s", [("x", Decimal(4)), ("y", Decimal(6))])
    assert [(1,), (3,)] == sorted(view)
    db.insert("s", [("z", Decimal(5))])
    assert [(1,), (2,), (3,)] == sorted(view)
