"""Where a list may stand: `x IN (:list)` where the rows of a request are those of its members, one member at a time.

Each row of the view has one x then. Aggregates that run across members are put together from those of each member; if
x is among the keys of GROUP BY, there is nothing to put together.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.clauses import is_aggregated
from ivme.query.rewrite.from_clause import parts_of_join
from ivme.query.rewrite.grouping_sets import computes_with_groups, grouping_of
from ivme.query.sql_text import SqlText, is_set

_AND = "write it in the WHERE of the view's own SELECT, joined to the other conditions by AND"
_BETWEEN = (exp.And, exp.Paren, exp.Where, exp.Subquery, exp.From, exp.CTE, exp.With)
"""What may stand between a list and the SELECT that is the view."""


def check_list(source: SqlText, root: exp.Expr, name: str, equality: exp.Expr) -> bool:
    """Whether aggregates run across the members of a list; refuses a list in a place where its rows are not a union."""
    uses = [each for each in root.find_all(exp.Placeholder) if each.name == name]
    if len(uses) > 1:
        message = f"the list :{name} is used {len(uses)} times"
        raise source.unsupported(message, uses[0], "use one list for each comparison")
    view = root
    while isinstance(view, exp.Subquery):
        view = view.this
    node = equality.parent
    while node is not None and node is not view:
        if not isinstance(node, _BETWEEN) and not _is_inner_join(node) and not _is_plain(node, root):
            instead = "filter the rows when reading" if isinstance(node, exp.Not) else _AND
            raise source.unsupported(f"the list :{name} is not supported in this place", uses[0], instead)
        node = node.parent
    if not isinstance(view, exp.Select):
        raise source.unsupported(f"the list :{name} is not supported in this place", uses[0], _AND)
    return _is_across(source, view, name, equality)


def _is_inner_join(node: exp.Expr) -> bool:
    return isinstance(node, exp.Join) and not node.side and node.kind not in ("SEMI", "ANTI")


def _is_plain(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether a SELECT inside only passes rows on, and is read once."""
    if not isinstance(node, exp.Select) or is_aggregated(node) or node.args.get("distinct") is not None:
        return False
    limited = any(is_set(node.args.get(clause)) for clause in ("limit", "offset"))
    cte = node.parent if isinstance(node.parent, exp.CTE) else None
    readers = 1 if cte is None else sum(t.name.lower() == cte.alias.lower() for t in root.find_all(exp.Table))
    holder = node.parent.parent if isinstance(node.parent, exp.Subquery) else None
    in_from = cte is not None or isinstance(holder, exp.From) or (holder is not None and _is_inner_join(holder))
    return not limited and readers == 1 and in_from and _is_beside_inner_joins(node, cte, root)


def _is_beside_inner_joins(node: exp.Expr, cte: exp.Expr | None, root: exp.Expr) -> bool:
    """Whether no outer join may pad the rows of a query in FROM."""
    selects = [node.parent_select] if cte is None else list(root.find_all(exp.Select))
    joins = [join for select in selects if select is not None for join in select.args.get("joins") or ()]
    nested = [join for select in selects if select is not None for join in select.find_all(exp.Join)]
    return not any(join.side for join in (*joins, *nested)) and parts_of_join(node) is None


def _is_across(source: SqlText, view: exp.Select, name: str, equality: exp.Expr) -> bool:
    if not is_aggregated(view):
        return False
    _, sets = grouping_of(view)
    subject = equality.this.unnest()
    if equality.parent_select is view and all(any(_same(subject, key) for key in keys) for keys in sets):
        return False
    if computes_with_groups(view):
        message = f"what is computed from aggregates runs across the members of the list :{name}"
        instead = "select the aggregates alone, and compute with them when reading; or group by what the list is of"
        raise source.unsupported(message, equality.expression, instead)
    return True


def _same(left: exp.Expr, right: exp.Expr) -> bool:
    """Whether two expressions are one; a column may have its table or not."""
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        tables = {left.table.lower(), right.table.lower()} - {""}
        return left.name.lower() == right.name.lower() and len(tables) <= 1
    return exact_text(left) == exact_text(right)
