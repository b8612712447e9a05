"""Expressions and conditions over several tables: a block that joins, and a block that computes with its rows.

SELECT SUM(R.a * S.d) AS total FROM R JOIN S ON R.b = S.b WHERE R.a < S.d
block#1: SELECT R.a, S.d FROM R JOIN S ON R.b = S.b
         SELECT SUM(j.a * j.d) AS total FROM block#1 AS j WHERE j.a < j.d

Without that condition the sum is a block as it is: it needs no rows (`query.sql_joint`).
"""

from __future__ import annotations

from sqlglot import exp

from ivme.errors import UnsupportedError
from ivme.query.rewrite.alternatives import Columns, columns_read, joined_rows, union_of_joins
from ivme.query.rewrite.clauses import aggregates_in, condition_of, items_of, own_columns, replaced, set_where
from ivme.query.rewrite.pairings import pair_tables
from ivme.query.rewrite.script import Script, column
from ivme.query.sql import read_query

JOINED = "j"


def split_across(select: exp.Select, script: Script) -> exp.Select:
    """A SELECT in which each expression is over one table, and tables meet in equalities only."""
    either = union_of_joins(select, _places(select, _asked(select)), script, lambda each: split_across(each, script))
    if either is not None:
        return _over_rows(select, script, *either, _asked(select))
    select = pair_tables(select, script)
    conditions = [*condition_of(select), *_on(select)]
    if not any(map(_needs_rows, conditions)) and not any(_mixes(each) for each in _computed(select)):
        return select
    if not any(map(_needs_rows, conditions)) and _is_one_block(select, script):
        return select
    late = [each for each in conditions if _is_late(each)]
    columns = columns_read(_places(select, late))
    name = script.add(joined_rows(select, columns, [each for each in conditions if not _is_late(each)]))
    return _over_rows(select, script, name, columns, late)


def _asked(select: exp.Select) -> list[exp.Expr]:
    """The conditions with parameters."""
    return [each for each in condition_of(select) if each.find(exp.Placeholder) is not None]


def _is_one_block(select: exp.Select, script: Script) -> bool:
    """Whether a SELECT of tables, not of blocks, whose types are known later, is one block in spite of mixing them."""
    tables = {table.name for table in select.find_all(exp.Table)}
    if tables & script.columns.keys():
        return False
    try:
        read_query(script.source, select.copy(), script.tables.declared, "Q")
    except UnsupportedError:
        return False
    return True


def _on(select: exp.Select) -> list[exp.Expr]:
    return [each for join in select.args.get("joins") or () if join.args.get("on") for each in _flat(join.args["on"])]


def _flat(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return [*_flat(node.this), *_flat(node.expression)] if isinstance(node, exp.And) else [node]


def _places(select: exp.Select, late: list[exp.Expr]) -> list[exp.Expr]:
    group = select.args.get("group")
    return [*select.expressions, *([] if group is None else [group]), *late]


def _computed(select: exp.Select) -> list[exp.Expr]:
    """What is computed for each row: items without aggregates, keys of groups, and arguments of aggregates."""
    group = select.args.get("group")
    places = [inner for _, inner in items_of(select)] + ([] if group is None else list(group.expressions))
    found: list[exp.Expr] = []
    for place in places:
        aggregates = aggregates_in(place)
        found += aggregates or [place]
    return found


def _mixes(node: exp.Expr) -> bool:
    return len({found.table for found in own_columns(node)}) > 1


def _is_late(condition: exp.Expr) -> bool:
    """Whether a condition is tested on joined rows: those with parameters are, since blocks have none."""
    return _needs_rows(condition) or condition.find(exp.Placeholder) is not None


def _needs_rows(condition: exp.Expr) -> bool:
    """Whether a condition needs joined rows: it mixes tables, and is not an equality of one expression of each."""
    if not _mixes(condition):
        return False
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return True
    return _mixes(condition.this) or _mixes(condition.expression)


def _over_rows(select: exp.Select, script: Script, name: str, columns: Columns, late: list[exp.Expr]) -> exp.Select:
    def change(node: exp.Expr) -> exp.Expr | None:
        return column(JOINED, columns[node.table, node.name]) if isinstance(node, exp.Column) else None

    outer = select.copy()
    for clause in ("joins", "with_", "where"):
        outer.set(clause, None)
    outer.set("from_", exp.From(this=script.reference(name, JOINED)))
    outer.set("expressions", [replaced(item, change) for item in select.expressions])
    group = select.args.get("group")
    if group is not None:
        outer.set("group", replaced(group, change))
    set_where(outer, [replaced(each, change) for each in late])
    return outer
