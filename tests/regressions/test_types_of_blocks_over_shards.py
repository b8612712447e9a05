"""Over shards, blocks without a type in common were refused by our own words, not where they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import UnsupportedError
from tests.sharded_databases import local_database


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT r.a FROM r WHERE r.d < (SELECT SUM(s.e) FROM s)", "compares decimal with decimal"),
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
