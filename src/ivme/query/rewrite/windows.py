"""Window functions: a SELECT with them is rows without them, blocks that add their columns, and a SELECT of these.

    SELECT a, x / SUM(x) OVER (PARTITION BY a) AS share FROM r

has a block `SELECT a, x AS "#of"`, one that adds the sum of each partition as a column, and the view divides. Windows
that partition and order rows alike are columns of one block. Conditions of QUALIFY are those of the last SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.order import Order, OrderKey
from ivme.query.rewrite.clauses import aggregates_in, condition_of, own_nodes, own_nodes_of, replaced, set_where
from ivme.query.rewrite.script import Script, aliased, column, select_from
from ivme.query.rewrite.window_calls import read_call
from ivme.query.sql_aggregates import is_aggregate
from ivme.query.sql_text import DIALECT, SqlText
from ivme.query.sql_windows import window_refusal
from ivme.query.windows import SHIFTS, WINDOW, WindowCall
from ivme.query.written import in_place_of

_BY = "#by"
_OF = "#of"
"""How the names of columns begin that windows read, and that are read beside them."""

_NOTHING = "#nothing"
"""How no column's name begins."""


@dataclass(frozen=True, slots=True)
class Windowed:
    """`rows` without windows, the `orders` that add their columns one after another, and what is made of them all."""

    source: SqlText
    rows: exp.Select
    orders: tuple[Order, ...]
    items: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...]
    distinct: exp.Expr | None

    def of(self, script: Script, block: str) -> exp.Select:
        """The SELECT of the block that has all columns."""
        plain = [name for name in script.columns[block] if not name.startswith((_OF, WINDOW))]
        stars = [place for place, item in enumerate(self.items) if is_star(item)]
        behind = self.items[stars[-1] + 1 :] if stars else ()
        tail = sum(isinstance(item, _Plain) for item in behind)
        made: list[exp.Expr] = []
        for place, item in enumerate(self.items):
            if isinstance(item, _Plain):
                made.append(_named(plain.pop(0)))
            elif not is_star(item):
                made.append(item.copy())
            elif place == stars[-1]:
                count = len(plain) - tail
                made += [_named(name) for name in plain[:count]]
                del plain[:count]
        select = select_from(script.reference(block, "r"), made)
        set_where(select, [each.copy() for each in self.conditions])
        select.set("distinct", self.distinct)
        return select


class _Plain(exp.Expression):
    """An item of SELECT without windows, which is a column of the rows."""


def is_plain_item(item: exp.Expr) -> bool:
    """Whether an item is a column of the rows, and computes nothing from windows."""
    return isinstance(item, _Plain)


def _named(name: str) -> exp.Expr:
    return aliased(column("r", name), name)


def has_windows(node: exp.Expr) -> bool:
    """Whether a SELECT has window functions."""
    if not isinstance(node, exp.Select):
        return False
    return any(isinstance(each, exp.Window) for clause in _clauses(node) for each in own_nodes(clause))


def refuse_windows(source: SqlText, select: exp.Select) -> None:
    """Refuses windows in clauses that have none."""
    found = _windows_in(select)
    if found:
        raise window_refusal(source, found[0])


def refuse_ordered(rows: exp.Select, order: Order, script: Script) -> None:
    """Refuses a parameter that decides which rows LIMIT or windows see inside a query."""
    parameter = rows.find(exp.Placeholder)
    if parameter is None:
        return
    what, instead = "LIMIT counts", "make the query with LIMIT the view itself, and do the rest when reading"
    if order.windows:
        what = "window functions read"
        instead = "compare it with what every window has in PARTITION BY, or in a SELECT around this one"
    message = f"the parameter :{parameter.name} cannot decide the rows that {what} inside a query"
    raise script.source.unsupported(message, parameter, instead)


def _clauses(node: exp.Select) -> Iterable[exp.Expr]:
    found = [*node.expressions, node.args.get("qualify")]
    return (each for each in found if isinstance(each, exp.Expr))


def take_windows(source: SqlText, node: exp.Select) -> Windowed:
    """Takes the windows out of a SELECT."""
    node = _with_named_windows(source, node)
    rows = node.copy()
    for clause in ("qualify", "distinct", "windows", "order"):
        rows.set(clause, None)
    taken = _Taken(source, rows)
    stars = [place for place, item in enumerate(node.expressions) if is_star(item)]
    kept: list[exp.Expr] = []
    items: list[exp.Expr] = []
    for place, item in enumerate(node.expressions):
        if not _windows_in(item):
            items.append(item if is_star(item) else _Plain())
            kept.append(item.copy() if is_star(item) else aliased(item.unalias().copy(), _name_of(item)))
            continue
        if stars and stars[0] < place < stars[-1]:
            raise source.unsupported("a window function between two stars is not supported", item, "write it after")
        items.append(item)
    rows.set("expressions", kept)
    aliases = {item.alias.lower(): item.unalias() for item in node.expressions if item.alias}
    _take_parameters(taken, node)
    items = [each if isinstance(each, _Plain) or is_star(each) else taken.item(each) for each in items]
    conditions = [taken.condition(with_items(each, aliases)) for each in condition_of(node, "qualify")]
    conditions += taken.conditions
    return Windowed(source, rows, taken.orders(), tuple(items), tuple(conditions), node.args.get("distinct"))


