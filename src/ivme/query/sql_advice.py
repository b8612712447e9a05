"""What to write in place of words of other systems, and of words in the wrong place, where a text cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

_BEFORE_NAMES = (TokenType.FROM, TokenType.JOIN, TokenType.INTO, TokenType.UPDATE)
"""What the name of a table or view follows."""

NAMED = "write a parameter as :name, and give it by name: db.sql(text, name=value)"

TYPES = {
    **dict.fromkeys(("serial", "smallserial", "bigserial"), "use BIGINT, and give the value in INSERT"),
    **dict.fromkeys(("money", "smallmoney"), "use DECIMAL(18, 2)"),
}
"""Types of other systems that sqlglot does not take for types of Spark."""


def advice(tokens: Sequence[Token], offset: int | None) -> str | None:
    """What to write for `%s`, for the word at a place, or for the one before it; None if nothing is known."""
    has_from, found = False, None
    for before, token in pairwise(tokens):
        is_number = before.text in (":", "$") and token.text.isdigit() and offset in (before.start, token.start)
        if before.end + 1 == token.start and ((before.text, token.text) == ("%", "s") or is_number):
            return NAMED
        has_from = has_from or before.token_type == TokenType.FROM
        if token.start == offset:
            found = _at(before, token, has_from)
    return found


def _at(before: Token, token: Token, has_from: bool) -> str | None:
    word = before.text.upper()
    if token.text.lower() in TYPES:
        return TYPES[token.text.lower()]
    if token.text == "~":
        return "write a RLIKE 'pattern', or say that the text is PostgreSQL's: dialect='postgres'"
    if word == "IGNORE" and token.token_type == TokenType.INTO:
        return "write INSERT INTO table VALUES (...) ON CONFLICT DO NOTHING"
    if word == "TOP" and token.text.isdigit():
        return f"write LIMIT {token.text} at the end of the query"
    if word in ("FORM", "FRM", "FRON") and not has_from:
        return f"write FROM in place of {before.text}"
    if before.token_type in _BEFORE_NAMES and token.text.isidentifier():
        return f'write "{token.text}", in double quotes, if that is a name: it is a word of SQL'
    return None
