"""The tables behind maps and indexes, with tags that the hash of no key is likely to give."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.example_counts import some_of

COMPILER = shutil.which("c++")


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler")
@pytest.mark.parametrize("switches", some_of([[], ["-DIVME_NO_SSE2"]], []), ids=["any", "portable"])
def test_crowded_tables_follow_a_list_of_ids(tmp_path: Path, switches: list[str]) -> None:
    made = tmp_path / "check"
    options = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", *switches]
    source = str(Path(__file__).parent / "slots_check.cpp")
    subprocess.run([COMPILER or "", *options, source, "-o", str(made)], check=True)
    ran = subprocess.run([made], capture_output=True, text=True)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert int(ran.stdout.split()[0]) > 40_000
