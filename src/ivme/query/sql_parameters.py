"""What a text says about its parameters beside their names: `:city DEFAULT 'Zurich'`, and lists `x IN (:cities)`.

A default is blanked out of the text before that is parsed, as sqlglot does not know it, so that all places stay where
they are; a list becomes an equality, which holds for one member at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_SIGILS = (TokenType.COLON, TokenType.PARAMETER)
_TYPED = (TokenType.DATE, TokenType.TIMESTAMP)
_CONSTANTS = (TokenType.NUMBER, TokenType.STRING, TokenType.TRUE, TokenType.FALSE, TokenType.NULL)


@dataclass(frozen=True, slots=True)
class Default:
    """A default as it is written, between two offsets of the text."""

    parameter: str
    start: int
    end: int


def defaults_in(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Default]]:
    """The defaults among tokens: the places of DEFAULT and of the token behind the constant, and what they say.

    One without a constant is left for the parser, which refuses it.
    """
    for place, token in enumerate(tokens):
        if token.token_type != TokenType.DEFAULT or place < 2 or tokens[place - 2].token_type not in _SIGILS:
            continue
        end = place + 1
        kinds = [each.token_type for each in tokens[end : end + 2]]
        if len(kinds) == 2 and (
            (kinds[0] == TokenType.DASH and kinds[1] == TokenType.NUMBER)
            or (kinds[0] in _TYPED and kinds[1] == TokenType.STRING)
        ):
            end += 2
        elif kinds and kinds[0] in _CONSTANTS:
            end += 1
        else:
            continue
        name = tokens[place - 1].text
        yield place, end, Default(name, tokens[place + 1].start, tokens[end - 1].end + 1)


def without_defaults(text: str, tokens: tuple[Token, ...]) -> tuple[str, tuple[Token, ...], tuple[Default, ...]]:
    """The text with blanks in the place of defaults, its tokens without them, and the defaults."""
    kept = list(tokens)
    found: list[Default] = []
    for place, end, default in reversed(list(defaults_in(tokens))):
        start = tokens[place].start
        blank = "".join(each if each == "\n" else " " for each in text[start : default.end])
        text = text[:start] + blank + text[default.end :]
        del kept[place:end]
        found.insert(0, default)
    return text, tuple(kept), tuple(found)


def take_lists(statement: exp.Expr) -> tuple[exp.Expr, dict[str, exp.Expr]]:
    """The statement with equalities in the place of `x IN (:list)` and `x = ANY (:list)`, and these, by parameter."""
    found: dict[str, exp.Expr] = {}
    for node in list(statement.find_all(exp.In, exp.EQ)):
        parameter = _list(node)
        if parameter is not None:
            made = exp.EQ(this=node.this.copy(), expression=parameter.copy())
            node.replace(made)
            found[parameter.name] = made
    return statement, found


def _list(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.In):
        members = node.expressions
        single = len(members) == 1 and isinstance(members[0], exp.Placeholder) and members[0].this
        return members[0] if single else None
    side = node.expression
    inner = side.this.unnest() if isinstance(side, exp.Any) else None
    return inner if isinstance(inner, exp.Placeholder) and inner.this else None
