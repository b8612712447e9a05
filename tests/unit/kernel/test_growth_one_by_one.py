"""What single rows wait for while maps, indexes and tables grow: counted, as a clock shows the machine as well."""

from __future__ import annotations

from ivme._kernel import bytes_copied
from ivme.database import Database

MOST_BYTES = 1 << 20
"""To copy so many takes a tenth of a millisecond. An insert changes a dozen arrays, of which any may grow."""


def test_no_single_row_waits_for_a_large_copy() -> None:
    with Database() as db:
        for name in ("R", "S"):
            db.create_table(name, {"a": "int", "b": "int", "s": "string"}, primary_key=["a"])
        db.create_view("v", "SELECT R.a, S.a AS c FROM R JOIN S ON R.b = S.b", strategy="view-tree")
        worst = 0
        for number in range(100_000):
            before = bytes_copied()
            db.insert("R", [(number, number * 7919 % 60_000, f"text {number}")])
            worst = max(worst, bytes_copied() - before)
        assert 0 < worst <= MOST_BYTES
        assert db.table("R").to_arrow().num_rows == 100_000
        db.view("v").verify()
