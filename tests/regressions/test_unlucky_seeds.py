"""With a seed in four thousand, entries that came in the order of their values lay in chains of hundreds.

Their priorities, by which the index of MIN, MAX and MEDIAN keeps its balance, were numbers in an arithmetic sequence.
"""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database

UNLUCKY, ROWS = 14357763034189372454, 4000


def test_rows_in_order_of_their_values_cost_few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivme.engine.native_backend.secrets.randbits", lambda _: UNLUCKY)
    db = Database()
    db.create_table("r", {"g": "int", "x": "int"})
    view = db.create_view("v", "SELECT g, MEDIAN(x) AS m FROM r GROUP BY g")
    kernel: Any = db.definitions.runtime.backend
    db.insert("r", [(1, value) for value in range(ROWS)])
    worst = 0
    for value in range(0, ROWS, 7):
        before = kernel.operations
        db.delete("r", [(1, value)])
        assert len(list(view)) == 1
        db.insert("r", [(1, value)])
        worst = max(worst, kernel.operations - before)
    assert worst < 150
