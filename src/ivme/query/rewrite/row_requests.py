"""Window functions of the rows that a request names: the rank of one row, without the ranks of all others.

    SELECT id, score, RANK() OVER (ORDER BY score DESC) AS place FROM players QUALIFY id = :id

The same with a SELECT around it, `SELECT * FROM (...) WHERE id = :id`, also by WITH. The equalities leave the query;
what they compare are hidden columns of its rows, by which a request finds them. Their values come from their positions
in an ordered map, so that no value is stored: a batch changes as many entries of the map as rows.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ivme.query.order import Item, Order, Ranges
from ivme.query.rewrite.clauses import aggregates_in, condition_of, is_aggregated, own_columns, own_nodes
from ivme.query.rewrite.first_rows import hide
from ivme.query.rewrite.order import has_limit
from ivme.query.rewrite.parameters import equality
from ivme.query.rewrite.script import aliased
from ivme.query.rewrite.windows import Windowed, has_windows, is_plain_item, is_star, take_windows, with_items
from ivme.query.sql_text import SqlText, is_set
from ivme.query.windows import WINDOW

_CLAUSES = ("joins", "group", "having", "distinct", "qualify", "windows", "laterals", "limit", "offset", "order")


def take_row_request(source: SqlText, node: exp.Select) -> tuple[exp.Select, Order] | None:
    """The rows of a query without its windows and parameters, and an order that answers requests; None if it is not so.

    It has one kind of windows, whose values are found by position, and its parameters are in equalities alone.
    """
    select = node if has_windows(node) else _inlined(node)
    if select is None or has_limit(select) or is_set(select.args.get("distinct")):
        return None
    items = {item.alias_or_name.lower(): item.unalias() for item in select.expressions if not is_star(item)}
    pairs = [equality(with_items(each, items)) for each in condition_of(select, "qualify")]
    found = [(expression.unnest(), placeholder.name) for expression, placeholder, _ in filter(None, pairs)]
    if not found or len(found) < len(pairs) or not _is_given_once(source, node, [name for _, name in found]):
        return None
    if not all(_is_of_rows(expression, select) for expression, _ in found):
        return None
    plain = select.copy()
    plain.set("qualify", None)
    return _request(take_windows(source, plain), found)


def _request(taken: Windowed, found: list[tuple[exp.Expr, str]]) -> tuple[exp.Select, Order] | None:
    if len(taken.orders) != 1 or taken.conditions or not all(call.is_by_position for call in taken.orders[0].windows):
        return None
    items = [_item(each) for each in taken.items]
    if None in items:
        return None
    rows = taken.rows.copy()
    equal = tuple((name, hide(rows, expression)) for expression, name in found)
    shown = tuple(each for each in items if each is not None)
    return rows, replace(taken.orders[0], ranges=Ranges(equal, items=shown))


def _item(item: exp.Expr) -> Item | None:
    """What an item of SELECT shows; None if it computes something from windows."""
    if is_plain_item(item):
        return Item("", "")
    if is_star(item):
        return Item("*", "")
    inner = item.unalias().unnest()
    is_window = isinstance(inner, exp.Column) and inner.name.startswith(WINDOW)
    return Item(item.alias, inner.name) if is_window else None


def _is_given_once(source: SqlText, node: exp.Select, names: list[str]) -> bool:
    """Whether each parameter of the query is in one equality, and is neither a list nor has a default."""
    everywhere = [each.name for each in node.find_all(exp.Placeholder)]
    is_plain = not source.lists and not any(default.parameter in names for default in source.defaults)
    return is_plain and sorted(everywhere) == sorted(names) and len(set(names)) == len(names)


def _is_of_rows(expression: exp.Expr, select: exp.Select) -> bool:
    """Whether what is compared is a value of a row before its windows; of groups, one of their keys."""
    if any(isinstance(each, exp.Window | exp.Query) for each in own_nodes(expression)):
        return False
    if aggregates_in(expression) or next(own_columns(expression), None) is None:
        return False
    group = select.args.get("group")
    return not is_aggregated(select) or (group is not None and expression in group.expressions)


def _inlined(node: exp.Select) -> exp.Select | None:
    """The query that `SELECT ... FROM (query) WHERE ...` reads, with these conditions as QUALIFY, and these items."""
    inner = _source(node)
    if (
        inner is None
        or not has_windows(inner)
        or is_set(inner.args.get("qualify"))
        or any(map(is_star, inner.expressions))
    ):
        return None
    known = {item.alias_or_name.lower(): item.unalias() for item in inner.expressions}
    if len(known) < len(inner.expressions) or not condition_of(node):
        return None
    items: list[exp.Expr] = []
    for item in node.expressions:
        if is_star(item):
            items += [each.copy() for each in inner.expressions]
        elif isinstance(item.unalias(), exp.Column) and item.unalias().name.lower() in known:
            items.append(aliased(known[item.unalias().name.lower()].copy(), item.alias_or_name))
        else:
            return None
    made = inner.copy()
    made.set("expressions", items)
    conditions = [_unqualified(each) for each in condition_of(node)]
    if any(column.name.lower() not in known for each in conditions for column in own_columns(each)):
        return None
    made.set("qualify", exp.Qualify(this=exp.and_(*(with_items(each, known) for each in conditions))))
    return made


def _unqualified(node: exp.Expr) -> exp.Expr:
    made = node.copy()
    for column in made.find_all(exp.Column):
        column.set("table", None)
    return made


def _source(node: exp.Select) -> exp.Select | None:
    """The SELECT that another one reads, and nothing else: a subquery, or the only query of its WITH."""
    start, given = node.args.get("from_"), node.args.get("with_")
    if start is None or any(is_set(node.args.get(clause)) for clause in _CLAUSES):
        return None
    read, query = start.this, None
    if isinstance(read, exp.Subquery) and given is None:
        query = read.this
    elif isinstance(read, exp.Table) and given is not None and len(given.expressions) == 1:
        (cte,) = given.expressions
        is_it = cte.alias.lower() == read.name.lower() and not read.args.get("db")
        query = cte.this if is_it and not given.args.get("recursive") and not cte.args["alias"].columns else None
    alias = read.args.get("alias")
    has_columns = alias is not None and bool(alias.args.get("columns"))
    has_joins = bool(read.args.get("joins") or read.args.get("pivots"))
    return query if isinstance(query, exp.Select) and not has_columns and not has_joins else None
