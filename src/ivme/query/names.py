"""Which texts can be names of tables, columns, views and parameters; checked when they are made.

A name ends up in messages, in JSON, in Arrow schemas and in addresses. One with a lone surrogate cannot be written in
UTF-8 at all, and one with a line break or another control character breaks whatever prints it. Everything else is
taken as it is given, in particular without Unicode normalisation: names that differ in their code points, case aside,
are different names. A directory that holds an older name still opens.
"""

from __future__ import annotations

import unicodedata

from ivme.errors import ParseError, SchemaError, shown

MOST_CHARACTERS = 255
"""The longest name."""

CLOCK, REQUESTS = "ivme_clock", "ivme_requests"
OWN_TABLES = frozenset({CLOCK, REQUESTS})
"""Tables that ivme makes for itself: the clock, and the requests that a server has applied. Lists leave them out."""

_MOST_TEXT = 1_000_000
"""The longest text of a query; reading it takes time that grows with it."""

_REFUSED = ("Cc", "Zl", "Zp")
"""The Unicode categories that names have none of: control characters, line and paragraph separators."""


def check_name(name: object, what: str) -> None:
    """Refuses what cannot be a name; `what` says in messages whose it is.

    >>> check_name("Zürich 2", "a table")
    >>> check_name("a" * 300, "a table")
    Traceback (most recent call last):
    ivme.errors.SchemaError: the name of a table has 300 characters; at most 255 are possible
    """
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{what} needs a name, a string with at least one character; it is {shown(name)}")
    if len(name) > MOST_CHARACTERS:
        raise SchemaError(f"the name of {what} has {len(name)} characters; at most {MOST_CHARACTERS} are possible")
    if lone_surrogate(name) is not None:
        raise SchemaError(f"the name of {what}, {shown(name)}, has a lone surrogate, which is not a character")
    if any(unicodedata.category(character) in _REFUSED for character in name):
        raise SchemaError(f"the name of {what}, {shown(name)}, has a control character or a line break; leave it out")


def check_text(text: str) -> None:
    """Refuses a query with a lone surrogate, or one that is too long, before anything is made of it.

    >>> check_text("Q(A) = R(A, 'é')")
    """
    if len(text) > _MOST_TEXT:
        message = f"the query has {len(text)} characters; at most {_MOST_TEXT} are read"
        raise ParseError(message, instead="put the values of a long list into a table, and join it")
    position = lone_surrogate(text)
    if position is not None:
        message = f"the text has a lone surrogate, {text[position]!r}, at character {position + 1}"
        raise ParseError(message, instead="remove it; it is not a character")


def lone_surrogate(text: str) -> int | None:
    """The place of the first lone surrogate of a text, or None; `json.loads` makes them of escapes such as "\\\\ud800".

    >>> lone_surrogate("plain"), lone_surrogate("a\\ud800")
    (None, 1)
    """
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None
