"""Parameters in a range: `ts >= :since AND ts < :until`, `BETWEEN :low AND :high`, behind equalities with others.

The conditions leave the query. What they compare becomes hidden columns of its rows, by which an ordered map finds the
rows of a request; ranges of other expressions are filters. Of COUNT, SUM, AVG, MIN and MAX, rows are partial ones for
each value, which are added up: by the nodes of the map, or with GROUP BY, MIN, MAX or filters one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from ivme.query.order import HIDDEN, Bound, Order, Ranges, Span, Total
from ivme.query.rewrite.clauses import condition_of, is_aggregated, own_columns, set_where
from ivme.query.rewrite.first_rows import hide, take_first_rows
from ivme.query.rewrite.parameters import equality
from ivme.query.rewrite.row_requests import take_row_request
from ivme.query.rewrite.script import aliased
from ivme.query.sql_text import DIALECT, SqlText, is_set

_ALONE = "a parameter in a range goes with equalities of other parameters in the same WHERE"
_ADDED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_BY_VALUE = "leave the range out of the view, select what it compares, and take the range when reading"

Compared = tuple[exp.Expr, exp.Expr, str, bool]
"""An expression, the parameter it is compared with, whether that is the "lower" or the "upper" end, and is left out."""


def take_ranges(source: SqlText, node: exp.Expr, order: Order | None) -> tuple[exp.Expr, Order | None]:
    """The query without parameters in ranges, and an order that finds the rows of a request; else what was given."""
    if not isinstance(node, exp.Select):
        return node, order
    found = [each for condition in condition_of(node) for each in _compared(condition)]
    if not found:
        requested = take_row_request(source, node) if order is None else None
        return take_first_rows(source, node, order) if requested is None else requested
    expressions = list(dict.fromkeys(each[0] for each in found))
    for expression in expressions:
        _refuse_others(source, [each for each in found if each[0] == expression])
    made, equal, kept = node.copy(), list[tuple[str, str]](), list[exp.Expr]()
    for condition in condition_of(node):
        given = equality(condition)
        if given is not None:
            equal.append((given[1].name, hide(made, given[0])))
        elif not any(True for _ in _compared(condition)):
            kept.append(condition.copy())
    _refuse_repeated(source, node, [name for name, _ in equal] + [each[1].name for each in found])
    set_where(made, kept)
    spans = tuple(_span(hide(made, each), [one for one in found if one[0] == each]) for each in expressions)
    totals = _take_totals(source, node, made, order, found[0][1]) if is_aggregated(node) else ()
    given_order = Order((), None, 0, "") if order is None else order
    return made, replace(given_order, ranges=Ranges(tuple(equal), spans, totals))


def _span(column: str, found: list[Compared]) -> Span:
    """The range of what a hidden column has."""
    ends = {end: Bound(parameter.name, strict) for _, parameter, end, strict in found}
    begin = ends.get("prefix")
    return Span(column, ends.get("lower"), ends.get("upper"), None if begin is None else begin.parameter)


def _compared(condition: exp.Expr) -> Iterator[Compared]:
    """The comparisons with parameters that a condition is."""
    if isinstance(condition, exp.Between):
        low, high = condition.args["low"].unnest(), condition.args["high"].unnest()
        if isinstance(low, exp.Placeholder) and isinstance(high, exp.Placeholder) and _is_plain(condition.this):
            yield condition.this, low, "lower", False
            yield condition.this, high, "upper", False
        return
    if isinstance(condition, exp.Like) and (begin := _prefix(condition)) is not None and _is_plain(condition.this):
        yield condition.this.unnest(), begin, "prefix", False
    if not isinstance(condition, exp.GT | exp.GTE | exp.LT | exp.LTE):
        return
    sides = _moved(condition.this.unnest(), condition.expression.unnest())
    strict = isinstance(condition, exp.GT | exp.LT)
    is_lower = isinstance(condition, exp.GT | exp.GTE)
    if isinstance(sides[1], exp.Placeholder) and _is_plain(sides[0]):
        yield sides[0], sides[1], "lower" if is_lower else "upper", strict
    elif isinstance(sides[0], exp.Placeholder) and _is_plain(sides[1]):
        yield sides[1], sides[0], "upper" if is_lower else "lower", strict


def _moved(left: exp.Expr, right: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The sides of a comparison with the parameter alone: `ts > :now - INTERVAL '7' DAY` is `ts + ... > :now`."""
    for side, other in ((right, left), (left, right)):
        is_shifted = isinstance(side, exp.Add | exp.Sub) and isinstance(side.this, exp.Placeholder)
        if is_shifted and _is_length(side.expression) and _is_plain(other):
            shift = exp.Sub if isinstance(side, exp.Add) else exp.Add
            made = shift(this=exp.Paren(this=other.copy()), expression=side.expression.copy())
            return (made, side.this) if side is right else (side.this, made)
    return left, right


