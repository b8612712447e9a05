"""LIKE without backtracking: a match takes at most the time of the pattern's length times the text's.

Between two `%` a pattern is a run of characters and `_`, each of which takes exactly one character. The leftmost place
of a run is as good as any other for the runs behind it, so that nothing is ever tried twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ivme.query.sql_values import text

ESCAPE = "\\"
"""The character that takes the meaning from % and _ where no ESCAPE names another."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The run before the first `%`, those between two, and the one behind the last; None without any `%`."""

    first: re.Pattern[str]
    middle: tuple[re.Pattern[str], ...]
    last: re.Pattern[str] | None
    last_length: int

    def matches(self, value: str) -> bool:
        if self.last is None:
            return self.first.fullmatch(value) is not None
        found = self.first.match(value)
        for run in self.middle:
            if found is None:
                return False
            found = run.search(value, found.end())
        start = len(value) - self.last_length
        return found is not None and found.end() <= start and self.last.match(value, start) is not None


def like(value: Any, pattern: Any, escape: Any = ESCAPE) -> bool:
    """Whether a text is like a pattern, in which % stands for any text and _ for any character.

    >>> like("a_c", "a!_%", "!"), like("abc", "a!_%", "!"), like("a" * 800, "%a%a%a%b")
    (True, False, False)
    """
    return _read(text(pattern), text(escape)).matches(text(value))


@lru_cache(maxsize=256)
def _read(pattern: str, escape: str) -> _Pattern:
    runs: list[list[str]] = [[]]
    for character in characters(pattern, escape):
        if character == "%":
            runs.append([])
        else:
            runs[-1].append("." if character == "_" else re.escape(character[-1]))
    first, *middle = [re.compile("".join(run), re.DOTALL) for run in runs]
    return _Pattern(first, tuple(middle[:-1]), middle[-1] if middle else None, len(runs[-1]))


def characters(pattern: str, escape: str) -> Iterator[str]:
    """A pattern's characters, each as `%`, as `_`, or behind a backslash if it stands for itself."""
    if len(escape) != 1:
        raise ValueError("ESCAPE takes one character")
    rest = iter(pattern)
    for character in rest:
        if character != escape:
            yield character if character in "%_" else f"\\{character}"
            continue
        escaped = next(rest, None)
        if escaped is None or escaped not in ("%", "_", escape):
            raise ValueError(f"in the pattern {pattern!r}, {escape!r} must come before %, _ or itself")
        yield f"\\{escaped}"
