"""Tables that meet in one of several equalities: a union of joins, in which each pair of rows comes once.

SELECT R.a, S.d FROM R JOIN S ON R.b = S.b OR R.c = S.c
block#1: SELECT R.a, S.d FROM R JOIN S ON R.b = S.b
block#2: SELECT R.a, S.d FROM R JOIN S ON R.c = S.c, without the rows of block#1: NOT COALESCE(R.b = S.b, FALSE)
block#3: block#1 UNION ALL block#2
         SELECT j.a, j.d FROM block#3 AS j

Without it the join would be one of all rows with all rows, of which the condition then leaves a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from ivme.query.rewrite.absent import as_branch
from ivme.query.rewrite.clauses import condition_of, conjuncts, own_columns, set_where
from ivme.query.rewrite.script import Script, aliased, column, fresh_name
from ivme.query.sql_union import union_of

_MOST = 10
"""The most equalities that become joins of their own: the last one has all others as conditions."""

Columns = dict[tuple[str, str], str]
"""The columns that are read, by table and name, each with its name in the block."""


def union_of_joins(
    select: exp.Select, read: Iterable[exp.Expr], script: Script, finish: Callable[[exp.Select], exp.Select]
) -> tuple[str, Columns] | None:
    """The block of the joined rows, and the columns that `read` reads of them; None if equalities join all tables.

    Conditions with parameters are left to the caller, as blocks have none. `finish` gets a SELECT of tables into the
    language of blocks.
    """
    conditions = [each for each in condition_of(select) if each.find(exp.Placeholder) is None]
    groups = _joined(_aliases(select), conditions)
    chosen = next((each for each in conditions if _joins_always(each, groups)), None) if len(groups) > 1 else None
    if chosen is None:
        return None
    columns = columns_read(read)
    rest = [each for each in conditions if each is not chosen]
    ways = _alternatives(chosen)
    branches = []
    for number, way in enumerate(ways):
        others = [exp.Not(this=exp.Coalesce(this=each.copy(), expressions=[exp.false()])) for each in ways[:number]]
        branch = joined_rows(select, columns, [*rest, *conjuncts(way), *others])
        branches.append(as_branch(finish(branch), script))
    return script.add(union_of(branches)), columns


def joined_rows(select: exp.Select, columns: Columns, conditions: list[exp.Expr]) -> exp.Select:
    """The columns of the joined rows of a SELECT for which conditions hold, in place of its own."""
    items = [aliased(column(*key), name) for key, name in columns.items()]
    made = exp.Select(expressions=items or [aliased(exp.Literal.number(1), "one")])
    for clause in ("from_", "joins", "with_"):
        value = select.args.get(clause)
        made.set(clause, [each.copy() for each in value] if isinstance(value, list) else value and value.copy())
    for join in made.args.get("joins") or ():
        join.set("on", None)
    set_where(made, [each.copy() for each in conditions])
    return made


def columns_read(read: Iterable[exp.Expr]) -> Columns:
    """The columns that some expressions read."""
    columns: Columns = {}
    for found in (found for node in read for found in own_columns(node)):
        key = (found.table, found.name)
        if key not in columns:
            columns[key] = fresh_name(found.name, columns.values())
    return columns


def _aliases(select: exp.Select) -> list[str]:
    start, joins = select.args.get("from_"), select.args.get("joins") or ()
    if start is None or any(join.side or join.method or join.args.get("on") for join in joins):
        return []
    return [each.this.alias_or_name for each in (start, *joins)]


def _joined(aliases: list[str], conditions: Iterable[exp.Expr]) -> list[set[str]]:
    """The tables in groups that equalities join."""
    groups = [{each} for each in aliases]
    for condition in conditions:
        sides = _sides(condition)
        if sides is not None:
            met = [group for group in groups if group & sides]
            groups = [group for group in groups if not group & sides]
            groups.append(set().union(*met))
    return groups


def _sides(condition: exp.Expr) -> set[str] | None:
    """The two tables of which an expression of one equals one of the other; None of any other condition."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    sides = [{found.table for found in own_columns(each)} for each in (condition.this, condition.expression)]
    return sides[0] | sides[1] if len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1] else None


def _joins_always(condition: exp.Expr, groups: list[set[str]]) -> bool:
    """Whether each alternative has an equality between tables that nothing else joins."""
    ways = _alternatives(condition)
    if not 1 < len(ways) <= _MOST:
        return False
    return all(any(_joins(each, groups) for each in conjuncts(way)) for way in ways)


def _joins(condition: exp.Expr, groups: list[set[str]]) -> bool:
    sides = _sides(condition)
    return sides is not None and not any(sides <= group for group in groups)


def _alternatives(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions of which one must hold: those that OR joins, or the equalities of an IN."""
    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        return [part for each in condition.flatten() for part in _alternatives(each)]
    if isinstance(condition, exp.In) and condition.expressions and condition.args.get("query") is None:
        return [exp.EQ(this=condition.this.copy(), expression=each.copy()) for each in condition.expressions]
    return [condition]
