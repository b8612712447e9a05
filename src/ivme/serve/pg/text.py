"""Statements as PostgreSQL's clients write them, token by token: "quoted" names, `$1`, strings without escapes.

Queries are translated as `dialect="postgres"` of a view is. Other statements are in the SQL of ivme, which is Spark's:
in it "x" is a string and `\\` escapes. So that no text changes its meaning on the way,
statements are split and translated by the tokens of PostgreSQL, and values are never put into them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from ivme.errors import QueryError
from ivme.query.dialects import translated
from ivme.query.model import Table

DATABASE, SCHEMA = "ivme", "public"

_PARAMETER = re.compile(
    r"""--[^\n]* | /\*.*?(?:\*/|\Z) | (?<!\w)[eE]'(?:\\.|''|[^'\\])*(?:'|\Z) | '(?:''|[^'])*(?:'|\Z)
    | "(?:""|[^"])*(?:"|\Z) | (?<![\w$])\$(?P<tag>[^\W\d]\w*)?\$.*?(?:\$(?(tag)(?P=tag))\$|\Z)
    | (?<![\w$])(?P<parameter>\$\d+)(?=\S)""",
    re.DOTALL | re.VERBOSE,
)
"""A parameter with something right behind it; texts, quoted names and comments are matched to step over them."""


class _Dialect(Postgres):
    """PostgreSQL's, whose tokenizer takes what follows SHOW and EXPLAIN apart, too."""

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement: its tokens, and the text that they are from."""

    source: str
    tokens: tuple[Token, ...]

    @property
    def words(self) -> list[str]:
        """The texts of its tokens in upper case."""
        return [token.text.upper() for token in self.tokens]

    @property
    def text(self) -> str:
        return self.source[self.tokens[0].start : self.tokens[-1].end + 1]


def _parted(text: str) -> str:
    """The text with a space behind each parameter: sqlglot takes the `$1,$` of `$1,$2` for the start of a quoted text.

    >>> _parted("VALUES ($1,$2::int, '$3,$4', $$ $5,$6 $$)")
    "VALUES ($1 ,$2 ::int, '$3,$4', $$ $5,$6 $$)"
    """
    return _PARAMETER.sub(lambda found: found[0] + " " if found["parameter"] else found[0], text)


def split_statements(text: str) -> list[Piece]:
    """The statements of a text, which semicolons separate; linear in its length."""
    text = _parted(text)
    try:
        tokens = _Dialect().tokenize(text)
    except SqlglotError as error:
        raise QueryError(f"the text cannot be read: {error}", text=text) from None
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [Piece(text, tuple(piece)) for piece in pieces if piece]


def parameter_count(piece: Piece) -> int:
    """The largest n of its parameters `$n`."""
    pairs = zip(piece.tokens, piece.tokens[1:], strict=False)
    numbers = [int(second.text) for first, second in pairs if _is_parameter(first, second)]
    return max(numbers, default=0)


def _is_parameter(first: Token, second: Token) -> bool:
    return first.token_type == TokenType.PARAMETER and second.text.isdigit() and len(second.text) < 6


def any_parameters(piece: Piece) -> set[int]:
    """The n of its parameters in `= ANY($n)`."""
    words = piece.words
    places = range(2, len(words) - 2)
    return {
        int(words[at + 1])
        for at in places
        if words[at - 2 : at] == ["ANY", "("] and _is_parameter(*piece.tokens[at : at + 2])
    }


def parameter_name(number: int) -> str:
    """The name of parameter `$number` in ivme's text."""
    return f"p{number}"


def query_text(piece: Piece, tables: Iterable[Table]) -> str:
    """A query in the SQL of ivme that means what it means in PostgreSQL, or a refusal.

    >>> (piece,) = split_statements("SELECT 7 / 2 AS a, extract(dow FROM d) AS b FROM public.t WHERE n > $1")
    >>> print(query_text(piece, ()))
    SELECT 7 DIV 2 AS a, (DAYOFWEEK(d) - 1) AS b FROM t WHERE n > :p1
    """
    return translated(
        _text(piece, lambda token: piece.source[token.start : token.end + 1]), "postgres", tables, wide=True
    )


def ivme_text(piece: Piece) -> str:
    """The statement in the SQL of ivme; names of schemas that stand for the database are left out.

    >>> (piece,) = split_statements('SELECT "a" FROM public.t WHERE b = $1 AND c = \\'it\\'\\'s \\\\\\'')
    >>> print(ivme_text(piece))
    SELECT `a` FROM t WHERE b = :p1 AND c = 'it\\'s \\\\'
    """
    return _text(piece, _spark)


def _text(piece: Piece, written: Callable[[Token], str]) -> str:
    parts: list[str] = []
    tokens, place = piece.tokens, 0
    while place < len(tokens):
        schemas = _schemas_at(tokens, place)
        if schemas:
            parts.append(_gap(piece, place))
            place += schemas
            parts.append(written(tokens[place]) if place < len(tokens) else "")
        elif place + 1 < len(tokens) and _is_parameter(tokens[place], tokens[place + 1]):
            parts.append(f"{_gap(piece, place)}:{parameter_name(int(tokens[place + 1].text))}")
            place += 1
        else:
            parts.append(_gap(piece, place) + written(tokens[place]))
        place += 1
    return "".join(parts)


def _schemas_at(tokens: tuple[Token, ...], place: int) -> int:
    """How many tokens at a place only say which schema is meant: `public.` or `ivme.public.`."""
    if place and tokens[place - 1].token_type == TokenType.DOT:
        return 0
    said = [(token.text.lower(), token.token_type) for token in tokens[place : place + 4]]
    names = [text if kind in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT) else "" for text, kind in said]
    if names[:4] == [DATABASE, ".", SCHEMA, "."]:
        return 4
    return 2 if names[:2] == [SCHEMA, "."] else 0


def _gap(piece: Piece, place: int) -> str:
    """What stands between a token and the one before it, without comments."""
    if not place:
        return ""
    between = piece.source[piece.tokens[place - 1].end + 1 : piece.tokens[place].start]
    return "\n" * between.count("\n") or (" " if between else "")


def _spark(token: Token) -> str:
    if token.token_type == TokenType.IDENTIFIER:
        return "`" + token.text.replace("`", "``") + "`"
    if token.token_type in (TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.BYTE_STRING):
        return "'" + token.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if token.token_type == TokenType.HEX_STRING:
        return f"X'{token.text}'"
    return token.text
