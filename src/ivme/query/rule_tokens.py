"""The words of rule notation: names, numbers, strings and symbols, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from ivme.errors import ParseError

_PATTERN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?!\w))
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
      | (?P<name>[^\W\d]\w*)
      | (?P<symbol>:-|<=|>=|!=|<>|==|\S)""",
    re.VERBOSE,
)
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text: its kind is "name", "quoted" (a name), "number", "string", "symbol" or "end"."""

    kind: str
    text: str
    position: int

    @property
    def value(self) -> str:
        """What the word stands for: a quoted one without its quotes."""
        if self.kind not in ("quoted", "string"):
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    @property
    def word(self) -> str:
        """The keyword or symbol that this may be, in lower case; what is quoted is not one."""
        return "" if self.kind in ("quoted", "string") else self.text.lower()

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")

    def __str__(self) -> str:
        return "the end of the rule" if self.kind == "end" else f"`{self.text}`"


def tokens(text: str) -> Iterator[Token]:
    """The words of `text` in order, and last one of kind "end"."""
    for match in _PATTERN.finditer(text):
        token = Token(match.lastgroup or "", match.group(), match.start())
        if token.kind == "symbol":
            _check_symbol(token, text)
        if token.kind != "space":
            yield token
    yield Token("end", "", len(text))


def _check_symbol(token: Token, text: str) -> None:
    """Refuse what is a symbol only because it failed to be a quoted word, a number or a name."""
    if token.text in "'\"`":
        empty = text.startswith(token.text * 2, token.position)
        message = "a name without a single letter" if empty else "a quote that is never closed"
        instead = "write something between the quotes" if empty else "close it; a quote within quotes is written twice"
        raise ParseError(message, text=text, position=token.position, instead=instead)
    if token.text.isdecimal() or (token.text in "+-" and text[token.position + 1 :][:1].isdecimal()):
        instead = 'begin names with a letter or an underscore, or quote them: "1st"'
        raise ParseError("neither a number nor a name", text=text, position=token.position, instead=instead)


def number(text: str) -> int | float | Decimal | None:
    """The number written: a float if it has an exponent, else exact; None if no column type is that wide."""
    if "e" in text.lower():
        approximate = float(text)
        return approximate if abs(approximate) != float("inf") else None
    if len(text) > 40:
        return None
    if "." in text:
        exact = Decimal(text)
        return exact if len(exact.as_tuple().digits) <= 38 else None
    return int(text) if int(text) in _INT64 else None
