"""Window functions: what their refusal says. A hint gives the same rows, or sends the reader to compute them."""

from __future__ import annotations

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.sql_text import SqlText, is_set
from ivme.query.written import spelled

WHEN_READING = "keep the rows in the view without it, and compute it from them when you read the view"


def window_refusal(source: SqlText, window: exp.Expr) -> UnsupportedError:
    """The refusal of a window function that is not known, or that stands where none can."""
    if window.find_ancestor(exp.Where, exp.Having, exp.Group, exp.Join, exp.AggFunc, exp.Window) is not None:
        instead = "compute it in a SELECT inside this one, and use its column"
        return source.unsupported("a window function stands in SELECT or in QUALIFY", window, instead)
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    word = call.name if isinstance(call, exp.Anonymous) else call.sql_name() if isinstance(call, exp.Func) else "this"
    is_distinct = isinstance(call.this, exp.Distinct)
    message = f"{word.upper()}{' of DISTINCT values' if is_distinct else ''} is not supported as a window function"
    return source.unsupported(message, window, _instead(window))


def _instead(window: exp.Expr) -> str:
    """A join with groups is the same as an aggregate of whole partitions, and as nothing else."""
    aggregate = window.this
    ordered = any(is_set(window.args.get(part)) for part in ("order", "spec", "alias"))
    nested = isinstance(aggregate, exp.AggFunc) and any(each.find(exp.AggFunc) for each in aggregate.iter_expressions())
    if ordered or nested or not isinstance(aggregate, exp.AggFunc):
        return WHEN_READING
    keys = [spelled(key) for key in window.args.get("partition_by") or ()]
    if not keys:
        return f"write it as a subquery: (SELECT {spelled(aggregate)} FROM ...) over the same rows"
    groups = f"SELECT {', '.join(keys)}, {spelled(aggregate)} AS value FROM ... GROUP BY {', '.join(keys)}"
    return f"join the rows with their groups, ({groups}), on {' and '.join(keys)} by <=>"
