"""Maintenance programs as SQL text: a few kinds of statements that every SQL engine has, read once.

    CREATE TEMP TABLE name AS query;        a relation for the rest of this run
    INSERT INTO name query;                 into the answer, an auxiliary table, or one made in this run
    DELETE FROM name [WHERE condition];
    REPEAT; ... UNTIL EMPTY name;           the statements between, until the table is empty

Values come as parameters, `:column` for each column of the changed row, and are never pasted into the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from ivme.errors import ParseError

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
    """The statements of a program; ParseError names the one that is none.

    >>> [s.kind for s in read_program("DELETE FROM t WHERE a = :a; INSERT INTO t SELECT :a")]
    ['delete', 'insert']
    """
    found = [_statement(text, tokens) for tokens in _split(text)]
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


def _split(text: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in sqlglot.tokenize(text, read="duckdb"):
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _statement(text: str, tokens: list[Token]) -> Statement:
    start, end = tokens[0].start, tokens[-1].end + 1
    for kind, form in _FORMS:
        found = form.fullmatch(text, start, end)
        if found is not None:
            body = found.group(2) or ""
            offset = found.start(2) if body else end
            return Statement(kind, found.group(1).lower(), body, _parameters(tokens, offset))
    raise ParseError("this is no statement of a maintenance program", text=text, position=start, instead=_INSTEAD)


def _parameters(tokens: list[Token], offset: int) -> tuple[tuple[str, int], ...]:
    """A colon with a name right behind it; a colon in a string is part of one token, and `::` is a token of its own."""
    found = []
    for colon, name in pairwise(tokens):
        if colon.token_type == TokenType.COLON and name.start == colon.end + 1 and colon.start >= offset:
            found.append((name.text, colon.start - offset))
    return tuple(found)
