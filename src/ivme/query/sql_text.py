"""The text of a SQL query and its places: parsing by sqlglot, and refusals that point at a character.

sqlglot keeps offsets on names, literals and most functions only; the place of any other node is the first offset
below it, and the place of a clause is that of its keyword among the tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.tokenizer_core import Token, TokenType

from ivme.errors import ParseError, QueryError, UnknownNameError, UnsupportedError
from ivme.query.functions import Function
from ivme.query.sql_advice import NAMED, TYPES, advice
from ivme.query.sql_parameters import Default, without_defaults
from ivme.query.written import marked_parts, own_place

DIALECT = "spark"

WINDOW_CALL = "W1ND0W"
"""What Spark's function `window` is called in syntax trees."""

_Error = TypeVar("_Error", bound=QueryError)

_WORDS = {
    "columns": "a list of columns",
    "connect": "CONNECT BY",
    "expression": "a further part",
    "expressions": "a list",
    "except_": "EXCEPT",
    "group": "GROUP BY",
    "joins": "a join",
    "on": "ON",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "position": "LEADING or TRAILING",
    "replace": "OR REPLACE",
    "safe": "TRY_CAST",
    "sample": "TABLESAMPLE",
    "side": "an outer join",
    "with_": "WITH",
}
"""What to call an argument of a sqlglot node; others go by their own names."""

_INSTEAD = {"connect": "write WITH RECURSIVE"}
"""What to write in place of a clause that other systems have."""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Origin:
    """The user's own text, where the SQL was made of it: `marks` pairs offsets of the SQL with its, in order."""

    text: str
    marks: tuple[tuple[int, int], ...]

    def offset(self, offset: int) -> int:
        """The place that a place of the SQL was made of: that of the last mark up to there."""
        index = bisect_right(self.marks, offset, key=lambda mark: mark[0]) - 1
        return self.marks[max(index, 0)][1] if self.marks else 0

    def word(self, offset: int) -> str:
        """The name that a place of the SQL was made of; empty if it was made of something else."""
        found = _NAME.match(self.text, self.offset(offset))
        return "" if found is None else found.group()


