"""The fuzzer: cases one after the other, and for each difference a small script that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic

from tests.fuzz.cases import Case, make_case
from tests.fuzz.running import Difference, run_case
from tests.fuzz.script import script
from tests.fuzz.shrinking import shrink


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference, the smallest case that shows it, and that case as a script."""

    seed: int
    kind: str
    message: str
    case: Case
    script: str


def find(seed: int, covered: Counter[str], seconds: float = 60.0, engines: tuple[str, ...] = ()) -> Finding | None:
    """Runs the case of a seed, on its own engines or these; its difference, shrunk for at most so many seconds."""
    case = on_engines(make_case(seed), engines)
    difference = run_case(case, covered)
    return None if difference is None else shrunk(case, difference, seconds)


def shrunk(case: Case, difference: Difference, seconds: float) -> Finding:
    """The same difference in a smaller case."""

    def fails(candidate: Case) -> bool:
        found = run_case(candidate)
        return found is not None and found.kind == difference.kind

    smallest = shrink(case, fails, seconds) if seconds else case
    found = run_case(smallest) or difference
    return Finding(case.seed, found.kind, str(found), smallest, script(smallest, str(found)))


def on_engines(case: Case, engines: tuple[str, ...]) -> Case:
    """The case on these engines, or as it is if there are none."""
    return replace(case, engines=engines) if engines else case


def findings(
    seeds: Iterable[int], covered: Counter[str], seconds: float, shrink_seconds: float, engines: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """The differences of many cases, until the time is over."""
    end = monotonic() + seconds
    for seed in seeds:
        if monotonic() >= end:
            return
        covered["cases"] += 1
        found = find(seed, covered, shrink_seconds, engines)
        if found is not None:
            yield found
