"""Calls of window functions as SQL writes them: the function, its frame, and the expressions that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from sqlglot import exp

from ivme.query.sql_intervals import is_interval, read_interval
from ivme.query.sql_text import SqlText, is_set
from ivme.query.sql_windows import WHEN_READING, window_refusal
from ivme.query.windows import AGGREGATED, SHIFTS, Edge, Frame, Unit

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.AnyValue: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
    exp.NthValue: "nth_value",
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
}
_BY_NAME = {"EVERY": "bool_and", "SOME": "bool_or"}

_ORDERED = ("rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "row_number", *SHIFTS)
"""Functions without frames."""

_MOST = 10**9
"""The largest number of rows that a frame, LAG or NTILE counts."""


@dataclass(frozen=True, slots=True)
class Written:
    """A call: its function and frame, what it is `of`, what it is where there is no row to read, and its number."""

    function: str
    of: exp.Expr | None
    otherwise: exp.Expr | None
    frame: Frame | None
    number: int
    ignores_nulls: bool


def read_call(source: SqlText, window: exp.Window) -> Written:
    """The call of a window whose OVER (...) is complete."""
    call, ignores = window.this, False
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call, ignores = call.this, isinstance(call, exp.IgnoreNulls)
    condition = None
    if isinstance(call, exp.Filter):
        call, condition = call.this, call.expression.this
    function = _BY_NAME.get(call.name.upper()) if isinstance(call, exp.Anonymous) else _FUNCTIONS.get(type(call))
    if function is None or (condition is not None and function not in AGGREGATED):
        raise window_refusal(source, window)
    if isinstance(call.this, exp.Distinct) or (ignores and function not in (*SHIFTS, "first_value", "last_value")):
        raise window_refusal(source, window)
    frame = None if function in _ORDERED else _frame(source, window)
    of = _argument(call, function, condition)
    number = _number(source, window, call, function)
    otherwise = call.args.get("default") if function in SHIFTS else None
    if number < 0:
        function, number = ("lead" if function == "lag" else "lag"), -number
    return Written(function, of, otherwise, frame, number, ignores)


def _argument(call: exp.Expr, function: str, condition: exp.Expr | None) -> exp.Expr | None:
    """What is aggregated: of rows for which a FILTER holds, NULL else."""
    if function in _ORDERED and function not in SHIFTS:
        return None
    of: exp.Expr | None = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    if function == "count" and isinstance(of, exp.Star | exp.Literal):
        of = None
    if condition is None:
        return of
    value = exp.Literal.number(1) if of is None else of.copy()
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])


def _number(source: SqlText, window: exp.Window, call: exp.Expr, function: str) -> int:
    given = {"ntile": "this", "nth_value": "offset", "lag": "offset", "lead": "offset"}.get(function)
    node = None if given is None else call.args.get(given)
    if node is None:
        if function in ("ntile", "nth_value"):
            raise source.unsupported(f"{function.upper()} needs a whole number", window, "write it after the column")
        return 1
    number = _whole(node)
    least = -_MOST if function in SHIFTS else 1
    if number is None or not least <= number <= _MOST:
        raise source.unsupported(f"{function.upper()} takes a whole number here", node, "write a constant above 0")
    return number


def _whole(node: exp.Expr) -> int | None:
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _whole(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit() and len(node.this) < 19
    return int(node.this) if is_number else None


# Frames


def _frame(source: SqlText, window: exp.Window) -> Frame:
    """The frame of a call; without one it is up to the peers of the row, or all rows if they have no order."""
    spec, order = window.args.get("spec"), window.args.get("order")
    if spec is None:
        return Frame("range", None, None if order is None else 0)
    if is_set(spec.args.get("exclude")):
        place = source.keyword(["EXCLUDE"])
        raise source.unsupported("EXCLUDE in a frame is not supported", place, WHEN_READING)
    unit: Unit = {"ROWS": "rows", "RANGE": "range", "GROUPS": "groups"}[spec.args["kind"].upper()]  # type: ignore[assignment]
    start = _edge(source, unit, spec.args.get("start"), spec.args.get("start_side"))
    end = _edge(source, unit, spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    frame = Frame(unit, start, end)
    if unit == "range" and {start, end} - {None, 0}:
        _check_range(source, window, frame)
    if order is None and unit != "rows":
        return Frame("range", None, None)
    return frame


def _edge(source: SqlText, unit: Unit, given: object, side: object) -> Edge:
    if given == "CURRENT ROW":
        return 0
    if given == "UNBOUNDED":
        return None
    assert isinstance(given, exp.Expr)
    found = _offset(source, given) if unit == "range" else _whole(given)
    if found is None or (isinstance(found, int) and not 0 <= found <= (_MOST if unit != "range" else 2**62)):
        raise source.unsupported("a frame takes a constant that is not negative", given, "write a number or INTERVAL")
    return -found if str(side).upper() == "PRECEDING" else found


def _offset(source: SqlText, node: exp.Expr) -> int | Decimal | timedelta | None:
    if is_interval(node):
        interval = read_interval(source, node)
        if interval.months:
            raise source.unsupported("a frame of months is not supported", node, "write a number of days")
        return timedelta(days=interval.days, microseconds=interval.micros)
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.this) if node.this.isdigit() else Decimal(node.this)
    return None


def _check_range(source: SqlText, window: exp.Window, frame: Frame) -> None:
    order = window.args.get("order")
    if order is None or len(order.expressions) != 1:
        message = "a frame RANGE with an offset needs one expression in ORDER BY"
        raise source.unsupported(message, source.keyword(["RANGE"]), "order by what the offset is added to")
    for edge in (frame.start, frame.end):
        if isinstance(edge, timedelta) and edge.days < -(10**6):
            raise source.unsupported("a frame of more than a million days is not supported", window, "write fewer days")