@dataclass(frozen=True, slots=True)
class SqlText:
    """A text with its tokens; it makes every error of the SQL front end. One made of rules points into these.

    `parsed` is the text without the `defaults` of its parameters, which the tokens do not have either; `lists` are the
    parameters that are lists, each with whether aggregates run across its members.
    """

    text: str
    tokens: tuple[Token, ...]
    origin: Origin | None = None
    functions: Mapping[str, Function] = field(default_factory=dict)
    """The users' functions, by lower-cased name."""
    parsed: str = ""
    defaults: tuple[Default, ...] = ()
    lists: dict[str, bool] = field(default_factory=dict)

    def at(self, node: exp.Expr | None) -> int | None:
        """The offset of the first character of a node that has one, else of the nearest node around it."""
        while node is not None:
            starts = [self._start(part) for part in marked_parts(node)]
            known = [start for start in starts if start is not None]
            if known:
                return min(known)
            if isinstance(node, exp.Where):
                return self.keyword(["WHERE"])
            node = node.parent
        return None

    def _start(self, node: exp.Expr) -> int | None:
        if isinstance(node, exp.Placeholder | exp.Parameter) and node.this:
            return self.parameter(node.name)
        if isinstance(node, exp.Boolean | exp.Null | exp.Placeholder):
            return self._only_token(node)
        return own_place(node)

    def parameter(self, name: str) -> int | None:
        """The offset of a parameter, the first of its name."""
        for sigil, word in zip(self.tokens, self.tokens[1:], strict=False):
            if word.text == name and sigil.token_type in (TokenType.COLON, TokenType.PARAMETER):
                return sigil.start
        return None

    def parameter_names(self) -> tuple[str, ...]:
        """The names of all parameters, in the order in which they are written."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        found = [word.text for sigil, word in pairs if sigil.token_type == TokenType.COLON and _NAME.match(word.text)]
        return tuple(dict.fromkeys(found))

    def _only_token(self, node: exp.Expr) -> int | None:
        """The offset of a constant that sqlglot keeps no offset for, where it is written once."""
        kind = TokenType.NULL if isinstance(node, exp.Null) else TokenType.PLACEHOLDER
        if isinstance(node, exp.Boolean):
            kind = TokenType.TRUE if node.this else TokenType.FALSE
        found = [token.start for token in self.tokens if token.token_type == kind]
        return found[0] if len(found) == 1 else None

    def keyword(self, words: Iterable[str], before: int | None = None) -> int | None:
        """The offset of one of these keywords: the least nested one, or the last one before an offset.

        A keyword is a token, or two with a space between them.
        """
        wanted = {word.upper() for word in words}
        found, depth = [], 0
        for token, follower in zip_longest(self.tokens, self.tokens[1:]):
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            texts = (token.text.upper(), f"{token.text} {follower.text if follower else ''}".upper())
            if wanted.intersection(texts) and token.token_type != TokenType.STRING:
                found.append((depth, token.start))
        if before is not None:
            return max((start for _, start in found if start < before), default=None)
        return min(found)[1] if found else None

    def query(self, node: exp.Expr) -> int | None:
        """The offset of the SELECT of a query."""
        start = self.at(node)
        keyword = None if start is None else self.keyword(["SELECT"], before=start)
        return start if keyword is None else keyword

    def previous(self, offset: int) -> Token | None:
        """The token that ends before an offset."""
        return next((token for token in reversed(self.tokens) if token.end < offset), None)

    def next(self, offset: int) -> Token | None:
        """The token that starts after an offset."""
        return next((token for token in self.tokens if token.start > offset), None)

    def broken(self, message: str, position: int | None, instead: str = "") -> ParseError:
        return self._error(ParseError, message, position, instead)

    def unsupported(self, message: str, place: exp.Expr | int | None, instead: str) -> UnsupportedError:
        return self._error(UnsupportedError, message, place, instead)

    def unknown(self, message: str, place: exp.Expr | int | None, instead: str = "") -> UnknownNameError:
        return self._error(UnknownNameError, message, place, instead)

    def _error(self, kind: type[_Error], message: str, place: exp.Expr | int | None, instead: str) -> _Error:
        position = self.at(place) if isinstance(place, exp.Expr) else place
        if self.origin is None:
            return kind(message, text=self.text, position=position, instead=instead)
        place_in_origin = None if position is None else self.origin.offset(position)
        return kind(message, text=self.origin.text, position=place_in_origin, instead=instead)


def is_set(value: object) -> bool:
    """Whether an argument of a sqlglot node says something."""
    return value is not None and value is not False and value != [] and value != ""


def refuse_other_arguments(source: SqlText, node: exp.Expr, handled: Container[str], instead: str) -> None:
    """Refuses a node that carries anything besides the handled arguments: nothing is dropped silently."""
    for name, value in node.args.items():
        if name not in handled and is_set(value):
            nodes = [value] if isinstance(value, exp.Expr) else value if isinstance(value, list) else []
            place = next((part for part in nodes if isinstance(part, exp.Expr)), node)
            word = _WORDS.get(name) or name.strip("_").replace("_", " ").upper()
            start, instead = source.at(place), _INSTEAD.get(name, instead)
            keyword = None if start is None else source.keyword([word], before=start)
            raise source.unsupported(f"{word} is not supported here", start if keyword is None else keyword, instead)


def parameter_refusal(source: SqlText, node: exp.Expr) -> QueryError:
    """The refusal of a parameter in a place where there cannot be one, or whose name is a number."""
    if node.name.isdigit():
        return source.unsupported(f"the parameter ${node.name} has a number for a name", node, NAMED)
    if isinstance(node, exp.Parameter) and node.name:
        return source.unsupported(f"a parameter is not written @{node.name}", node, NAMED)
    name = f":{node.name}" if node.this else "?"
    instead = "compare it for equality with a column, as in WHERE column = :name"
    return source.unsupported(f"the parameter {name} is not allowed here", node, instead)


def read_statements(
    text: str,
    starts: Container[str],
    instead: str,
    origin: Origin | None = None,
    functions: Mapping[str, Function] = MappingProxyType({}),
    *,
    has_defaults: bool = False,
) -> tuple[SqlText, list[exp.Expr]]:
    """The statements of a text, each of which must begin with one of the keywords in `starts`.

    sqlglot's own failures, and nesting that exhausts the stack, become `ParseError`s. Parameters may have defaults if
    `has_defaults`.
    """
    source = SqlText(text, tokenize(text), origin, functions, parsed=text)
    if has_defaults:
        parsed, tokens, defaults = without_defaults(text, source.tokens)
        source = replace(source, tokens=tokens, parsed=parsed, defaults=defaults)
    previous = TokenType.SEMICOLON
    for token in source.tokens:
        begins = previous == TokenType.SEMICOLON and token.token_type != TokenType.SEMICOLON
        if begins and token.text.upper() not in starts:
            raise source.unsupported(f"a statement cannot begin with {token.text!r}", token.start, instead)
        previous = token.token_type
    return source, [statement for statement in _parse(source, instead) if statement is not None]


def tokenize(text: str, dialect: str | type[sqlglot.Dialect] = DIALECT) -> tuple[Token, ...]:
    """The tokens of a text."""
    try:
        return tuple(sqlglot.tokenize(text, read=dialect))
    except Exception as error:
        reason = "a string, a quoted name or a comment does not end"
        raise ParseError(reason, text=text, position=_unclosed(text), instead="close it") from error


def _unclosed(text: str) -> int | None:
    """The offset of the first quote that nothing closes."""
    position = 0
    while position < len(text):
        quote = text[position]
        if quote in "'\"`":
            end = position + 1
            while end < len(text) and text[end] != quote:
                end += 2 if text[end] == "\\" and quote != "`" else 1
            if end >= len(text):
                return position
            position = end
        position += 1
    return None


def parse_tokens(source: SqlText, tokens: Sequence[Token], instead: str, dialect: type[sqlglot.Dialect]) -> exp.Expr:
    """The one statement that some tokens are; the places of its parts are those of the whole text."""
    parsed = _parsed(source, lambda: dialect().parser().parse(list(tokens), source.text), instead)
    statements = [statement for statement in parsed if statement is not None]
    if len(statements) != 1:
        raise source.broken("this is not one statement", tokens[0].start if tokens else None, instead)
    return statements[0]


def _parse(source: SqlText, instead: str) -> list[exp.Expr | None]:
    text = _without_window_calls(source.parsed)
    if text == source.text:  # its tokens are there already
        parser = sqlglot.Dialect.get_or_raise(DIALECT).parser()
        return _parsed(source, lambda: parser.parse(list(source.tokens), text), instead)
    return _parsed(source, lambda: sqlglot.parse(text, read=DIALECT), instead)


def _without_window_calls(text: str) -> str:
    """The text with another word of as many letters for Spark's function window(ts, ...), which sqlglot takes for the
    WINDOW clause where it stands in GROUP BY."""
    if "window" not in text.lower():
        return text
    for token, following in pairwise(tokenize(text)):
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            text = f"{text[: token.start]}{WINDOW_CALL}{text[token.end + 1 :]}"
    return text


def _parsed(source: SqlText, parse: Callable[[], Iterable[exp.Expr | None]], instead: str) -> list[exp.Expr | None]:
    try:
        found = list(parse())
    except SqlglotParseError as error:
        if (template := _template(source)) is not None:
            raise source.broken("this is a template, not SQL", template, _COMPILED) from error
        message, offset = _blame(source, error.errors[0] if error.errors else {})
        raise source.broken(message, offset, advice(source.tokens, offset) or instead) from error
    except RecursionError:
        raise source.broken("the SQL is nested too deeply", None, "use fewer parentheses") from None
    except Exception as error:
        raise source.broken("the text is not SQL: its parser gave up", None, instead) from error
    if any(_is_deep(each) for each in found if each is not None):
        raise source.broken("the SQL is nested too deeply", None, "store part of a long expression as a column")
    return found


_DEEPEST = 600
"""The levels of a syntax tree that functions which call themselves can walk; a + b + c has one for each sign."""


def _is_deep(node: exp.Expr) -> bool:
    level = [node]
    for _ in range(_DEEPEST):
        level = [child for each in level for child in each.iter_expressions()]
        if not level:
            return False
    return True


_COMPILED = "give the SQL that dbt compile makes of it, or write names of tables and views in place of {{ ref(...) }}"


def _template(source: SqlText) -> int | None:
    """The offset of the first `{{` or `{%` that is not inside a string, as templates of dbt have them."""
    pairs = zip(source.tokens, source.tokens[1:], strict=False)
    braces = (a.start for a, b in pairs if a.text == b.text == "{" and b.start == a.start + 1)
    blocks = (token.start for token in source.tokens if token.token_type == TokenType.BLOCK_START)
    return min((*braces, *blocks), default=None)


def _blame(source: SqlText, details: dict[str, object]) -> tuple[str, int | None]:
    """A message and an offset: sqlglot gives the line and last column of the token to blame, as tokens have them."""
    place = (details.get("line"), details.get("col"))
    token = next((token for token in source.tokens if (token.line, token.col) == place), None)
    if token is None:
        return "the text is not SQL", None
    if str(details.get("description")).startswith("Required keyword"):
        return f"something is missing near {token.text!r}", token.start
    if token.text.lower() in TYPES:
        return f"unknown type {token.text!r}", token.start
    if str(details.get("description")).startswith("Expecting"):
        return f"{details['description']} near {token.text!r}".replace("Expecting", "expected"), token.start
    return f"{token.text!r} is not expected here", token.start
