"""Kernel operations of ten small workloads, exactly as many as `operations.json` says: a guard against regressions.

Run with IVME_UPDATE_GOLDEN=1 to write the counts anew; a commit that does so says why they changed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.operations import WORKLOADS, Counts

FILE = Path(__file__).parent / "operations.json"
UPDATING = bool(os.environ.get("IVME_UPDATE_GOLDEN"))
COMMAND = "IVME_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -n 0 tests/golden/test_operations.py"


def difference(name: str, expected: Counts, counted: Counts) -> str:
    """What differs, by how much, and what to do about it; empty if nothing does."""
    phases = [phase for phase in {**expected, **counted} if expected.get(phase) != counted.get(phase)]
    if not phases:
        return ""
    lines = [f"the kernel operations of {name!r} have changed:"]
    for phase in phases:
        before, after = expected.get(phase), counted.get(phase)
        change = f" ({after / before - 1:+.2%})" if before and after is not None else ""
        lines.append(f"  {phase}: {before} in operations.json, {after} now{change}")
    return "\n".join(
        [*lines, f"More is a regression: find it. If the change is meant, run\n  {COMMAND}\nand commit why."]
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_takes_exactly_as_many_operations_as_before(name: str) -> None:
    counted = WORKLOADS[name]()
    stored = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    if UPDATING:
        kept = {each: stored[each] for each in WORKLOADS if each in stored} | {name: counted}
        FILE.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", "utf-8")
    else:
        message = difference(name, stored.get(name, {}), counted)
        assert not message, message


def test_there_are_ten_workloads_and_the_file_has_just_these() -> None:
    assert 10 == len(WORKLOADS)
    assert list(WORKLOADS) == list(json.loads(FILE.read_text("utf-8")))


def test_a_difference_is_told_with_its_size_and_the_command_that_accepts_it() -> None:
    message = difference("a join", {"insert": 200, "read": 1}, {"insert": 250, "read": 1})
    assert "insert: 200 in operations.json, 250 now (+25.00%)" in message
    assert COMMAND in message
    assert "read" not in message


def test_a_phase_that_is_new_or_gone_is_a_difference() -> None:
    assert "delete: None in operations.json, 3 now" in difference("a join", {}, {"delete": 3})
    assert "delete: 3 in operations.json, None now" in difference("a join", {"delete": 3}, {})
