"""Keys that one side has and the other has not: what anti-joins keep, and what outer joins pad.

    absent(R.a, S.b):  block#1: R.a, 0 UNION ALL S.b, 1          (a union, which stores nothing)
                       block#2: SELECT k1, SUM(n) AS n FROM block#1 GROUP BY k1

A key of R is absent from S where n = 0. A change of either side is a change of one group: constant time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from ivme.query.rewrite.clauses import condition_of, is_aggregated, own_columns, set_where
from ivme.query.rewrite.script import Script, aliased, column, select_from
from ivme.query.sql_union import union_of

COUNT = "#n"

Finished = Callable[[exp.Select], exp.Select]
"""Takes a SELECT that a pass made, its columns qualified, to the language of blocks."""


def key_name(number: int) -> str:
    """The name of a key's column, unlike those of users."""
    return f"#{number}"


def keys_of(expressions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Items of SELECT: the expressions under the names of keys."""
    return [aliased(each.copy(), key_name(number)) for number, each in enumerate(expressions, 1)]


def as_branch(select: exp.Select, script: Script) -> exp.Select:
    """The same rows as a branch of a union: a SELECT of one table without groups, over a block if it has to be."""
    plain = not select.args.get("joins") and select.args.get("distinct") is None and not is_aggregated(select)
    return select if plain else script.rows_of(script.add(select))


def absent_keys(left: exp.Select, right: exp.Select, script: Script, *, nulls_equal: bool = False) -> str:
    """The block of all keys, with the number of rows that the right side has for each.

    Both sides are branches whose first items are the keys; the right one may have others. NULL in a key of the right
    side equals no key of the left one, unless `nulls_equal`.
    """
    keys = [item.alias for item in left.expressions]
    sides = []
    for side, number in ((left, 0), (right, 1)):
        branch = side.copy()
        items = [item.copy() for item in side.expressions[: len(keys)]]
        branch.set("expressions", [*items, aliased(exp.Literal.number(number), COUNT)])
        sides.append(branch)
    union = script.add(union_of([sides[0], sides[1] if nulls_equal else without_null_keys(sides[1], len(keys))]))
    counts = select_from(script.reference(union, "u"), [column("u", key) for key in keys])
    counts.append("expressions", aliased(exp.Sum(this=column("u", COUNT)), COUNT))
    counts.set("group", exp.Group(expressions=[column("u", key) for key in keys]))
    return script.add(counts)


def without_null_keys(branch: exp.Select, keys: int) -> exp.Select:
    """The rows of a branch that have all their keys."""
    made = branch.copy()
    known = [
        exp.Not(this=exp.Is(this=item.unalias().copy(), expression=exp.Null()))
        for item in branch.expressions[:keys]
        if not isinstance(item.unalias(), exp.Literal)
    ]
    set_where(made, [*(each.copy() for each in condition_of(branch)), *known])
    return made


def rows_of_keys(
    expressions: Sequence[exp.Expr],
    tables: Sequence[exp.Expr],
    conditions: Sequence[exp.Expr],
    script: Script,
    finished: Finished,
) -> exp.Select:
    """A branch with the values of expressions over joined tables; perhaps of some rows that the join drops."""
    aliases = {found.table for each in expressions for found in own_columns(each)}
    if len(aliases) <= 1:
        own = [table for table in tables if table.alias_or_name in aliases] or list(tables[:1])
        return select_from(own[0].copy(), keys_of(expressions))
    select = select_from(tables[0].copy(), keys_of(expressions))
    select.set("joins", [exp.Join(this=table.copy()) for table in tables[1:]])
    select.set("distinct", exp.Distinct())
    set_where(select, [each.copy() for each in conditions if each.find(exp.Placeholder) is None])
    return as_branch(finished(select), script)


def is_absent(alias: str) -> exp.Expr:
    """The condition that a row of `absent_keys` is a key that only the left side has."""
    return exp.EQ(this=column(alias, COUNT), expression=exp.Literal.number(0))


def padded(
    left: exp.Select,
    right: exp.Select,
    script: Script,
    missing: exp.Expr | None = None,
    *,
    nulls_equal: bool = False,
) -> str:
    """The union of the right side's rows with one row of NULLs for each key that only the left side has.

    `missing` is what stands in the other columns of such a row in the place of NULL.
    """
    keys = [item.alias for item in left.expressions]
    absent = absent_keys(left, right, script, nulls_equal=nulls_equal)
    padding = [column("a", key) for key in keys]
    rest = [item.alias for item in right.expressions[len(keys) :]]
    items = [aliased(node, key) for node, key in zip(padding, keys, strict=True)]
    items += [aliased(exp.Null() if missing is None else missing.copy(), name) for name in rest]
    pads = select_from(script.reference(absent, "a"), items)
    set_where(pads, [is_absent("a")])
    return script.add(union_of([right if nulls_equal else without_null_keys(right, len(keys)), pads]))


def null_safe(left: Sequence[exp.Expr], alias: str) -> list[exp.Expr]:
    """That expressions are the keys of a block, NULL for NULL."""
    return [
        exp.NullSafeEQ(this=each.copy(), expression=column(alias, key_name(number)))
        for number, each in enumerate(left, 1)
    ]
