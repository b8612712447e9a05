"""`python -m tests.fuzz --seconds 600 --seed 7`: fuzz for as long as asked, print what was found and covered."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from time import monotonic

from tests.fuzz.cases import make_case
from tests.fuzz.fuzzing import findings, on_engines
from tests.fuzz.running import run_case
from tests.fuzz.script import script
from tests.sweeping import sweeping_always


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=0, help="where the seeds of the cases start, in millions")
    parser.add_argument("--shrink", type=float, default=40.0, help="the seconds for making one finding small")
    parser.add_argument("--most", type=int, default=10, help="stop after so many findings")
    parser.add_argument("--case", type=int, help="run the case of one seed only, and print it whole")
    parser.add_argument("--folder", type=Path, help="write a script for each finding into this folder")
    parser.add_argument("--sweep", action="store_true", help="take codes back after each change")
    parser.add_argument("--engines", nargs="*", default=[], help="such as native, 'pure on disk' or '2 shards'")
    parser.add_argument("--quiet", action="store_true", help="leave out the coverage")
    given = parser.parse_args(arguments)
    with sweeping_always() if given.sweep else nullcontext():
        return _one(given.case, tuple(given.engines)) if given.case is not None else _many(given)


def _many(given: argparse.Namespace) -> int:
    covered: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    start, seeds = monotonic(), count(given.seed * 1_000_000)
    for found in findings(seeds, covered, given.seconds, given.shrink, tuple(given.engines)):
        kinds[found.kind] += 1
        print(f"==== seed {found.seed}: {found.kind}\n{found.script}", flush=True)
        if given.folder is not None:
            given.folder.mkdir(parents=True, exist_ok=True)
            (given.folder / f"seed_{found.seed}.py").write_text(found.script)
        if sum(kinds.values()) >= given.most:
            break
    if not given.quiet:
        print("\n".join(f"{number:8} {feature}" for feature, number in sorted(covered.items())))
    print(f"{covered['cases']} cases in {monotonic() - start:.0f} s, {sum(kinds.values())} differences {dict(kinds)}")
    return int(bool(kinds))


def _one(seed: int, engines: tuple[str, ...]) -> int:
    case = on_engines(make_case(seed), engines)
    found = run_case(case)
    print(script(case, "no difference" if found is None else str(found)))
    return int(found is not None)


if __name__ == "__main__":
    sys.exit(main())
