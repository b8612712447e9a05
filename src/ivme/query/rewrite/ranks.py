"""The first rows of each group: ROW_NUMBER, RANK and DENSE_RANK, their conditions, QUALIFY and DISTINCT ON.

A SELECT with one such function, and with conditions on it in QUALIFY only, is the rows of a SELECT without it, of which
an ordered block shows the first of each group; the rank is a column of that block if it is read. Conditions on
the rank in the SELECT around go into QUALIFY first, and DISTINCT ON is the row of each group whose number is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from ivme.query.order import Order, OrderKey, Ties
from ivme.query.rewrite.clauses import condition_of, conjuncts, own_nodes, own_nodes_of, set_where
from ivme.query.rewrite.order import has_limit
from ivme.query.rewrite.script import aliased
from ivme.query.rewrite.windows import has_windows
from ivme.query.sql_text import DIALECT, is_set

BY = "#by"
"""How the names of columns begin that groups and ranks are found by."""

_TIES: dict[type[exp.Expr], Ties] = {exp.RowNumber: "none", exp.Rank: "last", exp.DenseRank: "values"}


@dataclass(frozen=True, slots=True)
class Ranked:
    """A SELECT with a rank: `rows` without it, the `order` that shows some of them, and where the rank was.

    The rank is an item of SELECT under a name, so many items before the end; `name` is None if it is not read.
    """

    rows: exp.Select
    order: Order
    name: str | None
    behind: int
    distinct: exp.Expr | None

    def of(self, select: exp.Select) -> exp.Select:
        """The SELECT of all columns of the ordered block, with the rank where it was."""
        items = select.expressions
        if self.name is not None:
            rank = aliased(items.pop().this, self.name)
            items.insert(len(items) - self.behind, rank)
        select.set("distinct", self.distinct)
        return select


def is_limited(node: exp.Expr) -> bool:
    """Whether a query is of rows in an order, by LIMIT or by windows."""
    return has_limit(node) or has_windows(node)


def has_ranks(node: exp.Expr) -> bool:
    """Whether a SELECT has a function of the rank of its rows."""
    if not isinstance(node, exp.Select):
        return False
    return any(isinstance(each, exp.Window) and type(each.this) in _TIES for each in own_nodes_of(node))


def is_one_rank(node: exp.Select) -> bool:
    """Whether a SELECT has one window, a rank that is a column of it, and conditions on it that are its first rows.

    Everything else is `windows`'.
    """
    windows = [each for each in own_nodes_of(node) if isinstance(each, exp.Window)]
    if not windows or type(windows[0].this) not in _TIES or any(each != windows[0] for each in windows):
        return False
    window = windows[0]
    if any(is_set(window.args.get(part)) for part in ("spec", "alias", "first")) or is_set(node.args.get("windows")):
        return False
    items = [place for place, item in enumerate(node.expressions) if item.unalias().unnest() == window]
    within = [each for item in node.expressions for each in own_nodes(item) if isinstance(each, exp.Window)]
    if len(items) > 1 or len(within) > len(items):
        return False
    if items and any(map(_is_star, node.expressions[items[0] + 1 :])):
        return False
    alias = None if not items else node.expressions[items[0]].alias
    return _span_of(node, window, alias) is not None


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def take_ranks(node: exp.Select) -> Ranked:
    """Takes the rank out of a SELECT that `is_one_rank`."""
    window = next(each for each in own_nodes_of(node) if isinstance(each, exp.Window))
    items = [place for place, item in enumerate(node.expressions) if item.unalias().unnest() == window]
    found = _span_of(node, window, None if not items else node.expressions[items[0]].alias)
    assert found is not None, "its conditions are those of a rank"
    first, last = found
    rows = node.copy()
    for clause in ("qualify", "distinct"):
        rows.set(clause, None)
    if items:
        rows.expressions.pop(items[0])
    groups = [_hide(rows, each) for each in window.args.get("partition_by") or ()]
    given = window.args.get("order")
    keys = [
        OrderKey(_hide(rows, each.this), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        for each in ([] if given is None else given.expressions)
    ]
    limit = None if last is None else max(last - first + 1, 0)
    text = f"QUALIFY {window.sql(dialect=DIALECT, comments=False)} {_range_text(first, last)}"
    name = (node.expressions[items[0]].alias or window.sql(dialect=DIALECT)) if items else None
    order = Order(tuple(keys), limit, first - 1, text, _TIES[type(window.this)], tuple(groups), BY, name is not None)
    behind = len(node.expressions) - items[0] - 1 if items else 0
    return Ranked(rows, order, name, behind, node.args.get("distinct"))


def _hide(rows: exp.Select, expression: exp.Expr) -> int | str:
    """The place of the item that an expression is, or the name of a new one that is not shown."""
    if not any(map(_is_star, rows.expressions)):
        same = [place for place, item in enumerate(rows.expressions) if item.unalias() == expression]
        if same:
            return same[0]
    name = f"{BY}{len(rows.expressions)}"
    rows.append("expressions", aliased(expression.copy(), name))
    return name


def _range_text(first: int, last: int | None) -> str:
    if last is None:
        return f">= {first}"
    return f"<= {last}" if first == 1 else f"BETWEEN {first} AND {last}"


def _span_of(node: exp.Select, window: exp.Window, alias: str | None) -> tuple[int, int | None] | None:
    """From which rank up to which one QUALIFY lets rows pass; None if it says more."""
    first, last = 1, None  # type: int, int | None
    for condition in condition_of(node, "qualify"):
        if isinstance(condition, exp.Boolean) and condition.this:
            continue
        found = _bounds(condition, lambda each: each == window or _is_named(each, alias))
        if found is None or (found[0] > 1 and not isinstance(window.this, exp.RowNumber)):
            return None
        first = max(first, found[0])
        ends = [each for each in (last, found[1]) if each is not None]
        last = min(ends) if ends else None
    return first, last


def _is_named(node: exp.Expr, alias: str | None) -> bool:
    return bool(alias) and isinstance(node, exp.Column) and not node.table and node.name.lower() == str(alias).lower()


def _bounds(condition: exp.Expr, is_rank: object) -> tuple[int, int | None] | None:
    """The ranks for which a condition on one holds; None if it is another condition."""
    assert callable(is_rank)
    if isinstance(condition, exp.Between) and is_rank(condition.this.unnest()):
        low, high = _whole(condition.args["low"]), _whole(condition.args["high"])
        return None if low is None or high is None else (max(low, 1), high)
    if not isinstance(condition, exp.LTE | exp.LT | exp.EQ | exp.GTE | exp.GT):
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    kind: type[exp.Expr] = type(condition)
    if is_rank(right):
        left, right = right, left
        kind = {exp.LTE: exp.GTE, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}[type(condition)]
    number = _whole(right)
    if not is_rank(left) or number is None:
        return None
    if kind is exp.EQ:
        return (number, number) if number >= 1 else (1, 0)
    if kind in (exp.GTE, exp.GT):
        return (max(number + (kind is exp.GT), 1), None)
    return (1, number - (kind is exp.LT))


def _whole(node: exp.Expr) -> int | None:
    node = node.unnest()
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit() and len(node.this) < 19
    return int(node.this) if is_number else None


# Conditions of the SELECT around


def push_ranks(select: exp.Select, queries: Mapping[str, exp.CTE]) -> None:
    """Puts conditions on the rank of a subquery, or of a query of WITH, into it; changes the SELECT in place."""
    start, joins = select.args.get("from_"), list(select.args.get("joins") or ())
    if start is None or any(join.side in ("RIGHT", "FULL") for join in joins):
        return
    for holder in (start, *joins):
        found = _source(holder.this, queries)
        if found is not None:
            _push(select, holder, *found)


def _source(node: exp.Expr, queries: Mapping[str, exp.CTE]) -> tuple[exp.Select, exp.Identifier | None] | None:
    """The SELECT of a source that has one rank under a name, and the alias of the source, if it has one."""
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    query, name = None, None if alias is None else alias.this
    if isinstance(node, exp.Subquery):
        query = node.this
    elif isinstance(node, exp.Table) and not node.args.get("db") and node.name.lower() in queries:
        cte = queries[node.name.lower()]
        query, name = cte.this, name or node.this
        if cte.args["alias"].args.get("columns"):
            return None
    if not isinstance(query, exp.Select) or not has_ranks(query) or is_set(query.args.get("qualify")):
        return None
    if any(is_set(query.args.get(clause)) for clause in ("limit", "offset", "with_", "distinct")):
        return None
    windows = [each for each in own_nodes_of(query) if isinstance(each, exp.Window)]
    return (query.copy(), name) if len(windows) == 1 else None


def _push(select: exp.Select, holder: exp.Expr, query: exp.Select, alias: exp.Identifier | None) -> None:
    item = next((item for item in query.expressions if isinstance(item.unalias().unnest(), exp.Window)), None)
    if item is None or not item.alias:
        return
    window = item.unalias().unnest()

    def is_rank(node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or node.name.lower() != item.alias.lower():
            return False
        return not node.table or (alias is not None and node.table.lower() == alias.name.lower())

    is_padded = isinstance(holder, exp.Join) and holder.side == "LEFT"
    places = [] if is_padded else [("where", condition_of(select))]
    if isinstance(holder, exp.Join):
        places.append(("on", conjuncts(holder.args.get("on"))))
    pushed: list[exp.Expr] = []
    for place, conditions in places:
        mine = [each for each in conditions if _is_pushed(_bounds(each, is_rank), window)]
        if not mine:
            continue
        pushed += mine
        left = [each for each in conditions if each not in mine]
        if place == "where":
            set_where(select, left)
        else:
            assert isinstance(holder, exp.Join)
            holder.set("on", exp.and_(*left) if left else exp.true())
    if not pushed:
        return
    made = [_with_window(each, is_rank, window) for each in pushed]
    query.set("qualify", exp.Qualify(this=exp.and_(*made, copy=False) if len(made) > 1 else made[0]))
    if len(query.expressions) > 1 and not _reads(select, is_rank):
        query.set("expressions", [each for each in query.expressions if each is not item])
    named = None if alias is None else exp.TableAlias(this=alias.copy())
    holder.set("this", exp.Subquery(this=query, alias=named))


def _is_pushed(bounds: tuple[int, int | None] | None, window: exp.Expr) -> bool:
    """Ranks of equal rows leave gaps, so that only their ends are conditions of an order."""
    return bounds is not None and (bounds[0] == 1 or isinstance(window.this, exp.RowNumber))


def _with_window(condition: exp.Expr, is_rank: object, window: exp.Expr) -> exp.Expr:
    assert callable(is_rank)
    made = condition.copy()
    for node in list(made.find_all(exp.Column)):
        if is_rank(node):
            node.replace(window.copy())
    return made


def _reads(select: exp.Select, is_rank: object) -> bool:
    """Whether a SELECT reads the rank still, perhaps by a star."""
    assert callable(is_rank)
    stars = [star for star in select.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    sources = {id(each) for holder in _holders(select) for each in holder.this.walk()}
    return bool(stars) or any(is_rank(each) and id(each) not in sources for each in select.find_all(exp.Column))


def _holders(select: exp.Select) -> list[exp.Expr]:
    return [select.args["from_"], *(select.args.get("joins") or ())]


# DISTINCT ON


def distinct_on(node: exp.Expr) -> exp.Expr:
    """The statement with ROW_NUMBER in the place of each DISTINCT ON."""
    if not any(_on(select) for select in node.find_all(exp.Select)):
        return node
    made = node.copy()
    for select in list(made.find_all(exp.Select)):
        keys = _on(select)
        if not keys:
            continue
        select.set("distinct", None)
        order = select.args.get("order")
        known = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
        window = exp.Window(
            this=exp.RowNumber(),
            partition_by=[_meant(key, known) for key in keys],
            order=None if order is None else _meant(_without_positions(order, select), known),
            over="OVER",
        )
        first = exp.EQ(this=window, expression=exp.Literal.number(1))
        select.set("qualify", exp.Qualify(this=first))
    return made


def _on(select: exp.Select) -> list[exp.Expr]:
    distinct = select.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    return [] if on is None else list(on.expressions) if isinstance(on, exp.Tuple) else [on.unnest()]


def _without_positions(order: exp.Expr, select: exp.Select) -> exp.Expr:
    """ORDER BY with the items of SELECT in the place of their positions."""
    made = order.copy()
    for each in made.expressions:
        place = _whole(each.this)
        if place is not None and 1 <= place <= len(select.expressions):
            each.set("this", select.expressions[place - 1].unalias().copy())
    return made


def _meant(node: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
    """The node with what items of SELECT are in the place of their names."""
    holder = exp.Paren(this=node.copy())
    for each in list(holder.find_all(exp.Column)):
        if not each.table and each.name.lower() in known:
            each.replace(known[each.name.lower()].copy())
    made: exp.Expr = holder.this
    return made
