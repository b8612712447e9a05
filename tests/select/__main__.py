"""`python -m tests.select --seconds 600 --seed 7`: fuzz whole SELECTs, print what was refused, compared and covered."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from time import monotonic, process_time

from tests.fuzz.script import script
from tests.select.cases import make_case
from tests.select.fuzzing import findings, on_engines
from tests.select.report import report
from tests.select.running import run_case


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.select", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run, in CPU seconds")
    parser.add_argument("--seed", type=int, default=0, help="where the seeds of the cases start, in millions")
    parser.add_argument("--shrink", type=float, default=40.0, help="the CPU seconds for making one finding small")
    parser.add_argument("--most", type=int, default=10, help="stop after so many findings")
    parser.add_argument("--each", type=int, default=2, help="shrink so many findings of each kind, count the others")
    parser.add_argument("--case", type=int, help="run the case of one seed only, and print it whole")
    parser.add_argument("--folder", type=Path, help="write a script for each finding into this folder")
    parser.add_argument("--engines", nargs="*", default=[], help="such as native, 'pure on disk' or '2 shards'")
    parser.add_argument("--quiet", action="store_true", help="leave out the rules of the grammar")
    given = parser.parse_args(arguments)
    return _one(given.case, tuple(given.engines)) if given.case is not None else _many(given)


def _many(given: argparse.Namespace) -> int:
    covered: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    start, used, engines = monotonic(), process_time(), tuple(given.engines)
    for found in findings(count(given.seed * 1_000_000), covered, given.seconds, given.shrink, given.each, engines):
        kinds[found.kind] += 1
        print(f"==== seed {found.seed}: {found.kind}\n{found.script}", flush=True)
        if given.folder is not None:
            given.folder.mkdir(parents=True, exist_ok=True)
            (given.folder / f"seed_{found.seed}.py").write_text(found.script)
        if sum(kinds.values()) >= given.most:
            break
    print("\n".join(report(covered, rules=not given.quiet)))
    print(
        f"{covered['cases']} cases in {process_time() - used:.0f} s of CPU time, "
        f"{monotonic() - start:.0f} s of wall time"
    )
    print(f"{sum(kinds.values())} differences {dict(kinds)}")
    return int(bool(kinds))


def _one(seed: int, engines: tuple[str, ...]) -> int:
    case = on_engines(make_case(seed), engines)
    found = run_case(case)
    print(script(case, "no difference" if found is None else str(found), "tests.select"))
    return int(found is not None)


if __name__ == "__main__":
    sys.exit(main())
