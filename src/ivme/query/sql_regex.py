r"""Regular expressions as Java's, which Spark uses, in those parts that Python can be made to mean the same by.

`.` does not match any of Java's five ends of a line, `$` is before the last of them too, `\d`, `\w` and `\s` are those
of ASCII. What differs otherwise is refused with its place: back references, `\b`, `\p{...}`, classes in classes, names
of groups, look-behinds, possessive quantifiers. A match may take time that is exponential in the text's length, as in
Spark; LIKE never does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_ENDS = r"\n\r\x85\u2028\u2029"
_DOT = f"[^{_ENDS}]"
_LAST = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_CLASSES = frozenset("dDwWsS")
_CONTROLS = frozenset("tnrf")
_GROUPS = ("(?:", "(?=", "(?!")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??")
_REFERENCE = re.compile(r"\$(\d+)|\\(.)|([$\\])", re.DOTALL)


@lru_cache(maxsize=256)
def regular_expression(pattern: str) -> re.Pattern[str]:
    """The compiled expression of a pattern; ValueError if it is not one, or its meaning may differ from Java's.

    >>> regular_expression("^a.c$").search("abc\\n") is not None, regular_expression("a.c").search("a\\rc")
    (True, None)
    """
    flags, body = re.ASCII, pattern
    if pattern.startswith("(?i)"):
        flags, body = re.ASCII | re.IGNORECASE, pattern[4:]
    try:
        return re.compile("".join(_Reading(body, pattern).parts()), flags)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is not a regular expression: {error}") from None


class _Reading:
    """Reads a pattern part by part."""

    def __init__(self, body: str, pattern: str) -> None:
        self._body, self._pattern, self._at = body, pattern, 0

    def parts(self) -> list[str]:
        found: list[str] = []
        while self._at < len(self._body):
            found.append(self._part())
        return found

    def _part(self) -> str:
        character = self._body[self._at]
        if character == "\\":
            return self._escaped()
        if character == "[":
            return self._class()
        if character == "(":
            return self._group()
        quantifier = _QUANTIFIER.match(self._body, self._at)
        if quantifier is not None:
            self._at = quantifier.end()
            if self._body[self._at : self._at + 1] == "+":
                raise self._refused("possessive quantifiers")
            return quantifier.group()
        if character in "{}":
            raise self._refused(f"{character} that is not part of a quantifier; write \\{character}")
        self._at += 1
        return {".": _DOT, "$": _LAST}.get(character, character)

    def _escaped(self) -> str:
        escaped = self._body[self._at + 1 : self._at + 2]
        if not escaped:
            raise self._refused("a backslash at the end")
        if escaped.isalnum() and escaped not in _CLASSES | _CONTROLS:
            raise self._refused(f"\\{escaped}")
        self._at += 2
        return f"\\{escaped}" if escaped.isalnum() else re.escape(escaped)

    def _group(self) -> str:
        start = next((group for group in _GROUPS if self._body.startswith(group, self._at)), "(")
        self._at += len(start)
        if start == "(" and self._body[self._at : self._at + 1] == "?":
            raise self._refused("groups with names or flags, and look-behinds")
        return start

    def _class(self) -> str:
        parts = ["["]
        self._at += 1
        if self._body[self._at : self._at + 1] == "^":
            parts.append("^")
            self._at += 1
        if self._body[self._at : self._at + 1] == "]":
            raise self._refused("] at the front of a class; write \\]")
        while self._body[self._at : self._at + 1] not in ("]", ""):
            parts.append(self._member())
        if self._at >= len(self._body):
            raise ValueError(f"the pattern {self._pattern!r} is not a regular expression: a class does not end")
        self._at += 1
        return "".join([*parts, "]"])

    def _member(self) -> str:
        character = self._body[self._at]
        if character == "[" or self._body.startswith("&&", self._at):
            raise self._refused("classes in classes")
        if character == "\\":
            return self._escaped()
        self._at += 1
        return character if character in "-^" or character.isalnum() else re.escape(character)

    def _refused(self, what: str) -> ValueError:
        return ValueError(f"the pattern {self._pattern!r} has {what}, which ivme does not read as Java does")


def replacement(text: str, groups: int) -> Callable[[re.Match[str]], str]:
    """What REGEXP_REPLACE puts in place of a match: $1 is the first group, and a backslash is before what stands for
    itself."""
    parts: list[str | int] = []
    at = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        if found.group(3) is not None:
            raise ValueError(f"{text!r} has a {found.group(3)} that names no group; write \\\\{found.group(3)}")
        if found.group(2) is not None:
            parts.append(found.group(2))
            continue
        number, rest = _numbered(found.group(1), groups)
        parts += [number, rest]
    parts.append(text[at:])
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)


def _numbered(digits: str, groups: int) -> tuple[int, str]:
    """The number of a group, which has as many digits as there are groups for, and what is behind it."""
    for end in range(len(digits), 0, -1):
        if int(digits[:end]) <= groups:
            return int(digits[:end]), digits[end:]
    raise ValueError(f"there is no group ${digits}")
