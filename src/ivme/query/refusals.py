"""All that is refused in a SQL text: what a refusal points at is cut out, and the rest is read again.

The author of a long query then knows at once what there is to change. What is cut out is the smallest item around the
place: an item of SELECT becomes NULL, a condition TRUE, and a clause is left out. Where the place lies in FROM, or what
is left is refused for what was cut out, nothing more is known, and the search ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from ivme.errors import IvmeError, QueryError, UnknownNameError, UnsupportedError
from ivme.query.functions import Function
from ivme.query.model import Table
from ivme.query.rewrite.clock import with_clock_table
from ivme.query.shape import script_shape
from ivme.query.sql import one_statement
from ivme.query.sql_script import script_of
from ivme.query.sql_text import SqlText

_MOST = 20
"""As many refusals of one text are told."""

_CLAUSES = ("qualify", "windows", "laterals", "pivots", "sample", "sort", "cluster", "distribute", "hint", "locks")
_CONDITIONS = ("where", "having", "qualify")


def with_all_others(
    error: QueryError, tables: tuple[Table, ...], functions: Mapping[str, Function] = MappingProxyType({})
) -> QueryError:
    """The error of a text, with all others that the text would have without what it is about."""
    source, node = one_statement(error.text, functions=functions)
    if any(clause.args.get("recursive") for clause in node.find_all(exp.With)):
        return error  # a recursion is refused as a whole
    found: list[QueryError] = []
    gone: set[str] = set()
    refused: QueryError | None = error
    for _ in range(_MOST):
        item = None if refused is None else _item_at(source, node, refused.position)
        if refused is None or item is None:
            break
        if refused is not error and not _is_about(source, refused, item, gone):
            found.append(refused)
        gone |= _cut(item)
        refused = _refusal(source, node, tables)
    return error.with_others(tuple(sorted(found, key=lambda each: each.position or 0))) if found else error


def _refusal(source: SqlText, node: exp.Expr, tables: tuple[Table, ...]) -> QueryError | None:
    try:
        script = script_of(source, node.copy(), tables)
        script_shape(script, with_clock_table(tables, [each for _, each in script.selects]), "Q")
    except (UnsupportedError, UnknownNameError) as error:
        return error
    except IvmeError:
        return None  # what is left makes no sense, for which its author is not to blame
    return None


def _item_at(source: SqlText, node: exp.Expr, position: int | None) -> exp.Expr | None:
    """The smallest item around a place that can be cut out."""
    if position is None:
        return None
    spans = ((_span(source, item), item) for item in _items(node))
    around = [
        (end - start, number, item) for number, ((start, end), item) in enumerate(spans) if start <= position <= end
    ]
    return min(around)[2] if around else None


def _cut(item: exp.Expr) -> set[str]:
    """Takes an item out of its query; the name under which others may have used it."""
    if item.arg_key in _CLAUSES:
        item.pop()
    elif isinstance(item.parent, exp.Qualify):
        item.parent.pop()
    elif isinstance(item.parent, exp.Select):
        name = item.alias_or_name
        if [each.alias_or_name.lower() for each in item.parent.expressions].count(name.lower()) > 1:
            name = ""  # one of two columns of that name
        nothing = exp.cast(exp.Null(), "int")
        item.replace(exp.alias_(nothing, name, quoted=True) if name else nothing)
        return {name.lower()}
    else:
        item.replace(exp.true())
    return set()


def _is_about(source: SqlText, error: QueryError, item: exp.Expr, gone: set[str]) -> bool:
    """Whether an error blames a column that was cut out where it is made."""
    columns = [column for column in item.find_all(exp.Column) if column.name.lower() in gone]
    spans = [_span(source, column) for column in columns]
    return any(start <= (error.position or 0) <= end for start, end in spans)


def _items(node: exp.Expr) -> Iterator[exp.Expr]:
    """What can be cut out: items of SELECT, conditions and clauses, of all queries in a query."""
    for select in node.find_all(exp.Select):
        yield from select.expressions
        for clause in _CLAUSES:
            value = select.args.get(clause)
            yield from value if isinstance(value, list) else [] if value is None else [value]
        holders = [select.args.get(clause) for clause in _CONDITIONS]
        conditions = [holder.this for holder in holders if holder is not None]
        joins = [join.args.get("on") for join in select.args.get("joins") or ()]
        for condition in (*conditions, *(each for each in joins if each is not None)):
            yield from _conditions(condition)


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.And | exp.Or | exp.Paren | exp.Not):
        for child in node.iter_expressions():
            yield from _conditions(child)
    else:
        yield node


def _span(source: SqlText, node: exp.Expr) -> tuple[int, int]:
    """From the first to the last character of a node, with the word that a clause begins with."""
    ends = [each.meta["end"] for each in node.walk() if isinstance(each.meta.get("end"), int)]
    start = source.at(node) if ends else None
    if start is None:
        return (0, -1)
    before = source.previous(start) if node.arg_key in _CLAUSES else None
    return (start if before is None else before.start, max(ends))
