"""Programs run in processes of their own, under several orders of hashes."""

from __future__ import annotations

import os
import subprocess
import sys


def outputs_under_hash_seeds(program: str) -> set[str]:
    """What a program prints, under three seeds of Python's hashes."""
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
