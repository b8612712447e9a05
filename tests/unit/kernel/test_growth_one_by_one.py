"""What single rows wait for while maps, indexes and tables grow: counted, as a clock shows the machine as well."""

from __future__ import annotations

import pytest

from ivme._kernel import bytes_copied
from ivme.database import Database

MOST_BYTES = 1 << 20
"""To copy so many takes a tenth of a millisecond. An insert changes a dozen arrays, of which any may grow."""


@pytest.mark.parametrize(
    "view", ["SELECT R.a, S.a AS c FROM R JOIN S ON R.b = S.b", "SELECT b, COUNT(*) FROM R GROUP BY b"]
)
def test_no_single_row_waits_for_a_large_copy(view: str) -> None:
    with Database() as db:
        for name in ("R", "S"):
            db.create_table(name, {"a": "int", "b": "int", "s": "string"}, primary_key=["a"])
        db.create_view("v", view, strategy="view-tree")
        worst = 0
        for number in range(120_000):
            before = bytes_copied()
            db.insert("R", [(number, number * 7919 % 60_000, f"text {number}")])
            worst = max(worst, bytes_copied() - before)
        assert 0 < worst <= MOST_BYTES
        assert db.table("R").to_arrow().num_rows == 120_000
        db.definitions.runtime.backend.kernel.verify()
