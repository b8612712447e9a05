"""The patterns of DATE_FORMAT, TO_DATE and TO_TIMESTAMP: those letters of Spark's whose meaning needs no locale.

A letter that is not known is an error, and so is one that a text cannot be read by.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache

Part = tuple[str, int]
"""A letter and how often it stands there; what stands for itself, and 0."""

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
MONTHS = (*_MONTHS, "November", "December")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _name(names: tuple[str, ...], number: int, count: int) -> str:
    return names[number] if count == 4 else names[number][:3]


def _padded(number: int, count: int) -> str:
    return f"{number:0{count}d}"


def _year(moment: datetime.datetime, count: int) -> str:
    return _padded(moment.year % 100, 2) if count == 2 else _padded(moment.year, count)


def _month(moment: datetime.datetime, count: int) -> str:
    return _padded(moment.month, count) if count < 3 else _name(MONTHS, moment.month - 1, count)


def _of_year(moment: datetime.datetime) -> int:
    return moment.timetuple().tm_yday


_Show = Callable[[datetime.datetime, int], str]
_LETTERS: dict[str, tuple[tuple[int, ...], _Show]] = {
    "y": ((1, 2, 4), _year),
    "M": ((1, 2, 3, 4), _month),
    "d": ((1, 2), lambda moment, count: _padded(moment.day, count)),
    "D": ((1, 3), lambda moment, count: _padded(_of_year(moment), count)),
    "E": ((1, 2, 3, 4), lambda moment, count: _name(_DAYS, moment.weekday(), count)),
    "H": ((1, 2), lambda moment, count: _padded(moment.hour, count)),
    "h": ((1, 2), lambda moment, count: _padded((moment.hour - 1) % 12 + 1, count)),
    "m": ((1, 2), lambda moment, count: _padded(moment.minute, count)),
    "s": ((1, 2), lambda moment, count: _padded(moment.second, count)),
    "S": (tuple(range(1, 7)), lambda moment, count: _padded(moment.microsecond, 6)[:count]),
    "a": ((1,), lambda moment, _: "AM" if moment.hour < 12 else "PM"),
    "Q": ((1, 2), lambda moment, count: _padded((moment.month + 2) // 3, count)),
}
"""The letters: how often each may stand there, and what it shows."""

_READ = {
    ("y", 4): r"(?P<y>\d{4})",
    ("M", 1): r"(?P<M>\d{1,2})",
    ("M", 2): r"(?P<M>\d{2})",
    ("M", 3): "(?i:(?P<name>" + "|".join(month[:3] for month in MONTHS) + "))",
    ("M", 4): "(?i:(?P<name>" + "|".join(MONTHS) + "))",
    **{(letter, 1): rf"(?P<{letter}>\d{{1,2}})" for letter in "dHms"},
    **{(letter, 2): rf"(?P<{letter}>\d{{2}})" for letter in "dHms"},
    **{("S", count): rf"(?P<S>\d{{1,{count}}})" for count in range(1, 7)},
}
"""How a text is read by a part of a pattern."""


@lru_cache(maxsize=256)
def pattern_parts(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern; what stands for itself has the count 0.

    >>> pattern_parts("yyyy-M'T'")
    (('y', 4), ('-', 0), ('M', 1), ('T', 0))
    """
    parts: list[Part] = []
    for found in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z]", pattern):
        text, letter = found.group(), found.group(2)
        if letter is None:
            parts.append((_quoted(text, found.group(1), pattern), 0))
        elif letter not in _LETTERS or len(text) not in _LETTERS[letter][0]:
            raise ValueError(f"{text!r} is not a part of a pattern that ivme has; use {', '.join(_known())}")
        else:
            parts.append((letter, len(text)))
    return tuple(parts)


def _quoted(text: str, inside: str | None, pattern: str) -> str:
    if inside is not None:
        return inside.replace("''", "'") or "'"
    if text in "'[]{}#":
        raise ValueError(f"{text} is not closed, or has a meaning of its own, in the pattern {pattern!r}; leave it out")
    return text


def _known() -> list[str]:
    return [letter * count for letter, (counts, _) in _LETTERS.items() for count in counts if letter != "S"] + ["SSS"]


@lru_cache(maxsize=256)
def readable_parts(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression for the texts that it reads."""
    parts, read = pattern_parts(pattern), []
    for letter, count in parts:
        if count and (letter, count) not in _READ:
            raise ValueError(f"{letter * count!r} cannot be read from a text; use yyyy, MM, dd, HH, mm, ss and S")
        read.append(_READ[letter, count] if count else re.escape(letter))
    letters = [letter for letter, count in parts if count]
    if len(letters) != len(set(letters)):
        raise ValueError(f"the pattern {pattern!r} has a part twice")
    return re.compile("".join(read), re.ASCII)


def formatted(moment: datetime.datetime, parts: tuple[Part, ...]) -> str:
    """A moment as a pattern shows it.

    >>> formatted(datetime.datetime(2024, 2, 29, 13, 5), pattern_parts("MMM d, h:mm a"))
    'Feb 29, 1:05 PM'
    """
    return "".join(_LETTERS[letter][1](moment, count) if count else letter for letter, count in parts)


def parsed(text: str, pattern: str, expression: re.Pattern[str]) -> datetime.datetime:
    """The moment that a text stands for."""
    match = expression.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not like the pattern {pattern!r}")
    found = {name: part for name, part in match.groupdict().items() if part is not None}
    name = found.get("name", "").lower()
    named = next((i for i, known in enumerate(MONTHS, 1) if name and known.lower().startswith(name)), None)
    month = int(found.get("M", 1)) if named is None else named
    year, day = int(found.get("y", 1970)), int(found.get("d", 1))
    hour, minute, second = (int(found.get(letter, 0)) for letter in "Hms")
    return datetime.datetime(year, month, day, hour, minute, second, int(found.get("S", "0").ljust(6, "0")))
