"""What the next literal of a rule's body is, by looking ahead: an atom, or a condition.

R(A, B) and f(A) < B begin alike. An atom is a name with its parentheses and nothing else, up to the next comma or the
end of the rule; a condition goes on with an operator or a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

from ivme.query.rule_tokens import Token

DOTS = (".", "·", "⋅")
ENDS = (*DOTS, ";")
"""What ends a rule."""

OPERATORS = ("+", "-", "*", "/", "%")
NEGATIONS = ("not", "!", "¬", "~")
_COMPARISONS = ("<", ">", "<=", ">=", "!=", "<>", "=", "==", "≤", "≥", "≠")
_WORDS = ("is", "in", "between", "like", "ilike", "rlike", "not")
"""Words that follow the first operand of a condition. AND and OR do too, but rather stand between atoms by mistake."""


def is_atom(tokens: Sequence[Token], index: int) -> bool:
    """Whether a literal is an atom."""
    after = _after_call(tokens, index)
    return after is not None and (tokens[after].kind == "end" or tokens[after].word in (",", *ENDS))


def is_condition(tokens: Sequence[Token], index: int) -> bool:
    """Whether a literal is a condition. What is neither that nor an atom is left to the messages about atoms."""
    token = tokens[index]
    if not token.is_name:
        return token.kind in ("number", "string") or token.word in ("(", "+", "-", *NEGATIONS)
    if token.word in ("not", "case"):
        return True
    after = _after_call(tokens, index) if tokens[index + 1].word in ("(", ".") else index + 1
    return after is not None and _goes_on(tokens, after)


def is_sign(token: Token) -> bool:
    """Whether a number with a sign stands where an operator may."""
    return token.kind == "number" and token.text[0] in "+-"


def _goes_on(tokens: Sequence[Token], after: int) -> bool:
    token = tokens[after]
    if token.word == "|":
        return tokens[after + 1].word == "|" and tokens[after + 1].position == token.position + 1
    return token.kind == "string" or is_sign(token) or token.word in (*_COMPARISONS, *OPERATORS, *_WORDS)


def _after_call(tokens: Sequence[Token], index: int) -> int | None:
    """The place after a name with its parentheses: R(A), db.R(A), closure(edge)(A, B); None if there is no such."""
    if not tokens[index].is_name:
        return None
    while tokens[index + 1].word == "." and tokens[index + 2].is_name:
        index += 2
    after: int | None = index + 1
    if tokens[index + 1].word != "(":
        return None
    while after is not None and tokens[after].word == "(":
        after = _after_parentheses(tokens, after)
    return after


def _after_parentheses(tokens: Sequence[Token], index: int) -> int | None:
    depth = 0
    for place in range(index, len(tokens)):
        depth += (tokens[place].word == "(") - (tokens[place].word == ")")
        if depth == 0:
            return place + 1
    return None
