"""What a query may consist of: everything else is refused, so that nothing is dropped silently on the way."""

from __future__ import annotations

from sqlglot import exp

from ivme.query.sql_text import SqlText, refuse_other_arguments
from ivme.query.sql_windows import WHEN_READING

REFUSED = {
    "qualify": ("QUALIFY", WHEN_READING),
    "windows": ("WINDOW", WHEN_READING),
    "laterals": ("LATERAL", "store the exploded rows as a separate table"),
    "sample": ("TABLESAMPLE", "sample the rows when reading the view"),
    "sort": ("SORT BY", "use ORDER BY"),
    "cluster": ("CLUSTER BY", "leave it out; it says nothing about the rows"),
    "distribute": ("DISTRIBUTE BY", "leave it out; it says nothing about the rows"),
    "locks": ("FOR UPDATE", "leave locks out; reading a view takes none"),
    "into": ("INTO", "write CREATE TABLE name AS SELECT ..., or CREATE VIEW name AS SELECT ..."),
}
"""Clauses that are refused by name, with what to do instead."""

_QUERY = ("with_", "order", "limit", "offset")
_CLAUSES = ("expressions", "distinct", "from_", "joins", "where", "group", "having")
_HANDLED: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Select: (*_QUERY, *_CLAUSES, *REFUSED),
    exp.Union: (*_QUERY, "this", "expression", "distinct", "by_name"),
    exp.Except: (*_QUERY, "this", "expression", "distinct"),
    exp.Intersect: (*_QUERY, "this", "expression", "distinct"),
    exp.Subquery: ("this", "alias", "joins", "order"),
    exp.Values: ("expressions", "alias"),
    exp.Lateral: ("this", "alias", "view", "outer", "ordinality"),
    exp.With: ("expressions", "recursive"),
    exp.CTE: ("this", "alias"),
    exp.TableAlias: ("this", "columns"),
    exp.From: ("this",),
    exp.Join: ("this", "on", "using", "method", "side", "kind"),
    exp.Table: ("this", "db", "catalog", "alias", "joins"),
    exp.Distinct: ("expressions",),
    exp.Qualify: ("this",),
    exp.Star: ("except_", "replace", "rename"),
    exp.Group: ("expressions", "grouping_sets", "cube", "rollup", "all"),
    exp.Where: ("this",),
    exp.Having: ("this",),
    exp.Filter: ("this", "expression"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Order: ("this", "expressions"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
}
_INSTEAD = "leave it out, or write it in another way"


def refuse_unknown_parts(source: SqlText, node: exp.Expr) -> None:
    """Refuses a query that has parts which no pass knows."""
    for each in node.walk():
        handled = _HANDLED.get(type(each))
        if handled is not None:
            refuse_other_arguments(source, each, handled, _INSTEAD)
        if isinstance(each, exp.Table) and _alias_columns(each):
            message = "names for the columns of a table are not supported"
            raise source.unsupported(message, each, "rename columns in SELECT with AS")


def _alias_columns(table: exp.Table) -> bool:
    alias = table.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))
