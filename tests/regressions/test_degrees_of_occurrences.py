"""Occurrences of a table that are split in different ways were counted together: degrees and N were too large."""

from __future__ import annotations

import pytest

from tests.databases import BACKENDS, make_database


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_counts_once_however_many_occurrences_hold_it(backend: str) -> None:
    db = make_database(backend)
    db.create_table("E", {"x": "int", "y": "int"})
    view = db.create_view("q", "Q(. | .) = E(A, B), E(B, C), E(A, C)", strategy="skew", epsilon=2 / 3)
    db.insert("E", [(0, 0)])
    db.insert("E", [(0, 0)])
    stats = view.stats()
    assert 1 == stats["n"]
    assert {0} == {partition["heavy"] for partition in stats["partitions"].values() if partition["threshold"] > 1}
    view.verify()
