"""Expressions and conditions of rules: SQL over the variables, which become the columns that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from ivme.errors import QueryError
from ivme.query.rule_syntax import Words
from ivme.query.rule_tokens import Token
from ivme.query.sql import one_statement
from ivme.query.sql_aggregates import is_aggregate
from ivme.query.sql_text import Origin, is_set

Pieces = tuple[tuple[str, int | None], ...]
"""SQL in pieces, each with the place in the rule that it was made of."""

_SELECT = "SELECT "
_SYMBOLS = {"≤": "<=", "≥": ">=", "≠": "<>", "¬": "NOT ", "!": "NOT "}
_INSTEAD = "write a condition over variables, as in X < Y + 1"
_VALUES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.Literal)
"""What has a value that is not a truth value, whatever its operands are."""


@dataclass(frozen=True, slots=True)
class RuleExpression:
    """An expression as SQL; `variables` are its variables by the number of their piece.

    An equation `Z = ...` may bind its variable to the value of an expression over others.
    """

    words: Words
    pieces: Pieces
    variables: Mapping[int, Token]
    equation: tuple[Token, Words] | None

    def over(self, columns: Mapping[str, Pieces]) -> Pieces:
        """The SQL over columns, in which each variable keeps its own place."""
        made: list[tuple[str, int | None]] = []
        for number, piece in enumerate(self.pieces):
            token = self.variables.get(number)
            made += [piece] if token is None else [(text, token.position) for text, _ in columns[token.value]]
        return tuple(made)


def joined(pieces: Iterable[tuple[str, int | None]], text: str) -> tuple[str, Origin]:
    """The SQL of pieces, and where in the rule it is from."""
    parts, marks, length = list[str](), list[tuple[int, int]](), 0
    for part, position in pieces:
        if position is not None:
            marks.append((length, position))
        parts.append(part)
        length += len(part)
    return "".join(parts), Origin(text, tuple(marks))


def read_expression(words: Words, text: str, *, is_condition: bool = False) -> RuleExpression:
    """What the words of an expression say."""
    pieces: list[tuple[str, int | None]] = []
    end = words[0].position
    for word in words:
        pieces.append((" " if word.position > end else "", None))
        pieces.append((_as_sql(word), word.position))
        end = word.position + len(word.text)
    sql, origin = joined([(_SELECT, None), *pieces], text)
    node = _only_expression(sql, origin)
    _refuse_queries(node, origin)
    if is_condition and isinstance(node, _VALUES):
        raise QueryError("this is not a condition", text=text, position=words[0].position, instead=_INSTEAD)
    starts, offset = dict[int, int](), len(_SELECT)
    for number, (part, position) in enumerate(pieces):
        if position is not None:
            starts[offset] = number
        offset += len(part)
    columns = [found.this for found in node.find_all(exp.Column)]
    numbers = [starts[found.meta["start"]] for found in columns]
    variables = {number: words[number // 2] for number in numbers}
    return RuleExpression(words, tuple(pieces), variables, _equation(node, words))


def _as_sql(word: Token) -> str:
    if word.kind == "quoted":
        return "`" + word.value.replace("`", "``") + "`"
    if word.kind == "string":
        return "'" + word.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return _SYMBOLS.get(word.text, word.text)


def _only_expression(sql: str, origin: Origin) -> exp.Expr:
    try:
        source, node = one_statement(sql, origin)
    except QueryError as error:
        raise type(error)(error.message, text=origin.text, position=error.position, instead=_INSTEAD) from None
    others = [name for name, value in node.args.items() if name != "expressions" and is_set(value)]
    items = node.expressions
    if others or len(items) != 1 or isinstance(items[0], exp.Alias | exp.Star) or not isinstance(node, exp.Select):
        raise source.broken("this is not a condition or an expression", len(_SELECT), _INSTEAD)
    found: exp.Expr = items[0]
    return found


def _refuse_queries(node: exp.Expr, origin: Origin) -> None:
    """Refuses what an expression of SQL may have, and one of a rule may not."""
    for each in node.walk():
        place = origin.offset(int(each.meta.get("start", len(_SELECT))))
        if isinstance(each, exp.Query):
            message, instead = "a subquery in a rule", "write an atom, or a negated one: not R(A, B)"
        elif isinstance(each, exp.Placeholder | exp.Parameter):
            message, instead = "a parameter in a rule", "name a variable, and list it among the inputs: Q(B | A)"
        elif isinstance(each, exp.Window) or is_aggregate(each) or isinstance(each, exp.AggFunc):
            message = "an aggregate in the body of a rule"
            instead = "make the rule with the aggregate in its head a view, and read that view"
        elif isinstance(each, exp.Column) and (each.args.get("table") or not isinstance(each.this, exp.Identifier)):
            message, instead = "a name with a dot, or *, in an expression of a rule", "name variables of the body"
        else:
            continue
        raise QueryError(message, text=origin.text, position=place, instead=instead)


def _equation(node: exp.Expr, words: Words) -> tuple[Token, Words] | None:
    """The variable alone on one side of an equation, and the other side."""
    if not isinstance(node, exp.EQ) or len(words) < 3:
        return None
    if isinstance(node.this, exp.Column) and words[1].word in ("=", "=="):
        return words[0], words[2:]
    if isinstance(node.expression, exp.Column) and words[-2].word in ("=", "=="):
        return words[-1], words[:-2]
    return None
