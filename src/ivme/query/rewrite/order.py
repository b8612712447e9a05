"""Takes ORDER BY, LIMIT and OFFSET off a query: they say how the view is read.

What rows are ordered by becomes a column: `SELECT a FROM R ORDER BY b` has the column b, which readers do not see.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.order import HIDDEN, Order, OrderKey, Ties
from ivme.query.rewrite.clauses import replaced
from ivme.query.rewrite.script import aliased
from ivme.query.sql_text import DIALECT, SqlText, is_set

_COUNT = "write a whole number"
_ASKED = "leave it out, and say it when you read: view.rows(limit=..., offset=...)"


def take_order(source: SqlText, node: exp.Expr) -> tuple[exp.Expr, Order | None]:
    """The query without its order, and the order; None if it has none."""
    if not isinstance(node, exp.Query) or not any(is_set(node.args.get(c)) for c in ("order", "limit", "offset")):
        return node, None
    made = node.copy()
    order, limit, offset = (made.args.get(clause) for clause in ("order", "limit", "offset"))
    for clause in ("order", "limit", "offset"):
        made.set(clause, None)
    first = _first_select(made)
    keys = [_key(source, each, made, first) for each in ([] if order is None else order.expressions)]
    numbers = _number(source, limit), _number(source, offset) or 0
    ties: Ties = "last" if _has_ties(source, limit, keys) else "none"
    return made, Order(tuple(keys), *numbers, _text(order, limit, offset), ties)


def has_limit(node: exp.Expr) -> bool:
    """Whether a query shows a part of its rows."""
    return any(is_set(node.args.get(clause)) for clause in ("limit", "offset"))


def _has_ties(source: SqlText, limit: exp.Expr | None, keys: list[OrderKey]) -> bool:
    """Whether FETCH says WITH TIES; a share of the rows changes with every row, so that PERCENT is refused."""
    options = None if limit is None else limit.args.get("limit_options")
    if limit is None or options is None:
        return False
    if options.args.get("percent"):
        raise source.unsupported("a LIMIT in PERCENT is not supported", limit, "write a number of rows")
    if options.args.get("with_ties") and not keys:
        raise source.unsupported("WITH TIES needs ORDER BY, which says what ties are", limit, "add ORDER BY")
    return bool(options.args.get("with_ties"))


def _first_select(node: exp.Expr) -> exp.Select:
    """The SELECT that names the columns."""
    while not isinstance(node, exp.Select):
        node = node.this
    return node


def _key(source: SqlText, ordered: exp.Expr, query: exp.Expr, first: exp.Select) -> OrderKey:
    node = ordered.this.unnest()
    place = _place(source, node, first)
    if place is None:
        if query is not first or first.args.get("distinct") is not None:
            message = "ORDER BY of a set operation or of DISTINCT names columns of SELECT"
            raise source.unsupported(message, node, "select what you order by")
        place = f"{HIDDEN}{len(first.expressions)}"
        first.append("expressions", aliased(_without_aliases(node, first), place))
    descending = bool(ordered.args.get("desc"))
    return OrderKey(place, descending, bool(ordered.args.get("nulls_first")))


def _place(source: SqlText, node: exp.Expr, first: exp.Select) -> int | str | None:
    """The column of SELECT that a position, a name or a repeated expression means; names come before expressions."""
    items = [item for item in first.expressions if not item.alias.startswith(HIDDEN)]
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.this.isdigit() or not (1 <= int(node.this) <= len(items) or any(map(_is_star, items))):
            raise source.unknown(f"ORDER BY {node.this} is not a position", node, f"SELECT has {len(items)} columns")
        return int(node.this) - 1
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else None
    text = exact_text(node)
    meant = [item.unalias().unnest() for item in items]
    called = [
        item.alias or (inner.name if isinstance(inner, exp.Column) else "")
        for item, inner in zip(items, meant, strict=True)
    ]
    named = [place for place, each in enumerate(called) if each.lower() == name and not _is_star(items[place])]
    same = [place for place, each in enumerate(meant) if exact_text(each) == text and not _is_star(items[place])]
    for place in (*named, *same):
        return place if not any(map(_is_star, items)) else called[place] or None
    return None


def _without_aliases(node: exp.Expr, first: exp.Select) -> exp.Expr:
    """The expression with what the columns of SELECT are in the place of their names."""
    known = {item.alias.lower(): item.this for item in first.expressions if isinstance(item, exp.Alias)}

    def change(each: exp.Expr) -> exp.Expr | None:
        if not isinstance(each, exp.Column) or each.table or each.name.lower() not in known:
            return None
        return exp.Paren(this=known[each.name.lower()].copy())

    return replaced(node, change)


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or isinstance(item.this, exp.Star)


_LONGEST, _MOST = 19, 10**18
"""A number of so many digits is as good as any larger one: no view has so many rows."""


def _number(source: SqlText, clause: exp.Expr | None) -> int | None:
    if clause is None:
        return None
    node = clause.args.get("expression") or clause.args.get("count")
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this) if len(node.this) < _LONGEST else _MOST
    if isinstance(node, exp.Column) and node.name.upper() == "ALL":
        return None
    instead = _ASKED if isinstance(node, exp.Placeholder | exp.Parameter) else _COUNT
    raise source.unsupported(f"{clause.key.upper()} takes a number here", clause, instead)


def _text(*clauses: exp.Expr | None) -> str:
    return " ".join(each.sql(dialect=DIALECT).strip() for each in clauses if each is not None)
