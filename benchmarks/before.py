"""The goals of the foundation, measured here and with an older ivme in one run.

    python -m benchmarks.before /path/to/older/.venv/bin/python [--runs 15]

The older one is a checkout with an environment of its own. Both run `python benchmarks/goals.py`, which uses nothing
but what both have, in turns, so that a busy machine is as busy for the one as for the other. Their answers are compared
first. What is printed are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

GOALS = Path(__file__).with_name("goals.py")


def measured(python: str) -> dict[str, float]:
    """What one process measures."""
    done = subprocess.run([python, str(GOALS)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="before.py", description="The goals, here and with an older ivme.")
    parser.add_argument("older", help="the interpreter of the older one")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    runs = [(measured(options.older), measured(sys.executable)) for _ in range(options.runs)]
    for name in runs[0][1]:
        old, new = (statistics.median(run[side][name] for run in runs) for side in (0, 1))
        if name.startswith("answer"):
            assert old == new, f"{name} is another one: {old} and {new}"
            continue
        print(f"{name:<58} {old:>10.3f} -> {new:>8.3f}   {old / new:>6.1f} times")


if __name__ == "__main__":
    main()
