"""What a node that a pass made stands for in the user's text, so that messages use the user's words and places.

A pass that puts a column of a block in the place of `MAX(d)` or of a subquery marks the column with what it replaces:
its first character in the text, and its text. Copies of a node keep the marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import ErrorLevel, exp

from ivme.query.expression import Call, ColumnRef, Expression

_DIALECT = "spark"
_AT, _WRITTEN = "written at", "written"


def in_place_of(made: exp.Expr, node: exp.Expr, words: str = "") -> exp.Expr:
    """The made node, marked as what another one of the text has become; `words` if it is to be called otherwise."""
    place = place_of(node)
    if place is not None:
        made.meta[_AT] = place
    if words or not _is_constant(node):
        made.meta[_WRITTEN] = words or spelled(node)
    return made


def name_columns(node: exp.Expr, word_at: Callable[[int], str]) -> None:
    """Calls the columns of a query by the words of another text, at the offsets that they have in this one."""
    for column in node.find_all(exp.Column):
        place = place_of(column)
        word = "" if place is None else word_at(place)
        if word:
            column.meta[_WRITTEN] = word


def place_of(node: exp.Expr) -> int | None:
    """The offset of the first character of what a node and its parts stand for; None if they tell none."""
    return min((start for part in marked_parts(node) if (start := own_place(part)) is not None), default=None)


def own_place(node: exp.Expr) -> int | None:
    """The offset that a node itself has: of what it replaced, or of its own name."""
    place = node.meta.get(_AT, node.meta.get("start"))
    return place if isinstance(place, int) else None


def marked_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and its parts, but not the parts of those that have a place of their own in the text."""
    yield node
    if _AT not in node.meta:
        for child in node.iter_expressions():
            yield from marked_parts(child)


def spelled(node: exp.Expr) -> str:
    """The SQL of a node in the user's words.

    >>> from sqlglot import parse_one
    >>> tests = parse_one("g.max_d > 3"), parse_one("MAX(d)")
    >>> _ = in_place_of(tests[0].this, tests[1])
    >>> spelled(tests[0])
    'MAX(d) > 3'
    """
    if _WRITTEN in node.meta:
        return str(node.meta[_WRITTEN])
    if isinstance(node, exp.Column):
        return node.sql(dialect=_DIALECT, comments=False)
    words = node.copy().transform(_as_written, copy=False)
    return words.sql(dialect=_DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)


def in_words(expression: Expression, node: exp.Expr) -> tuple[Expression, dict[str, str]]:
    """The expression that a node became with columns as users write them, and what those are called inside."""
    words = {found.name.lower(): found.meta[_WRITTEN] for found in node.find_all(exp.Column) if _WRITTEN in found.meta}
    inside: dict[str, str] = {}

    def change(part: Expression) -> Expression:
        if isinstance(part, ColumnRef):
            word = words.get(part.name.lower(), part.name)
            inside[word] = part.name
            return ColumnRef(word)
        return replace(part, arguments=tuple(map(change, part.arguments))) if isinstance(part, Call) else part

    return change(expression), inside


def _as_written(node: exp.Expr) -> exp.Expr:
    return exp.Var(this=node.meta[_WRITTEN]) if _WRITTEN in node.meta else node


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)
