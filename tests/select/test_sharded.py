"""The cases of both fuzzers over shards: the same oracles, comparisons, streams and refused batches as elsewhere.

`python -m tests.select --engines native '3 shards'` runs longer, and so does `python -m tests.fuzz`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.fuzz import fuzzing
from tests.select import fuzzing as selects


@pytest.fixture(autouse=True)
def no_waiting_for_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _scripts(found: Iterator[selects.Finding] | Iterator[fuzzing.Finding]) -> str:
    return "\n".join(each.script for each in found)


def test_a_select_over_shards_is_refused_by_name_or_has_the_rows_of_duckdb() -> None:
    covered: Counter[str] = Counter()
    assert "" == _scripts(selects.findings(range(2_000_000, 2_000_006), covered, 600.0, 30.0, engines=("2 shards",)))
    assert covered["accepted"]


def test_joins_and_aggregates_over_shards_are_what_duckdb_says() -> None:
    covered: Counter[str] = Counter()
    assert "" == _scripts(fuzzing.findings(range(5_000_000, 5_000_003), covered, 600.0, 30.0, ("3 shards",)))
    assert covered["view:accepted"]


@pytest.mark.long
@pytest.mark.parametrize("program", ["tests.select", "tests.fuzz"])
@pytest.mark.parametrize("shards", [2, 3, 5])
def test_shards_do_what_the_embedded_database_does_for_longer(program: str, shards: int) -> None:
    """IVME_FUZZ_SECONDS for each, 150 by default; each run tries other cases, and compares what both refuse."""
    seconds = os.environ.get("IVME_FUZZ_SECONDS", "150")
    seed = str(int.from_bytes(os.urandom(3), "big"))
    engines = ["--engines", "native", f"{shards} shards"]
    command = [sys.executable, "-m", program, "--seconds", seconds, "--seed", seed, "--most", "3", "--quiet", *engines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
