"""Strings get the same codes on several threads as on one, and the threads have no races."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("c++")
KERNEL = Path(__file__).parents[3] / "src" / "ivme" / "kernel"


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler")
@pytest.mark.parametrize("sanitizer", [pytest.param("thread", marks=pytest.mark.long), "none"])
def test_codes_are_those_of_one_thread(sanitizer: str, tmp_path: Path) -> None:
    made = tmp_path / "check"
    sources = [str(Path(__file__).parent / "parallel_entry_check.cpp"), str(KERNEL / "workers.cpp")]
    options = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    if sanitizer != "none":
        options += ["-g", f"-fsanitize={sanitizer}", "-DIVME_SANITIZE"]
    subprocess.run([COMPILER or "", *options, *sources, "-o", str(made)], check=True)
    ran = subprocess.run([made], capture_output=True, text=True)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert int(ran.stdout.split()[0]) > 100_000
