"""The fuzzer of whole SELECTs: cases one after the other, and for each difference a small script that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import process_time

from tests.fuzz.running import Difference
from tests.fuzz.script import script
from tests.fuzz.shrinking import shrink
from tests.select.cases import SelectCase, make_case
from tests.select.running import run_case
from tests.select.shrinking import PASSES


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference, and the smallest case that shows it as a script."""

    seed: int
    kind: str
    message: str
    script: str


def shrunk(case: SelectCase, difference: Difference, seconds: float) -> Finding:
    """The same difference in a smaller case."""

    def fails(candidate: SelectCase) -> bool:
        found = run_case(candidate)
        return found is not None and found.kind == difference.kind

    smallest = shrink(case, fails, seconds, PASSES) if seconds else case
    found = run_case(smallest) or difference
    return Finding(case.seed, found.kind, str(found), script(smallest, str(found), "tests.select"))


def on_engines(case: SelectCase, engines: tuple[str, ...]) -> SelectCase:
    """The case on these engines, or as it is if there are none."""
    return replace(case, engines=engines) if engines else case


def findings(
    seeds: Iterable[int],
    covered: Counter[str],
    seconds: float,
    shrink_seconds: float,
    each: int = 2,
    engines: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """The differences of many cases, until the CPU time is over; at most so many of each kind, others are counted.

    `engines` take the place of those that a case draws.
    """
    end = process_time() + seconds
    kinds: Counter[str] = Counter()
    for seed in seeds:
        if process_time() >= end:
            return
        covered["cases"] += 1
        case = on_engines(make_case(seed), engines)
        difference = run_case(case, covered)
        if difference is None:
            continue
        kinds[difference.kind] += 1
        if kinds[difference.kind] <= each:
            yield shrunk(case, difference, shrink_seconds)
        else:
            covered[f"difference again: {difference.kind}"] += 1
