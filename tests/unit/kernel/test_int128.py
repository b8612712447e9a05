"""The integers of two words, where the compiler has none of 128 bits, against those of the compiler that has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

COMPILER = shutil.which("c++")


@pytest.mark.skipif(COMPILER is None, reason="there is no compiler")
def test_integers_of_two_words_are_those_of_the_compiler(tmp_path: Path) -> None:
    source, made = Path(__file__).parent / "int128_check.cpp", tmp_path / "check"
    command = [
        COMPILER or "",
        "-std=c++20",
        "-O1",
        "-DIVME_NO_INT128",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(source),
        "-o",
        str(made),
    ]
    subprocess.run(command, check=True)
    ran = subprocess.run([made], capture_output=True, text=True)
    assert (0, "220 numbers") == (ran.returncode, ran.stdout.strip())
