"""Window functions: what their refusal says. A hint gives the same rows, or sends the reader to compute them."""

from __future__ import annotations

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.sql_text import SqlText, is_set
from ivme.query.written import spelled

WHEN_READING = "keep the rows in the view without it, and compute it from them when you read the view"


def window_refusal(source: SqlText, window: exp.Expr) -> UnsupportedError:
    """The refusal of a window function."""
    if isinstance(window.this, exp.RowNumber | exp.Rank | exp.DenseRank):
        message = "a rank is a column of its own, one of a SELECT, with PARTITION BY and ORDER BY in OVER (...)"
        return source.unsupported(message, window, "compute with it, or with another one, in a SELECT around this one")
    return source.unsupported("window functions are not supported", window, _instead(window))


def _instead(window: exp.Expr) -> str:
    """A join with groups is the same as an aggregate of whole partitions, and as nothing else."""
    aggregate = window.this
    ordered = any(is_set(window.args.get(part)) for part in ("order", "spec", "alias"))
    nested = isinstance(aggregate, exp.AggFunc) and any(each.find(exp.AggFunc) for each in aggregate.iter_expressions())
    if ordered or nested or not isinstance(aggregate, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
        return WHEN_READING
    keys = [spelled(key) for key in window.args.get("partition_by") or ()]
    if not keys:
        return f"write it as a subquery: (SELECT {spelled(aggregate)} FROM ...) over the same rows"
    groups = f"SELECT {', '.join(keys)}, {spelled(aggregate)} AS value FROM ... GROUP BY {', '.join(keys)}"
    return f"join the rows with their groups, ({groups}), on {' and '.join(keys)} by <=>"
