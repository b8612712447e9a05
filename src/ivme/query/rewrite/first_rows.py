"""The first rows of a request: `WHERE customer = :c ORDER BY amount DESC LIMIT 10`.

The equalities leave the query. What they compare are hidden columns of its rows, and the groups of an ordered map: a
request reads the first rows of its group, and sorts nothing. That is for queries over one table, whose rows without
parameters are no more than the table's; those of a join may be many more, and are sorted for each request.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ivme.query.order import HIDDEN, Order, Ranges
from ivme.query.rewrite.clauses import condition_of, is_aggregated, own_columns, set_where
from ivme.query.rewrite.parameters import equality
from ivme.query.rewrite.script import aliased
from ivme.query.sql_text import SqlText, is_set


def take_first_rows(source: SqlText, node: exp.Select, order: Order | None) -> tuple[exp.Expr, Order | None]:
    """The query without its parameters, and an order that finds the rows of a request; else what was given."""
    given = [(condition, equality(condition)) for condition in condition_of(node)]
    pairs = [pair for _, pair in given if pair is not None]
    names = [placeholder.name for _, placeholder, _ in pairs]
    is_cut = order is not None and not order.is_whole
    if order is None or not is_cut or not names or not _is_simple(source, node, names):
        return node, order
    if any(next(own_columns(expression), None) is None for expression, _, _ in pairs):
        return node, order
    made = node.copy()
    set_where(made, [condition.copy() for condition, pair in given if pair is None])
    equal = [(name, hide(made, expression)) for name, (expression, _, _) in zip(names, pairs, strict=True)]
    if is_aggregated(made):
        keys = [expression.copy() for expression, _, _ in pairs]
        made.set("group", exp.Group(expressions=[*made.args["group"].expressions, *keys]))
    groups = tuple(column for _, column in equal)
    return made, replace(order, groups=groups, ranges=Ranges(tuple(equal)))


def _is_simple(source: SqlText, node: exp.Select, names: list[str]) -> bool:
    """Whether it reads one table, and has parameters nowhere but in equalities of WHERE, each once."""
    start = node.args.get("from_")
    is_one_table = start is not None and isinstance(start.this, exp.Table) and not start.this.args.get("joins")
    clauses = ("joins", "with_", "distinct", "qualify", "laterals")
    everywhere = [each.name for each in node.find_all(exp.Placeholder)]
    is_given_once = sorted(everywhere) == sorted(names) and len(set(names)) == len(names)
    is_plain = not source.lists and not any(default.parameter in names for default in source.defaults)
    has_inner = any(isinstance(each, exp.Query | exp.Window) for each in node.walk() if each is not node)
    group = node.args.get("group")
    is_grouped = not is_aggregated(node) or (
        group is not None and not any(is_set(value) for name, value in group.args.items() if name != "expressions")
    )
    plain_clauses = not any(is_set(node.args.get(clause)) for clause in clauses)
    return is_one_table and plain_clauses and is_given_once and is_plain and not has_inner and is_grouped


def hide(select: exp.Select, expression: exp.Expr) -> str:
    """The name of a column that is there for requests, and that readers do not see."""
    name = f"{HIDDEN} at {len(select.expressions)}"
    select.append("expressions", aliased(expression.copy(), name))
    return name
