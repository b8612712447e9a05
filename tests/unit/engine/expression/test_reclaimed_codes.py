"""What expressions remember by code is forgotten when codes are given to other values."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from ivme.engine.codes.memos import Memos
from ivme.engine.runtime.reclaim import reclaim

QUERY = "SELECT UPPER(s) AS u, CASE WHEN s < 'm' THEN 'early' ELSE 'late' END AS half FROM t WHERE s LIKE '_b%'"


def rows_after_new_texts() -> list[Any]:
    """The view's rows after all texts have gone, and others have their codes."""
    db = Database()
    db.create_table("t", {"s": "string"})
    view = db.create_view("v", QUERY)
    db.insert("t", [("ab",), ("zz",)])
    assert [("AB", "early")] == list(view)
    db.delete("t", [("ab",), ("zz",)])
    catalog = db._runtime.catalog
    with catalog.lock:
        reclaim(catalog, now=True)
    db.insert("t", [("xx",), ("zb",)])
    db.insert("t", [("no",)] * 20 + [("yb",)] * 20)
    return sorted(view)


def test_expressions_know_new_values_of_old_codes() -> None:
    assert [("YB", "late")] * 20 + [("ZB", "late")] == rows_after_new_texts()


def test_without_forgetting_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memos, "forget", lambda _: None)
    assert [("YB", "late")] * 20 + [("ZB", "late")] != rows_after_new_texts()
