"""A table or view that is replaced is, after a crash at any moment, the old one or the new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from ivme.database import Database
from tests.durability.directories import crash
from tests.durability.test_crash_points import CALLS, Countdown, Crash


@pytest.mark.parametrize("calls", range(6))
@pytest.mark.parametrize(
    "text",
    ["CREATE OR REPLACE VIEW v AS SELECT a + 1 AS b FROM t", "CREATE OR REPLACE TABLE v (b BIGINT)"],
    ids=["view", "table"],
)
def test_a_crash_leaves_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, text: str
) -> None:
    with Database(tmp_path) as db:
        db.sql("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")
        db.sql("CREATE VIEW v AS SELECT a FROM t" if "VIEW" in text else "CREATE TABLE v (a BIGINT)")
    db = Database(tmp_path)
    done = False
    with monkeypatch.context() as patched:
        countdown = Countdown(calls)
        for name in CALLS:
            patched.setattr(os, name, countdown.around(getattr(os, name)))
        with contextlib.suppress(Crash):
            db.sql(text)
            done = True
    crash(db)
    with Database(tmp_path) as again:
        found = again.sql("DESCRIBE v").rows()[0][0]
        assert found == "b" if done else found in ("a", "b")
        assert again.broken_views == {}
