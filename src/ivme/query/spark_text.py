"""A SELECT in words that Spark reads: what only ivme has is written as the compiler's first passes rewrite it.

SELECT TUMBLE(ts, INTERVAL '5' MINUTE) AS w, COUNT(*) AS n FROM r GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE)
SELECT TIMESTAMP_MICROS(UNIX_MICROS(ts) - PMOD(UNIX_MICROS(ts), 300000000)) AS w, COUNT(*) AS n FROM r GROUP BY ...

`ivme verify` asks Spark this where a text has such words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlglot import exp

from ivme.query.functions import Function
from ivme.query.model import Table
from ivme.query.rewrite.plain_forms import plain_forms
from ivme.query.rewrite.time_windows import time_windows
from ivme.query.sql import one_statement

Columns = Mapping[str, tuple[str, ...]]

_OURS = re.compile(
    r"\b(TUMBLE|HOP)(_START|_END)?\s*\(|\bBY\s+NAME\b|\*\s*(EXCEPT\s*\([^)]*\)\s*)?(REPLACE|RENAME)\s*\("
    r"|\)\s*(NOT\s+)?IN\s*\(\s*\(|\bARRAY\s*\[|\w\s*\[\s*\]|\A\s*FROM\b",
    re.IGNORECASE,
)
"""Words that Spark does not read; a text that has them elsewhere, in a constant, is only written differently."""


def spark_text(text: str, tables: Iterable[Table], functions: Mapping[str, Function] = MappingProxyType({})) -> str:
    """The text with plain expressions for windows of time, lists, `* REPLACE` and UNION BY NAME; itself if it has none.

    >>> from ivme.query.model import table
    >>> spark_text("SELECT a FROM r UNION ALL BY NAME SELECT b FROM r", [table("r", {"a": "int", "b": "int"})])
    'SELECT `a`, NULL AS `b` FROM (SELECT a FROM r) UNION ALL SELECT NULL AS `a`, `b` FROM (SELECT b FROM r)'
    """
    if not _OURS.search(text):
        return text
    source, written = one_statement(text, functions=functions)
    node = time_windows(source, plain_forms(source, written))
    columns = {table.name.lower(): table.column_names for table in tables}
    for select in list(node.find_all(exp.Select)):
        _spell_stars(select, columns)
    for union in reversed(list(node.find_all(exp.Union))):  # those inside others first
        if union.args.get("by_name"):
            _spell_names(union, columns)
    return node.sql(dialect="spark", comments=False)


def _spell_stars(select: exp.Select, columns: Columns) -> None:
    """Writes the columns out that `* REPLACE (...)` and `* RENAME (...)` stand for, where all sources are tables."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        changed = isinstance(star, exp.Star) and any(star.args.get(each) for each in ("replace", "rename"))
        listed = _columns_of(select, columns, item.table if isinstance(item, exp.Column) else "") if changed else None
        items += [item] if listed is None else _changed(star, listed)
    select.set("expressions", items)


def _columns_of(select: exp.Select, columns: Columns, alias: str = "") -> list[tuple[str, str]] | None:
    """The columns that a star stands for, each with its table; None if that cannot be told from the text."""
    start = select.args.get("from_")
    sources = [] if start is None else [start.this, *(join.this for join in select.args.get("joins") or ())]
    found: list[tuple[str, str]] = []
    for source in sources:
        if alias and source.alias_or_name.lower() != alias.lower():
            continue
        if not isinstance(source, exp.Table) or source.name.lower() not in columns:
            return None
        found += [(source.alias_or_name, name) for name in columns[source.name.lower()]]
    is_joined_by_name = any(j.args.get("using") or j.method == "NATURAL" for j in select.args.get("joins") or ())
    return None if is_joined_by_name or not found else found


def _changed(star: exp.Expr, listed: list[tuple[str, str]]) -> list[exp.Expr]:
    """The items of a star: those that EXCEPT names left out, others replaced or with another name."""
    left_out = {each.name.lower() for each in star.args.get("except_") or ()}
    replaced = {each.alias.lower(): each.this for each in star.args.get("replace") or ()}
    renamed = {each.this.name.lower(): each.alias for each in star.args.get("rename") or ()}
    items: list[exp.Expr] = []
    for table, name in listed:
        if name.lower() not in left_out:
            value = replaced.get(name.lower()) or exp.column(name, table=table, quoted=True)
            items.append(exp.alias_(value.copy(), renamed.get(name.lower(), name), quoted=True))
    return items


def _spell_names(union: exp.Union, columns: Columns) -> None:
    """Writes out which column of one side is which of the other, and NULL where a side lacks one."""
    sides = [union.this, union.expression]
    found = [_names(side, columns) for side in sides]
    if found[0] is None or found[1] is None:
        return
    names = [*found[0], *(name for name in found[1] if not _has(found[0], name))]
    for key, side, own in zip(("this", "expression"), sides, found, strict=True):
        items = [_named(name, own or []) for name in names]
        inner = side.copy() if isinstance(side, exp.Subquery) else exp.Subquery(this=side.copy())
        union.set(key, exp.Select(expressions=items, from_=exp.From(this=inner)))
    union.set("by_name", None)


def _names(side: exp.Expr, columns: Columns) -> list[str] | None:
    """The columns of a side; None if a star hides them."""
    inner = side.unnest()
    if isinstance(inner, exp.SetOperation):
        return _names(inner.this, columns)
    assert isinstance(inner, exp.Select)
    if not any(item.is_star for item in inner.expressions):
        return [item.alias_or_name for item in inner.expressions]
    listed = _columns_of(inner, columns)
    return [name for _, name in listed] if listed and len(inner.expressions) == 1 else None


def _has(names: list[str], name: str) -> bool:
    return name.lower() in {each.lower() for each in names}


def _named(name: str, own: list[str]) -> exp.Expr:
    if _has(own, name):
        return exp.column(name, quoted=True)
    return exp.alias_(exp.null(), name, quoted=True)
