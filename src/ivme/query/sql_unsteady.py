"""Functions that have another value each time that they are computed, so that no view of them can be maintained."""

from __future__ import annotations

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.sql_text import SqlText

_NODES: dict[type[exp.Expr], str] = {
    **dict.fromkeys((exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentTime), "moment"),
    **dict.fromkeys((exp.Rand, exp.Randn, exp.Uuid), "row"),
    **dict.fromkeys((exp.CurrentUser, exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema), "session"),
}
_NAMES = {
    **dict.fromkeys(("now", "getdate", "sysdate", "current_timezone", "curtime"), "moment"),
    "mz_now": "clock",
    **dict.fromkeys(("shuffle", "monotonically_increasing_id", "randstr", "uniform"), "row"),
}
_SPELLED: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.CurrentDate: ("CURRENT_DATE", "CURDATE"),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP",),
    exp.CurrentTime: ("CURRENT_TIME",),
    exp.CurrentUser: ("CURRENT_USER",),
}
_INSTEAD = {
    "moment": "in WHERE of a view, compare NOW() with a column: ts > NOW() - INTERVAL '7' DAY (db.advance() sets its "
    "time); in a statement, pass the time as a parameter: ts > :since",
    "clock": "write NOW(), compared with a column in WHERE; db.advance() moves that clock",
    "row": "store the value in a column when you insert the row",
    "session": "write the value as a constant",
}


def instead_of_unsteady(node: exp.Expr) -> str | None:
    """What to do in place of such a function; None if the node is not one."""
    if isinstance(node, exp.StrToUnix) and isinstance(node.this, exp.CurrentTimestamp):
        return _INSTEAD["moment"]
    found = _NAMES.get(node.name.lower()) if isinstance(node, exp.Anonymous) else _NODES.get(type(node))
    return None if found is None else _INSTEAD[found]


def unsteady_name(source: SqlText, node: exp.Expr) -> tuple[str, int | None]:
    """The name of such a function as it is written, and where; sqlglot has neither for one without parentheses."""
    start = node.meta.get("start")
    names = _SPELLED.get(type(node), ())
    token = next((t for t in source.tokens if t.start == start or (start is None and t.text.upper() in names)), None)
    return (node.sql(), None) if token is None else (token.text.upper(), token.start)


def unsteady_refusal(source: SqlText, node: exp.Expr) -> UnsupportedError | None:
    """The refusal of a function that is not the same each time; None for all others."""
    steady = instead_of_unsteady(node)
    if steady is None:
        return None
    name, place = unsteady_name(source, node)
    return source.unsupported(f"{name} is not the same each time that it is computed", place, steady)
