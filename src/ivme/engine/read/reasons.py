"""Why a row is in a view, or why not, as a tree of what was looked for and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a relation has `at` a key: some tuples, how many `more`, and what these need in turn.

    Of a row that is there, `below` has the partners of the first tuple; of one that is not, what it has no partner in.
    """

    relation: str
    at: tuple[tuple[str, Any], ...]
    tuples: tuple[Row, ...]
    more: int = 0
    below: tuple[Finding, ...] = ()

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


def shown(row: Row) -> str:
    """A tuple as people write it; NULL where it is None."""
    return f"({', '.join(map(_text, row))})"


def _text(value: Any) -> str:
    return "NULL" if value is None else repr(value)
