"""What sqlglot forgives and SQL does not: a text with a gap in it is refused, not completed by a guess."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.sql_text import SqlText

_COMPLETE = "add what is missing there, or remove what is left over"
_OPENS = {
    TokenType.L_PAREN,
    TokenType.SELECT,
    TokenType.DISTINCT,
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.ON,
    TokenType.GROUP_BY,
    TokenType.SEMICOLON,
}
_CLOSES = {
    TokenType.R_PAREN,
    TokenType.COMMA,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.ON,
    TokenType.USING,
    TokenType.JOIN,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.UNION,
    TokenType.SEMICOLON,
}


_NAMES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Alias: ("alias",),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Join: ("using",),
    exp.Table: ("this", "db", "catalog"),
    exp.TableAlias: ("this", "columns"),
}
"""The arguments of sqlglot's nodes that must be names: it takes parameters, literals and functions there too."""


def refuse_odd_names(source: SqlText, statements: list[exp.Expr]) -> None:
    """Refuses what is not a name in place of one. Stars and table functions are checked where they are read."""
    for node in (node for statement in statements for node in statement.walk()):
        for argument in _NAMES.get(type(node), ()):
            value = node.args.get(argument)
            elsewhere = (exp.Star, exp.Func) if argument == "this" and not isinstance(node, exp.TableAlias) else ()
            for part in value if isinstance(value, list) else [value]:
                if part is not None and not isinstance(part, (exp.Identifier, *elsewhere)):
                    place = part if isinstance(part, exp.Expr) else node
                    raise source.unsupported("a name is expected here", place, "write a plain or a quoted `name`")


_NEEDS_OPERANDS = frozenset(
    {
        *(TokenType.COMMA, TokenType.ALIAS, TokenType.GROUP_BY, TokenType.PLUS, TokenType.AND, TokenType.OR),
        *(TokenType.STAR, TokenType.DOT, TokenType.USING),
    }
)
"""What `_has_gap` looks at."""


def refuse_gaps(source: SqlText, statements: list[exp.Expr]) -> None:
    """Refuses commas, dots, +, AND, OR, AS, USING, GROUP BY, BETWEEN, CASE and * that miss an operand."""
    tokens = source.tokens
    for index, token in enumerate(tokens):
        if token.token_type not in _NEEDS_OPERANDS:
            continue
        before = tokens[index - 1].token_type if index else TokenType.SEMICOLON
        if before == TokenType.R_PAREN and _is_behind_distinct_on(tokens, index):
            before = TokenType.DISTINCT
        after = tokens[index + 1].token_type if index + 1 < len(tokens) else TokenType.SEMICOLON
        if _has_gap(token, before, after, tokens[index + 2 : index + 3]):
            raise source.broken(f"something is missing near {token.text!r}", token.start, _COMPLETE)
    for word, kind, nodes in (
        ("BETWEEN", TokenType.AND, (exp.And, exp.Between)),
        ("CASE", TokenType.THEN, (exp.Case,)),
    ):
        written = sum(token.token_type == kind for token in tokens)
        read = sum(len(node.args.get("ifs") or (1,)) for statement in statements for node in statement.find_all(*nodes))
        if kind == TokenType.AND:
            frames = (frame for statement in statements for frame in statement.find_all(exp.WindowSpec))
            read += sum(frame.args.get("end") is not None for frame in frames)
        if written != read:
            raise source.broken(f"something is missing near {word!r}", source.keyword([word]), _COMPLETE)


def _is_behind_distinct_on(tokens: Sequence[Token], end: int) -> bool:
    """Whether the tokens before a place are DISTINCT ON (...), behind which the items of SELECT begin."""
    depth = 0
    for index in range(end - 1, 1, -1):
        kind = tokens[index].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth <= 0:
            is_open = kind == TokenType.L_PAREN and depth == 0
            words = [tokens[index - 2].token_type, tokens[index - 1].token_type]
            return is_open and words == [TokenType.DISTINCT, TokenType.ON]
    return False


def _has_gap(token: Token, before: TokenType, after: TokenType, later: tuple[Token, ...]) -> bool:
    match token.token_type:
        case TokenType.COMMA | TokenType.ALIAS:
            return before in _OPENS or after in _CLOSES
        case TokenType.GROUP_BY | TokenType.PLUS:
            return after in _CLOSES or after == TokenType.SELECT
        case TokenType.AND | TokenType.OR:
            return before in _OPENS
        case TokenType.STAR:
            return before not in _OPENS | {TokenType.DOT} and after in _CLOSES
        case TokenType.DOT:
            return (before in _OPENS and after != TokenType.NUMBER) or after in _CLOSES
        case TokenType.USING:
            return after != TokenType.L_PAREN or any(follower.token_type == TokenType.R_PAREN for follower in later)
    return False
