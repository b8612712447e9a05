"""Why a row is in a view, or why not, as a tree of what was looked for and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]

MOST_SHOWN = 3
"""How many tuples of a relation are named; of the others it is said how many there are."""


def first_few(found: Sequence[T]) -> Sequence[T]:
    """Those of which is told what is behind them."""
    return found[:MOST_SHOWN]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a relation has `at` a key: some tuples, how many `more`, and what these need in turn.

    Of a row that is there, `below` has what is behind the tuples that are named: of one of them, where one is enough
    for the row, and of all where all add up to it. Of a row that is not there, it is what it has no partner in.
    """

    relation: str
    at: tuple[tuple[str, Any], ...]
    tuples: tuple[Row, ...]
    more: int = 0
    below: tuple[Finding, ...] = ()

    def shortened(self) -> Finding:
        """The same with the first few tuples."""
        more = self.more + max(0, len(self.tuples) - MOST_SHOWN)
        below = tuple(each.shortened() for each in self.below)
        return Finding(self.relation, self.at, tuple(first_few(self.tuples)), more, below)

    def lines(self, *, lacking: bool) -> Iterator[str]:
        """The finding as lines of a tree."""
        but = ", but" if lacking and self.below and self.tuples else ""
        yield f"{self.relation} {self._found()}{self._place()}{but}"
        for position, finding in enumerate(self.below):
            last = position == len(self.below) - 1
            first, *rest = finding.lines(lacking=lacking)
            yield f"{'└─' if last else '├─'} {first}"
            yield from (f"{'  ' if last else '│ '} {line}" for line in rest)

    def _found(self) -> str:
        listed = ", ".join(map(shown, self.tuples)) or "nothing"
        return f"has {listed}{f' and {self.more:,} more' if self.more else ''}"

    def _place(self) -> str:
        if self.tuples and len(self.at) == len(self.tuples[0]):
            return ""
        key = ", ".join(f"{variable} = {_text(value)}" for variable, value in self.at)
        return f" at {key}" if key else ""


@dataclass(frozen=True, slots=True)
class Reasons:
    """The answer of `why` (`present`) or `why_not`; `str()` is for people, `findings` for programs."""

    view: str
    row: Row
    present: bool
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        verb = "is in" if self.present else "is not in"
        lines = [f"{shown(self.row)} {verb} {self.view}:"]
        for finding in self.findings:
            lines += [f"  {line}" for line in finding.lines(lacking=not self.present)]
        return "\n".join(lines)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding for each relation, at what all of it have in common, with the tuples of all.

    >>> two = Finding("r", (("a", 1), ("b", 2)), ((1, 2),)), Finding("r", (("a", 1), ("b", 3)), ((1, 3), (1, 2)))
    >>> merged(two)
    (Finding(relation='r', at=(('a', 1),), tuples=((1, 2), (1, 3)), more=0, below=()),)
    """
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.relation, []).append(finding)
    return tuple(group[0] if len(group) == 1 else _as_one(name, group) for name, group in groups.items())


def _as_one(relation: str, group: list[Finding]) -> Finding:
    at = tuple(item for item in group[0].at if all(item in other.at for other in group))
    tuples = dict.fromkeys(row for each in group for row in each.tuples)
    below = merged(finding for each in group for finding in each.below)
    return Finding(relation, at, tuple(tuples), sum(each.more for each in group), below)


def shown(row: Row) -> str:
    """A tuple as people write it; NULL where it is None."""
    return f"({', '.join(map(_text, row))})"


def _text(value: Any) -> str:
    return "NULL" if value is None else repr(value)
