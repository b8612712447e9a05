"""Instructions retired by the ten small workloads of `benchmarks/operations.py`, each in a process of its own.

    python -m benchmarks.instructions [--only "hub toggling" ...] [--counter perf cachegrind] [--out FILE]

A report, not a gate: instructions depend on the compiler, the processor and the versions of Python and Arrow, but not
on what else the machine does. They are counted by `perf stat` where the processor's counters can be read, and else by
valgrind's cachegrind, which takes some thirty times as long. What it takes to start Python and to import is left out:
it is counted once, alone. `--out` writes the page.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.operations import WORKLOADS

NOTHING = "nothing"
"""The name of no workload: what a process does before it begins."""


def perf(command: Sequence[str]) -> int | None:
    """The instructions of a command in user space; None if there is no perf, or no counter."""
    if shutil.which("perf") is None:
        return None
    counted = ["perf", "stat", "--field-separator", ",", "--event", "instructions:u", "--", *command]
    done = subprocess.run(counted, check=True, capture_output=True, text=True)
    found = re.search(r"^(\d+),[^,]*,instructions:u", done.stderr, re.MULTILINE)
    return None if found is None else int(found.group(1))


def cachegrind(command: Sequence[str]) -> int | None:
    """The same by cachegrind; None if there is no valgrind."""
    if shutil.which("valgrind") is None:
        return None
    counted = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command]
    done = subprocess.run(counted, check=True, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    return None if found is None else int(found.group(1).replace(",", ""))


COUNTERS = {"perf": perf, "cachegrind": cachegrind}


def counted(name: str, counters: Sequence[str]) -> tuple[str, int]:
    """The instructions of a workload's process, by the first counter that works."""
    command = [sys.executable, "-m", "benchmarks.instructions", "--run", name]
    for counter in counters:
        instructions = COUNTERS[counter](command)
        if instructions is not None:
            return counter, instructions
    raise SystemExit(f"instructions cannot be counted here: neither of {', '.join(counters)} works")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--counter", nargs="+", default=list(COUNTERS), choices=list(COUNTERS))
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--run", choices=[NOTHING, *WORKLOADS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run is not None:
        if options.run != NOTHING:
            WORKLOADS[options.run]()
        return
    counter, start = counted(NOTHING, options.counter)
    text = HEAD.format(counter=counter, start=start / 1e6, versions=versions())
    print(text, flush=True)
    for name in options.only:
        line = f"| {name} | {(counted(name, [counter])[1] - start) / 1e6:,.1f} |"
        print(line, flush=True)
        text += f"\n{line}"
    if options.out is not None:
        options.out.write_text(f"{text}\n", "utf-8")


def versions() -> str:
    """What the figures depend on."""
    return f"Python {platform.python_version()}, Arrow {pa.__version__}, {platform.machine()}"


HEAD = """\
# Instructions of ten small workloads

`python -m benchmarks.instructions`: what each of the workloads of `python -m benchmarks.operations` takes, with
planning and Python, in a process of its own. Counted by {counter}; the {start:,.0f} million before a workload begins
are left out. {versions}. A report, not a gate: compilers and versions change it, the load of the machine does not.

| workload | million instructions |
|---|---:|"""


if __name__ == "__main__":
    main()
