"""The clauses of a SELECT and what stands in them, without what belongs to the SELECTs inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.sql_aggregates import is_aggregate
from ivme.query.written import in_place_of

CONDITIONS = ("where", "having", "qualify")


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and all below it, but nothing of the queries below it; those themselves are yielded."""
    yield node
    if isinstance(node, exp.Query):
        return
    for child in node.iter_expressions():
        yield from own_nodes(child)


def own_nodes_of(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of all clauses of a SELECT, but for those of FROM and WITH."""
    for clause, value in select.args.items():
        if clause not in ("from_", "joins", "with_"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, exp.Expr):
                    yield from own_nodes(node)


def own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns that a node names itself."""
    return (found for found in own_nodes(node) if isinstance(found, exp.Column))


def aggregates_in(node: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates of an expression; those over a window are not aggregates of the SELECT."""
    if isinstance(node, exp.Window | exp.Query):
        return []
    if isinstance(node, exp.AggFunc | exp.Filter) or is_aggregate(node):
        return [node]
    return [found for child in node.iter_expressions() for found in aggregates_in(child)]


def is_count(node: exp.Expr) -> bool:
    """Whether an aggregate over no rows is 0, not NULL."""
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.Count | exp.CountIf | exp.ApproxDistinct | exp.RegrCount)


def or_of_no_rows(made: exp.Expr, aggregate: exp.Expr) -> exp.Expr:
    """The value of an aggregate where NULL stands for no rows: 0 for a count, and an empty array for ARRAY_AGG."""
    inner = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
    if isinstance(inner, exp.ArrayAgg | exp.ArrayUniqueAgg):
        return exp.Coalesce(this=made, expressions=[exp.Array(expressions=[])])
    return exp.Coalesce(this=made, expressions=[exp.Literal.number(0)]) if is_count(aggregate) else made


def is_null_of_none(aggregate: exp.Expr) -> bool:
    """Whether an aggregate over no rows is NULL."""
    made = exp.Null()
    return or_of_no_rows(made, aggregate) is made


def items_of(select: exp.Select) -> list[tuple[exp.Expr, exp.Expr]]:
    """The items of SELECT, each with its expression without its alias and parentheses."""
    return [(item, item.unalias().unnest()) for item in select.expressions]


def is_aggregated(select: exp.Select) -> bool:
    """Whether rows are grouped, by GROUP BY or by an aggregate."""
    having = select.args.get("having")
    return (
        select.args.get("group") is not None
        or having is not None
        or any(aggregates_in(item) for item in select.expressions)
    )


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND joins, from left to right, without parentheses.

    What every alternative of an OR demands is a condition of its own: `a AND b OR a AND c` is `a AND (b OR c)`.
    """
    if node is None:
        return []
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return _factored(node) if isinstance(node, exp.Or) else [node]


def _factored(node: exp.Or) -> list[exp.Expr]:
    alternatives = [conjuncts(each) for each in node.flatten()]
    texts = [{exact_text(each) for each in alternative} for alternative in alternatives]
    common = set.intersection(*texts)
    if not common:
        return [node]
    shared = [each for each in alternatives[0] if exact_text(each) in common]
    rest = [[each for each in alternative if exact_text(each) not in common] for alternative in alternatives]
    if not all(rest):
        return shared
    return [*shared, _joined(exp.Or, [_joined(exp.And, each) for each in rest])]


def _joined(connector: type[exp.Connector], conditions: list[exp.Expr]) -> exp.Expr:
    made = conditions[0].copy()
    for each in conditions[1:]:
        made = connector(this=made, expression=each.copy())
    return exp.Paren(this=made)


def condition_of(select: exp.Select, clause: str = "where") -> list[exp.Expr]:
    """The conditions of WHERE or HAVING."""
    found = select.args.get(clause)
    return [] if found is None else conjuncts(found.this)


def set_where(select: exp.Select, conditions: Sequence[exp.Expr]) -> None:
    """Makes the conditions the WHERE of a SELECT."""
    where = None
    for condition in conditions:
        where = condition if where is None else exp.And(this=where, expression=condition)
    select.set("where", None if where is None else exp.Where(this=where))


def replaced(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy in which nodes are replaced from the top, where `change` gives something else.

    What is put in keeps the place and the words of what it replaces, for messages.
    """
    copy = node.copy()
    holder = exp.Paren(this=copy)
    _replace_below(holder, change)
    made: exp.Expr = holder.this
    return made


def _replace_below(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> None:
    for child in list(node.iter_expressions()):
        made = change(child)
        if made is not None:
            child.replace(in_place_of(made, child))
        elif not isinstance(child, exp.Query):
            _replace_below(child, change)
