"""Window functions that read rows by their order need one: without ORDER BY the rows do not decide the answer.

Spark refuses the ranks, NTILE, LAG and LEAD then, too, and takes FIRST_VALUE and frames of ROWS, with any answer.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.sql_text import SqlText

_BY_POSITION = (
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead),
    *(exp.FirstValue, exp.First, exp.LastValue, exp.Last, exp.NthValue),
)


def refuse_unordered(source: SqlText, window: exp.Window) -> None:
    """Refuses a window without ORDER BY, its own or that of the window which it names, whose function needs one."""
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    if isinstance(call, exp.Identifier) or not (isinstance(call, _BY_POSITION) or _has_frame_of_rows(window)):
        return
    if _part(window, "order") is None:
        name = call.sql_name() if isinstance(call, exp.Func) else "this window function"
        message = f"{name} without ORDER BY in OVER (...) has no answer: the rows of a table have no order"
        raise source.unsupported(message, window, "write ORDER BY in OVER (...), by what decides which row comes first")


def _has_frame_of_rows(window: exp.Window) -> bool:
    """Whether a frame counts rows, and not all of them."""
    spec = _part(window, "spec")
    if spec is None or str(spec.args.get("kind")).upper() != "ROWS":
        return False
    return spec.args.get("start") != "UNBOUNDED" or spec.args.get("end") != "UNBOUNDED"


def _part(window: exp.Window, part: str) -> exp.Expr | None:
    """A part of a window, or of the window of the WINDOW clause that it names."""
    found: exp.Expr | None = window.args.get(part)
    name = window.args.get("alias")
    select = window.find_ancestor(exp.Select)
    if found is not None or name is None or select is None:
        return found
    named = [each for each in select.args.get("windows") or () if each.name.lower() == name.name.lower()]
    return _part(named[0], part) if named and named[0] is not window else None
