"""Blocks of pages grow by small and by huge ones, and keep what they have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("c++")


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler")
def test_blocks_that_grow_keep_what_they_have(tmp_path: Path) -> None:
    made = tmp_path / "check"
    options = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    source = str(Path(__file__).parent / "pages_check.cpp")
    subprocess.run([COMPILER or "", *options, source, "-o", str(made)], check=True)
    ran = subprocess.run([made], capture_output=True, text=True, timeout=300)
    assert (0, "") == (ran.returncode, ran.stderr)
    assert int(ran.stdout.split()[0]) > 50
