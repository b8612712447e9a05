"""Maintenance programs as SQL text: a few kinds of statements that every SQL engine has, read once.

    CREATE TEMP TABLE name AS query;        a relation for the rest of this run
    INSERT INTO name query;                 into the answer, an auxiliary table, or one made in this run
    DELETE FROM name [WHERE condition];
    REPEAT; ... UNTIL EMPTY name;           the statements between, until the table is empty

Values come as parameters, `:column` for each column of the changed row, and are never pasted into the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ivme.errors import ParseError
from ivme.query.names import check_text

_TOKENS = re.compile(
    r"""(?P<skipped>'(?:[^']|'')*'|"[^"]*"|::)|(?P<comment>--[^\n]*|/\*.*?\*/)|:(?P<name>[A-Za-z_]\w*)|(?P<end>;)""",
    re.DOTALL,
)
"""What matters in a program's text, and what may hide it: strings, quoted names, casts and comments."""

_FORMS = (
    ("temp", re.compile(r"CREATE\s+TEMP(?:ORARY)?\s+TABLE\s+(\w+)\s+AS\s+(.*)", re.IGNORECASE | re.DOTALL)),
    ("insert", re.compile(r"INSERT\s+INTO\s+(\w+)\s+(.*)", re.IGNORECASE | re.DOTALL)),
    ("delete", re.compile(r"DELETE\s+FROM\s+(\w+)(?:\s+WHERE\s+(.*))?", re.IGNORECASE | re.DOTALL)),
    ("until", re.compile(r"UNTIL\s+EMPTY\s+(\w+)()", re.IGNORECASE)),
    ("repeat", re.compile(r"(REPEAT)()", re.IGNORECASE)),
)
_INSTEAD = "write CREATE TEMP TABLE x AS SELECT, INSERT INTO x SELECT, DELETE FROM x WHERE, REPEAT or UNTIL EMPTY x"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: `kind` is temp, insert, delete, repeat or until; `body` is its query or condition.

    `parameters` are the names in its body, each with its place in the text.
    """

    kind: str
    target: str
    body: str
    parameters: tuple[tuple[str, int], ...]

    def with_marks(self, mark: str) -> str:
        """The body with parameters marked as an engine wants them, as `$` or `:`."""
        text, end = "", 0
        for name, start in self.parameters:
            text += self.body[end:start] + mark + name
            end = start + 1 + len(name)
        return text + self.body[end:]


def read_program(text: str) -> tuple[Statement, ...]:
    """The statements of a program; ParseError names the one that is not a statement.

    >>> [s.kind for s in read_program("DELETE FROM t WHERE a = :a; INSERT INTO t SELECT :a")]
    ['delete', 'insert']
    """
    check_text(text)
    found = [_statement(text, start, end) for start, end in _split(text)]
    depth = 0
    for statement in found:
        depth += {"repeat": 1, "until": -1}.get(statement.kind, 0)
        if depth not in (0, 1):
            break
    if depth != 0:
        raise ParseError(
            "REPEAT and UNTIL EMPTY do not match", text=text, instead="close each REPEAT; with UNTIL EMPTY x;"
        )
    return tuple(found)


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Where each statement starts and ends, without the comments and blanks around it."""
    bare = _TOKENS.sub(lambda token: " " * len(token[0]) if token["comment"] else token[0], text)
    start = 0
    for end in [*(token.start() for token in _TOKENS.finditer(text) if token["end"]), len(text)]:
        part = bare[start:end]
        if part.strip():
            yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        start = end + 1


def _statement(text: str, start: int, end: int) -> Statement:
    for kind, form in _FORMS:
        found = form.fullmatch(text, start, end)
        if found is not None:
            body = found.group(2) or ""
            names = [(token["name"], token.start()) for token in _TOKENS.finditer(body) if token["name"]]
            return Statement(kind, found.group(1).lower(), body, tuple(names))
    raise ParseError("this is not a statement of a maintenance program", text=text, position=start, instead=_INSTEAD)
