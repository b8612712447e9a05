"""What of the kernel is held when the interpreter ends: nothing by our own code, and no noise about what others do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

USED = """
import threading
import ivme

db = ivme.Database()
db.create_table("R", {"a": "int", "s": "string"})
view = db.create_view("v", "SELECT s, COUNT(*) AS n FROM R GROUP BY s")
db.insert("R", [(1, "x"), (2, "y")])
rows, feed = iter(view), view.changes()
next(rows)
with db.batch() as batch:
    batch.insert("R", [(3, "x")])
"""
HELD = "threading.Thread(target=lambda kept: threading.Event().wait(), args=[(db, rows)], daemon=True).start()\n"


def said(program: str, **environment: str) -> str:
    given = {name: value for name, value in os.environ.items() if name != "IVME_LEAK_WARNINGS"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=given | environment, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.slow
def test_nothing_is_held_when_a_program_ends() -> None:
    assert "" == said(USED, IVME_LEAK_WARNINGS="1")


@pytest.mark.slow
def test_what_a_thread_holds_is_told_only_if_asked_for() -> None:
    assert "leaked" in said(USED + HELD, IVME_LEAK_WARNINGS="1")
    assert "" == said(USED + HELD)