def with_items(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """A condition of QUALIFY with the items of SELECT in the place of their names."""

    def change(each: exp.Expr) -> exp.Expr | None:
        is_alias = isinstance(each, exp.Column) and not each.table and each.name.lower() in aliases
        return exp.Paren(this=aliases[each.name.lower()].copy()) if is_alias else None

    return replaced(node, change)


def with_window_columns(
    node: exp.Select, columns_of_from: Callable[[exp.Select], Callable[[exp.Identifier], bool]]
) -> exp.Select:
    """The SELECT with window functions in the place of their names in columns behind them.

    A name of a column of FROM means that one; these are only looked up where it matters.
    """
    is_known = cache(lambda: columns_of_from(node))
    before: dict[str, exp.Expr] = {}
    items: list[exp.Expr] = []

    def change(each: exp.Expr) -> exp.Expr | None:
        is_name = isinstance(each, exp.Column) and not each.table and each.name.lower() in before
        if not is_name or is_known()(each.this):
            return None
        return exp.Paren(this=in_place_of(before[each.name.lower()].copy(), each))

    for item in node.expressions:
        made = replaced(item, change)
        items.append(made if item.alias or made == item else aliased(made, _name_of(item)))
        if item.alias:
            before.pop(item.alias.lower(), None)
            if _windows_in(items[-1]):
                before[item.alias.lower()] = items[-1].unalias()
    if items == node.expressions:
        return node
    select = node.copy()
    select.set("expressions", items)
    return select


def _take_parameters(taken: _Taken, node: exp.Select) -> None:
    """A condition that fixes what every window is partitioned by leaves whole partitions: it may come behind them."""
    windows = _windows_in(node)
    left: list[exp.Expr] = []
    for condition in condition_of(taken.rows):
        fixed = _fixed(condition)
        if fixed is not None and all(fixed in (each.args.get("partition_by") or ()) for each in windows):
            taken.conditions.append(taken.condition(condition))
        else:
            left.append(condition)
    set_where(taken.rows, left)


def _fixed(condition: exp.Expr) -> exp.Expr | None:
    """What a condition compares with a parameter."""
    if not isinstance(condition, exp.EQ):
        return None
    left: exp.Expr = condition.this.unnest()
    right: exp.Expr = condition.expression.unnest()
    if isinstance(right, exp.Placeholder):
        return left
    return right if isinstance(left, exp.Placeholder) else None


@dataclass(slots=True)
class _Taken:
    """What has been taken out of a SELECT so far: columns that its `rows` get, and calls by how they see the rows."""

    source: SqlText
    rows: exp.Select
    calls: dict[tuple[tuple[int | str, ...], tuple[OrderKey, ...]], list[WindowCall]] = field(default_factory=dict)
    names: dict[str, exp.Expr] = field(default_factory=dict)
    conditions: list[exp.Expr] = field(default_factory=list)

    def item(self, item: exp.Expr) -> exp.Expr:
        """An item of SELECT under its name."""
        return aliased(self.outside(item.unalias()), _name_of(item))

    def outside(self, node: exp.Expr) -> exp.Expr:
        """An expression over the columns of windows, and over columns of the rows."""

        def change(each: exp.Expr) -> exp.Expr | None:
            if isinstance(each, exp.Window):
                return self.window(each)
            if (isinstance(each, exp.AggFunc) or is_aggregate(each)) and _windows_in(each):
                raise window_refusal(self.source, _windows_in(each)[0])
            if _windows_in(each) or not _is_value(each) or not _reads_rows(each):
                return None
            return column("r", self.hidden(each, _OF))

        return replaced(node, change)

    def condition(self, node: exp.Expr) -> exp.Expr:
        """A condition of QUALIFY; what it compares with a parameter becomes a column of the rows."""
        fixed = _fixed(node)
        if fixed is None or _windows_in(fixed) or not _reads_rows(fixed):
            return self.outside(node)
        given = node.find(exp.Placeholder)
        assert given is not None
        return exp.EQ(this=column("r", self.hidden(fixed, _OF)), expression=given.copy())

    def hidden(self, expression: exp.Expr, prefix: str) -> str:
        """The name of the column of the rows that an expression is, of a new one that is not shown."""
        for item in self.rows.expressions:
            is_kept = prefix == _BY or not item.alias.startswith(_BY)
            if isinstance(item, exp.Alias) and is_kept and item.unalias() == expression:
                return str(item.alias)
        name = f"{prefix}{len(self.rows.expressions)}"
        self.rows.append("expressions", aliased(expression.copy(), name))
        return name

    def window(self, window: exp.Window) -> exp.Expr:
        """The column of a window; with LAG's third argument, a CASE over two of them."""
        inside = [each for child in window.iter_expressions() for each in _windows_in(child)]
        if inside:
            raise window_refusal(self.source, inside[0])
        written = read_call(self.source, window)
        text = exact_text(window)
        if text in self.names:
            return self.names[text].copy()
        of = None if written.of is None else self.hidden(written.of, _BY)
        place = self.source.text, self.source.at(window)
        call = WindowCall(
            "", written.function, text, of, written.frame, written.number, written.ignores_nulls, written=place
        )
        made: exp.Expr = self._column(window, call)
        if written.otherwise is not None and written.function in SHIFTS:
            there = self._column(window, replace(call, function=f"{written.function}_there"))
            otherwise = self.outside(written.otherwise) if _reads_rows(written.otherwise) else written.otherwise.copy()
            made = exp.Case(ifs=[exp.If(this=there, true=made)], default=otherwise)
        self.names[text] = made
        return made.copy()

    def _column(self, window: exp.Window, call: WindowCall) -> exp.Column:
        groups = [self.hidden(each, _BY) for each in window.args.get("partition_by") or () if _reads_rows(each)]
        order = window.args.get("order")
        keys = [
            OrderKey(self.hidden(each.this, _BY), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
            for each in ([] if order is None else order.expressions)
            if _reads_rows(each.this)
        ]
        name = f"{WINDOW}{sum(map(len, self.calls.values())) + 1}"
        self.calls.setdefault((tuple(groups), tuple(keys)), []).append(replace(call, name=name))
        return column("r", name)

    def orders(self) -> tuple[Order, ...]:
        """Each adds its columns to those of the one before; the last one hides what only windows read."""
        made = []
        for number, ((groups, keys), calls) in enumerate(self.calls.items(), 1):
            text = "WINDOW " + ", ".join(f"{call.text} AS `{call.name}`" for call in calls)
            hidden = _BY if number == len(self.calls) else _NOTHING
            made.append(Order(keys, None, 0, text, "none", groups, hidden, windows=tuple(calls)))
        return tuple(made)


def _reads_rows(node: exp.Expr) -> bool:
    """Whether an expression depends on rows: it has columns, aggregates, parameters of rows, or queries."""
    return bool(aggregates_in(node)) or any(isinstance(each, exp.Column | exp.Query) for each in own_nodes(node))


def _is_value(node: exp.Expr) -> bool:
    """Whether a node is an expression by itself, and not a part of one: WHEN ... THEN, a list, an order."""
    is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    return not is_branch and not isinstance(node, exp.Tuple | exp.Order | exp.Ordered | exp.Where | exp.Distinct)


def _windows_in(node: exp.Expr) -> list[exp.Window]:
    found = own_nodes_of(node) if isinstance(node, exp.Select) else own_nodes(node)
    return [each for each in found if isinstance(each, exp.Window)]


def _name_of(item: exp.Expr) -> str:
    """What an item of SELECT is called."""
    inner = item.unalias()
    return item.alias or (inner.name if isinstance(inner, exp.Column) else inner.sql(dialect=DIALECT, comments=False))


def is_star(item: exp.Expr) -> bool:
    """Whether an item stands for several columns."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


# WINDOW w AS (...)


def _with_named_windows(source: SqlText, node: exp.Select) -> exp.Select:
    """The SELECT with what the WINDOW clause says in each OVER."""
    named = {each.this.name.lower(): each for each in node.args.get("windows") or ()}
    made = node.copy()
    for window in _windows_in(made):
        _complete(source, window, named)
    return made


def _complete(source: SqlText, window: exp.Window, named: dict[str, exp.Window]) -> None:
    alias = window.args.get("alias")
    if alias is None:
        return
    found = named.pop(alias.name.lower(), None)
    if found is None:
        raise source.unknown(f"there is no window {alias.name} here", alias, "define it by WINDOW name AS (...)")
    base = found.copy()
    _complete(source, base, named)
    named[alias.name.lower()] = found
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        if window.args.get(part) is None or not window.args.get(part):
            window.set(part, base.args.get(part))
