"""Which rules of the grammar are in views that ivme accepts: all must be, but those that are listed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count
from random import Random

from tests.select.cases import SelectCase, make_case
from tests.select.fuzzing import Finding, shrunk
from tests.select.queries import Queries
from tests.select.running import run_case
from tests.select.unaccepted import UNACCEPTED
from tests.select.words import Output, Words

RELATIONS = {
    "r0": (Output("i", "int"), Output("j", "int"), Output("s", "string"), Output("d2", "decimal")),
    "r1": (Output("i", "int"), Output("k", "int"), Output("dt", "date"), Output("b", "bool")),
    "r2": (
        *(Output("j", "int"), Output("s", "string"), Output("ts", "timestamp")),
        *(Output("li", "ints"), Output("ls", "strings"), Output("st", "place")),
    ),
}
_LONGEST = 300
"""Longer texts are refused for something else too often to look for a rule in them."""


@cache
def known_rules() -> tuple[str, ...]:
    """Every rule that the grammar has, found by drawing."""
    for seed in range(3000):
        Queries(Random(seed), RELATIONS).statement()
    return tuple(sorted(Words.known))


def cover(part: int, parts: int, least: int, most: int) -> tuple[set[str], list[Finding]]:
    """Runs cases until a share of the rules is in views that are accepted; the rules left, and what was found."""
    covered: Counter[str] = Counter()
    found: list[Finding] = []
    missing = set(known_rules()[part::parts])
    run = 0
    for seed in count(part * 1_000_000):
        wanted = missing.difference(UNACCEPTED)
        if run >= (most if wanted else least):
            break
        case = make_case(seed)
        if run >= least and not _promises(case, wanted):
            continue
        run += 1
        difference = run_case(case, covered)
        if difference is not None:
            found.append(shrunk(case, difference, 30.0))
        missing -= {rule for rule in missing if covered[f"accepted {rule}"]}
    return missing, found


def _promises(case: SelectCase, missing: set[str]) -> bool:
    return any(len(view.sql) < _LONGEST and missing & view.rules for view in case.views)
