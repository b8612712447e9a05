"""A change of the catalog that fails leaves the moves of heavy and light parts as they were."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database

TRIANGLE = "SELECT COUNT(*) AS n FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c AND T.a = R.a"


@pytest.mark.parametrize("rebalance", ["amortised", "deamortised"])
def test_keys_move_after_the_dropping_of_their_view_has_failed(monkeypatch: pytest.MonkeyPatch, rebalance: str) -> None:
    with Database() as db:
        for name, columns in {"R": "ab", "S": "bc", "T": "ca"}.items():
            db.create_table(name, dict.fromkeys(columns, "int"))
        view = db.create_view("triangles", TRIANGLE, strategy="skew", epsilon=0.5, rebalance=rebalance)
        db.insert("R", [(0, 0)])
        backend: Any = db._runtime.backend

        def fail(*_: object) -> None:
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(type(backend), "drop_map", fail)
            with pytest.raises(MemoryError):
                db.drop_view("triangles")
        for value in range(1, 200):  # one hub, whose keys change sides, and go back
            for name, row in {"R": (0, value), "S": (value, 0), "T": (value, 0)}.items():
                db.insert(name, [row])
        view.verify()
        for value in range(1, 200):
            db.delete("R", [(0, value)])
        view.verify()
