"""Why a row is in the answer of an incremental evaluation system: rows of its tables that are enough for it.

Nothing is known of the programs, so they are run: over parts of the tables from the start, until no row is left that
the others need. It takes O(k log N) runs for k rows, each over at most N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ivme.engine.read.reasons import Finding, Row

Fact = tuple[str, Row]
"""A row of a table, with the table's name."""


def enough_facts(facts: Sequence[Fact], holds: Callable[[list[Fact]], bool]) -> list[Fact]:
    """Some of the facts for which something holds that holds for all of them, in their order.

    Each step finds the shortest beginning of the rest that is enough beside what is needed already: its last fact is
    needed, too. Of programs that more rows never make lose a row, no fact of the result can be left out.

    >>> enough_facts([("r", (n,)) for n in range(9)], lambda some: {("r", (2,)), ("r", (7,))} <= set(some))
    [('r', (2,)), ('r', (7,))]
    """
    needed: list[int] = []
    rest = len(facts)

    def is_enough(count: int) -> bool:
        return holds([facts[place] for place in [*range(count), *sorted(needed)]])

    while not is_enough(0):
        low, high = 0, rest
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        rest = high - 1
        needed.append(rest)
    return [facts[place] for place in sorted(needed)]


def found_facts(facts: Sequence[Fact], inputs: Sequence[str]) -> tuple[Finding, ...]:
    """Facts by their tables; that all inputs have nothing, if none is needed."""
    tables = dict.fromkeys(table for table, _ in facts) or dict.fromkeys(inputs)
    return tuple(Finding(table, (), tuple(row for name, row in facts if name == table)) for table in tables)


def nearest_rows(view: str, columns: Sequence[str], row: Row, rows: Sequence[Row]) -> tuple[Finding, ...]:
    """That an answer does not have a row, and the rows that are most like it."""

    def like(other: Row) -> list[int]:
        return [place for place, value in enumerate(row) if other[place] == value]

    def at(places: Sequence[int]) -> tuple[tuple[str, Any], ...]:
        return tuple((columns[place], row[place]) for place in places)

    missing = Finding(view, at(range(len(row))), ())
    most = max((len(like(other)) for other in rows), default=0)
    if not most:
        return (missing,)
    groups: dict[tuple[int, ...], list[Row]] = {}
    for other in rows:
        if len(like(other)) == most:
            groups.setdefault(tuple(like(other)), []).append(other)
    return (missing, *(Finding(view, at(places), tuple(found)) for places, found in groups.items()))
