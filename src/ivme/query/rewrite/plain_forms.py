"""Forms of SQL that are another way to write what the passes know: the first pass over a statement.

SELECT /*+ BROADCAST(s) */ a FROM R WHERE (a, b) IN ((1, 2), (3, 4)) ORDER BY ALL
SELECT a FROM R WHERE (a = 1 AND b = 2 OR a = 3 AND b = 4) ORDER BY 1

Hints and MATERIALIZED say how to run a query, which ivme decides by itself; the rows are the same without them.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ivme.query.rewrite.pivot import without_pivots
from ivme.query.rewrite.unordered import refuse_unordered
from ivme.query.rewrite.with_scopes import one_scope
from ivme.query.sql_pairing import ASOF
from ivme.query.sql_text import SqlText
from ivme.query.written import in_place_of


def plain_forms(source: SqlText, statement: exp.Expr) -> exp.Expr:
    """A copy of a statement in plainer forms; what another system would do otherwise is refused."""
    made = statement.copy()
    for node in list(made.walk()):
        if isinstance(node, exp.Select):
            node.set("hint", None)
        if isinstance(node, exp.CTE):
            node.set("materialized", None)
        if isinstance(node, exp.Order):
            _spell_all(source, node)
        if isinstance(node, exp.Join):
            _refuse_odd_join(source, node)
        if isinstance(node, exp.Window):
            refuse_unordered(source, node)
        if isinstance(node, exp.Limit) and node.expressions:
            instead = "write ROW_NUMBER() OVER (PARTITION BY ...) <= n in QUALIFY"
            raise source.unsupported("LIMIT ... BY is not supported", node.expressions[0], instead)
        for change in _CONDITIONS:
            plainer = change(node)
            if plainer is not None:
                made = _replaced(made, node, plainer)
                break
    return one_scope(source, without_pivots(source, made))


def _replaced(root: exp.Expr, node: exp.Expr, made: exp.Expr) -> exp.Expr:
    node.replace(in_place_of(made, node))
    return made if node is root else root


def _refuse_odd_join(source: SqlText, join: exp.Join) -> None:
    """Joins that sqlglot reads in dialects of others, and whose rows are not those of the plain join."""
    kinds = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI", "STRAIGHT_JOIN")
    if join.method == ASOF:
        _take_asof(source, join)
        return
    odd = join.method if join.method not in ("", "NATURAL") else join.kind if join.kind not in kinds else ""
    if odd:
        position = source.keyword([odd], before=source.at(join.this))
        instead = "write JOIN ... ON with the rows that match, or a subquery that picks them"
        raise source.unsupported(f"{odd} JOIN is not supported", position, instead)
    if join.kind == "STRAIGHT_JOIN":
        join.set("kind", None)


def _take_asof(source: SqlText, join: exp.Join) -> None:
    """ASOF JOIN as a kind of LEFT JOIN, INNER if left rows without a partner are left out."""
    position = source.keyword([ASOF], before=source.at(join.this))
    if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER"):
        what = " ".join(each for each in (ASOF, join.side, join.kind) if each)
        instead = "write ASOF JOIN or ASOF LEFT JOIN"
        raise source.unsupported(f"{what} JOIN is not supported", position, instead)
    match, on = join.args.get("match_condition"), join.args.get("on")
    if match is not None:
        join.set("on", match if on is None else exp.And(this=on, expression=match))
        join.set("match_condition", None)
    if join.args.get("on") is None and not join.args.get("using"):
        raise source.unsupported("ASOF JOIN needs ON or USING", position, "write ON a.k = b.k AND a.ts >= b.ts")
    join.set("kind", None if join.side == "LEFT" else "INNER")
    join.set("side", "LEFT")


def _spell_all(source: SqlText, order: exp.Order) -> None:
    """ORDER BY ALL as the positions of all columns."""
    first = order.expressions[0].this if len(order.expressions) == 1 else None
    select = order.parent
    if not isinstance(first, exp.Var) or first.name.upper() != "ALL" or not isinstance(select, exp.Query):
        return
    while isinstance(select, exp.SetOperation):
        select = select.this.unnest()
    if not isinstance(select, exp.Select) or any(each.is_star for each in select.expressions):
        raise source.unsupported("ORDER BY ALL of a * is not supported", order, "name the columns")
    keys = []
    for number in range(1, len(select.expressions) + 1):
        key = order.expressions[0].copy()
        key.set("this", exp.Literal.number(number))
        keys.append(key)
    order.set("expressions", keys)


def _any_of_array(node: exp.Expr) -> exp.Expr | None:
    """`a = ANY(ARRAY[1, 2])` as `a IN (1, 2)`, and `a <> ALL(ARRAY[1, 2])` as `a NOT IN (1, 2)`."""
    array = None
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        array = node.expression.this.unnest()
    elif isinstance(node, exp.NEQ) and isinstance(node.expression, exp.Anonymous):  # sqlglot takes ALL for a function
        array = node.expression.expressions[0] if node.expression.name.upper() == "ALL" else None
    if not isinstance(array, exp.Array) or not array.expressions:
        return None
    found = exp.In(this=node.this.copy(), expressions=[each.copy() for each in array.expressions])
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)


def _rows_in_list(node: exp.Expr) -> exp.Expr | None:
    """`(a, b) IN ((1, 2), (3, 4))` as alternatives, each of equalities."""
    if not isinstance(node, exp.In) or not isinstance(node.this, exp.Tuple) or isinstance(node.parent, exp.Pivot):
        return None
    mine = node.this.expressions
    rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
    if not rows or any(len(row) != len(mine) for row in rows):
        return None
    made = [
        _all_of(exp.And, [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in zip(mine, row, strict=True)])
        for row in rows
    ]
    return exp.Paren(this=_all_of(exp.Or, made))


def _all_of(connector: type[exp.Connector], conditions: list[exp.Expr]) -> exp.Expr:
    made = conditions[0]
    for each in conditions[1:]:
        made = connector(this=made, expression=each)
    return made


_CONDITIONS: tuple[Callable[[exp.Expr], exp.Expr | None], ...] = (_any_of_array, _rows_in_list)