def _is_length(node: exp.Expr) -> bool:
    """Whether an interval has the same length everywhere: no months and years."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal) or node.args.get("unit") is None:
        return False
    return node.args["unit"].name.upper().rstrip("S") in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def _prefix(condition: exp.Like) -> exp.Expr | None:
    """The parameter of `x LIKE :p || '%'`, or of CONCAT(:p, '%')."""
    pattern = condition.expression.unnest()
    parts = [pattern.this, pattern.expression] if isinstance(pattern, exp.DPipe) else pattern.expressions
    if len(parts) != 2 or not isinstance(pattern, exp.DPipe | exp.Concat) or condition.args.get("escape") is not None:
        return None
    is_rest = isinstance(parts[1], exp.Literal) and parts[1].is_string and parts[1].this == "%"
    return parts[0] if is_rest and isinstance(parts[0], exp.Placeholder) else None


def _is_plain(node: exp.Expr) -> bool:
    """Whether it is an expression of columns, without parameters and queries."""
    return node.find(exp.Placeholder, exp.Query) is None and next(own_columns(node), None) is not None


def _refuse_others(source: SqlText, found: list[Compared]) -> None:
    """One expression has one lower end and one upper end, or one beginning."""
    for number, (_, parameter, end, _) in enumerate(found):
        if any(end == other or "prefix" in (end, other) for _, _, other, _ in found[:number]):
            message = f"a second {end} end of a range is not supported"
            raise source.unsupported(message, parameter, "write one, and compare the parameters when calling")


def _refuse_repeated(source: SqlText, node: exp.Expr, names: list[str]) -> None:
    """Each parameter is compared once, and with nothing but a column; lists and defaults are for equalities."""
    everywhere = [each.name for each in node.find_all(exp.Placeholder)]
    for name in names:
        if everywhere.count(name) > 1 or name in source.lists:
            message = f"the parameter :{name} is compared more than once, or a list, beside a range"
            raise source.unsupported(message, _at(node, name), "give it another name in one place")
        if any(default.parameter == name for default in source.defaults):
            message = f"a default of :{name} beside a range is not supported"
            raise source.unsupported(message, _at(node, name), "give the value when calling")
    other = next((name for name in everywhere if name not in names), None)
    if other is not None:
        raise source.unsupported(f"the parameter :{other} is not allowed here: {_ALONE}", _at(node, other), _BY_VALUE)


def _at(node: exp.Expr, name: str) -> exp.Expr:
    return next(each for each in node.find_all(exp.Placeholder) if each.name == name)


def _take_totals(
    source: SqlText, node: exp.Select, made: exp.Select, order: Order | None, parameter: exp.Expr
) -> tuple[Total, ...]:
    """Makes the rows partial sums for each value that is compared, in each group; what they add up to."""
    if order is not None or any(is_set(node.args.get(clause)) for clause in ("having", "distinct")):
        message = "a parameter in a range with HAVING, DISTINCT or ORDER BY of aggregates is not supported"
        raise source.unsupported(message, parameter, _BY_VALUE)
    keys = _keys(source, node, parameter)
    hidden = made.expressions[len(node.expressions) :]
    items: list[exp.Expr] = []
    totals = []
    for item in node.expressions:
        inner = item.unalias().unnest()
        name = item.alias or (inner.name if isinstance(inner, exp.Column) else inner.sql(dialect=DIALECT))
        if inner in keys:
            items.append(aliased(inner.copy(), f"{HIDDEN} key {len(items)}"))
            totals.append(Total(name, "key", items[-1].alias, ""))
            continue
        plain = isinstance(inner, _ADDED) and not inner.find(exp.Distinct)
        if not plain or inner.args.get("expressions"):
            message = "only COUNT, SUM, AVG, MIN and MAX, and keys of GROUP BY, go with a range of a parameter"
            raise source.unsupported(message, item, _BY_VALUE)
        names = f"{HIDDEN} sum {len(items)}", f"{HIDDEN} count {len(items)}"
        if isinstance(inner, exp.Min | exp.Max):
            items.append(aliased(inner.copy(), names[0]))
            totals.append(Total(name, inner.key, names[0], ""))
            continue
        is_count = isinstance(inner, exp.Count)
        if not is_count:
            items.append(aliased(exp.Sum(this=inner.this.copy()), names[0]))
        items.append(aliased(exp.Count(this=inner.this.copy()), names[1]))
        totals.append(Total(name, inner.key, "" if is_count else names[0], names[1]))
    for key in keys:
        if not any(each.this == key for each in items):
            items.append(aliased(key.copy(), f"{HIDDEN} key {len(items)}"))
            totals.append(Total("", "key", items[-1].alias, ""))
    made.set("expressions", [*hidden, *items])
    made.set("group", exp.Group(expressions=[each.this.copy() for each in hidden] + [key.copy() for key in keys]))
    return tuple(totals)


def _keys(source: SqlText, node: exp.Select, parameter: exp.Expr) -> list[exp.Expr]:
    """The expressions of GROUP BY, positions among them resolved."""
    group = node.args.get("group")
    if group is None:
        return []
    if any(is_set(value) for name, value in group.args.items() if name != "expressions"):
        message = "a parameter in a range with ROLLUP, CUBE, GROUPING SETS or GROUP BY ALL is not supported"
        raise source.unsupported(message, parameter, _BY_VALUE)
    found = []
    for each in group.expressions:
        place = int(each.this) if isinstance(each, exp.Literal) and each.this.isdigit() else 0
        found.append(node.expressions[place - 1].unalias().unnest() if 1 <= place <= len(node.expressions) else each)
    return found
