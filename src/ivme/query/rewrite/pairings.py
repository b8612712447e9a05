"""Joins by inequalities: two tables of FROM become a block of the pairs that meet (query/pairing.py).

    SELECT R.a, S.c FROM R JOIN S ON R.b = S.b AND R.d >= S.d
    block#1: SELECT R.a AS a, S.c AS c FROM R RANGE JOIN S ON R.b = S.b AND R.d >= S.d
             SELECT p.a, p.c FROM block#1 AS p

Columns of which a SELECT with aggregates reads only sums and counts stand in SUM.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.clauses import (
    aggregates_in,
    condition_of,
    conjuncts,
    is_aggregated,
    own_columns,
    own_nodes,
    replaced,
    set_where,
)
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_from
from ivme.query.sql_pairing import ASOF, OPERATORS, RANGE, alias_of
from ivme.query.sql_text import SqlText

_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul),
    *(exp.Interval, exp.Var, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.Coalesce, exp.DataType),
)
"""What may be compared for a row that has no partner: it has a value for every row."""

_ASOF_HINT = "write equalities of both sides, and one of <, <=, > and >= between them, joined by AND"


# ASOF


def asof_block(
    source: SqlText, left: exp.Table, join: exp.Join, on: list[exp.Expr], items: list[exp.Expr]
) -> exp.Select:
    """The block of the rows of a table, each with its partner; `items` are the columns that are read of both."""
    mine, others = left.alias_or_name, join.this.alias_or_name
    nearest = [each for each in on if type(each) in OPERATORS and _is_across(each, mine, others)]
    own = [each for each in on if alias_of(each) == others]
    wrong = [
        each
        for each in on
        if each not in (*nearest, *own) and not (isinstance(each, exp.EQ) and _is_across(each, mine, others))
    ]
    if wrong or len(nearest) != 1:
        what = "ASOF JOIN compares both sides by one inequality, and by equalities beside it"
        raise source.unsupported(what, wrong[0] if wrong else (*nearest[1:], join.this)[0], _ASOF_HINT)
    made = select_from(left.copy(), [each.copy() for each in items])
    compared = [each.copy() for each in on if each not in own]
    side = None if join.kind == "INNER" else "LEFT"
    made.set("joins", [exp.Join(this=join.this.copy(), method=ASOF, side=side, on=_all(compared))])
    set_where(made, [each.copy() for each in own])
    return made


def _is_across(node: exp.Expr, mine: str, others: str) -> bool:
    """Whether a comparison is of one side with the other."""
    return {alias_of(node.this), alias_of(node.expression)} == {mine, others}


# Inequalities


def pair_tables(select: exp.Select, script: Script) -> exp.Select:
    """The SELECT with blocks in the place of tables that meet in inequalities."""
    while True:
        found = _found(select)
        if found is None:
            return select
        select = _paired(select, script, found)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two tables, their equalities, and how an expression of the left one is compared with one or two of the right."""

    left: exp.Table
    right: exp.Table
    keys: tuple[exp.Expr, ...]
    comparisons: tuple[exp.Expr, ...]
    consumed: tuple[exp.Expr, ...]


def _tables(select: exp.Select) -> list[exp.Table]:
    start = select.args.get("from_")
    joins = select.args.get("joins") or ()
    holders = [] if start is None else [start.this, *(join.this for join in joins)]
    is_plain = all(isinstance(each, exp.Table) for each in holders) and not any(j.side or j.method for j in joins)
    return holders if is_plain else []


def _conditions(select: exp.Select) -> list[exp.Expr]:
    on = [each for join in select.args.get("joins") or () for each in conjuncts(join.args.get("on"))]
    return [part for each in (*on, *condition_of(select)) for part in _spread(each)]


def _spread(condition: exp.Expr) -> list[exp.Expr]:
    """BETWEEN as two comparisons."""
    if not isinstance(condition, exp.Between) or condition.args.get("symmetric"):
        return [condition]
    low, high = condition.args["low"], condition.args["high"]
    if len({each.table for each in own_columns(condition)}) < 2:
        return [condition]
    return [
        exp.GTE(this=condition.this.copy(), expression=low.copy()),
        exp.LTE(this=condition.this.copy(), expression=high.copy()),
    ]


def _found(select: exp.Select) -> _Meeting | None:
    tables = {table.alias_or_name: table for table in _tables(select)}
    conditions = _conditions(select) if len(tables) > 1 else []
    met = [each for each in conditions if type(each) in OPERATORS and _sides(each) is not None]
    classes = _classes(conditions)
    for condition in met:
        mine, other = _sides(condition) or ("", "")
        if mine not in tables or other not in tables:
            continue
        keys = _keys(classes, mine, other)
        if not keys and len(tables) > 2 and _are_connected(conditions, mine, other):
            continue
        return _meeting(tables, met, condition, keys, conditions)
    return None


def _sides(node: exp.Expr) -> tuple[str, str] | None:
    """The two tables whose expressions are compared; None if they are not two, or an expression may fail."""
    sides = [alias_of(node.this), alias_of(node.expression)]
    plain = all(_is_plain(each) for part in (node.this, node.expression) for each in own_nodes(part))
    if not plain or None in sides or sides[0] == sides[1] or node.find(exp.Placeholder) is not None:
        return None
    return str(sides[0]), str(sides[1])


def _is_plain(node: exp.Expr) -> bool:
    return isinstance(node, _PLAIN) or (isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal))


def _meeting(
    tables: dict[str, exp.Table],
    met: list[exp.Expr],
    condition: exp.Expr,
    keys: list[exp.Expr],
    conditions: list[exp.Expr],
) -> _Meeting:
    """With a second comparison of the same expression from the other side, it is between two bounds."""
    pair = set(_sides(condition) or ())
    for other in met:
        if other is condition or set(_sides(other) or ()) != pair:
            continue
        shared = _shared(condition, other)
        if shared is not None and _is_upper(condition, shared) != _is_upper(other, shared):
            both = sorted((condition, other), key=lambda each: not _is_upper(each, shared))
            left = str(alias_of(shared))
            (right,) = pair - {left}
            consumed = (*both, *_equalities(conditions, keys))
            return _Meeting(tables[left], tables[right], tuple(keys), tuple(both), consumed)
    left, right = _sides(condition) or ("", "")
    consumed = (condition, *_equalities(conditions, keys))
    return _Meeting(tables[left], tables[right], tuple(keys), (condition,), consumed)


def _shared(one: exp.Expr, other: exp.Expr) -> exp.Expr | None:
    """The expression that two comparisons have in common."""
    return next((a for a in (one.this, one.expression) for b in (other.this, other.expression) if a == b), None)


def _is_upper(comparison: exp.Expr, shared: exp.Expr) -> bool:
    """Whether it says that the expression is less than another."""
    return isinstance(comparison, exp.LT | exp.LTE) == bool(comparison.this == shared)


def _equalities(conditions: Iterable[exp.Expr], keys: list[exp.Expr]) -> list[exp.Expr]:
    """The equalities that the keys say: of `a.x = b.z AND a.y = b.z` one is a key, and the other one is not."""
    said = [{key.this, key.expression} for key in keys]
    return [each for each in conditions if isinstance(each, exp.EQ) and {each.this, each.expression} in said]


def _classes(conditions: Iterable[exp.Expr]) -> list[list[exp.Expr]]:
    """Expressions that equalities make one."""
    found: list[list[exp.Expr]] = []
    for each in conditions:
        if isinstance(each, exp.EQ) and _sides(each) is not None:
            sides = [each.this, each.expression]
            mine = [group for group in found if any(side in group for side in sides)]
            found = [group for group in found if group not in mine]
            found.append([*dict.fromkeys([*(part for group in mine for part in group), *sides])])
    return found


def _keys(classes: list[list[exp.Expr]], left: str, right: str) -> list[exp.Expr]:
    """Equalities of the two tables, also those that others make."""
    made = []
    for group in classes:
        sides = [next((each for each in group if alias_of(each) == alias), None) for alias in (left, right)]
        if sides[0] is not None and sides[1] is not None:
            made.append(exp.EQ(this=sides[0].copy(), expression=sides[1].copy()))
    return list(made)


def _are_connected(conditions: list[exp.Expr], left: str, right: str) -> bool:
    """Whether equalities with other tables connect the two."""
    reached = {left}
    pairs = [{each.table for each in own_columns(c)} for c in conditions if isinstance(c, exp.EQ)]
    while True:
        more = {alias for pair in pairs if pair & reached for alias in pair} - reached
        if not more:
            return right in reached
        reached |= more


def _paired(select: exp.Select, script: Script, found: _Meeting) -> exp.Select:
    """The SELECT over the block of a meeting, and over the other tables."""
    aliases = [found.left.alias_or_name, found.right.alias_or_name]
    texts = {exact_text(each) for each in found.consumed}
    rest = [each for each in _conditions(select) if exact_text(each) not in texts]
    own = [each for each in rest if alias_of(each) in aliases and _can_be_early(each)]
    late = [each for each in rest if each not in own]
    columns = _columns_read(select, late, aliases)
    summed = _only_summed(select, late) if len(_tables(select)) == 2 else set()
    items = [
        aliased(exp.Sum(this=column(*key)) if key in summed else column(*key), name) for key, name in columns.items()
    ]
    block = select_from(found.left.copy(), items)
    conditions = [each.copy() for each in (*found.keys, *found.comparisons)]
    block.set("joins", [exp.Join(this=found.right.copy(), method=RANGE, on=_all(conditions))])
    set_where(block, [each.copy() for each in own])
    return _over_block(select, script, script.add(block), aliases, columns, late)


def _can_be_early(condition: exp.Expr) -> bool:
    return condition.find(exp.Placeholder, exp.Query) is None


def _columns_read(select: exp.Select, late: list[exp.Expr], aliases: list[str]) -> dict[tuple[str, str], str]:
    """The columns of two tables that are read, those of the first one first, and their names in the block."""
    parts = [*select.expressions, *late]
    parts += [each for clause in ("group", "having", "order") if (each := select.args.get(clause)) is not None]
    read = dict.fromkeys((c.table, c.name) for part in parts for c in own_columns(part))
    found: dict[tuple[str, str], str] = {}
    for alias in aliases:
        for key in read:
            if key[0] == alias:
                found[key] = fresh_name(key[1], found.values())
    return found


def _only_summed(select: exp.Select, late: list[exp.Expr]) -> set[tuple[str, str]]:
    """The columns that stand nowhere but in SUM, AVG and COUNT, alone and without DISTINCT."""
    if not is_aggregated(select):
        return set()
    others = [*late, *(each for clause in ("group", "having") if (each := select.args.get(clause)) is not None)]
    summed: set[tuple[str, str]] = set()
    for item in select.expressions:
        aggregates = aggregates_in(item)
        added = [each for each in aggregates if isinstance(each, exp.Sum | exp.Avg | exp.Count)]
        plain = [each.this for each in added if isinstance(each.this, exp.Column)]
        summed |= {(each.table, each.name) for each in plain}
        inside = {id(each) for each in plain}
        others += [each for each in own_columns(item) if id(each) not in inside]
    return summed - {(each.table, each.name) for part in others for each in own_columns(part)}


def _over_block(
    select: exp.Select,
    script: Script,
    block: str,
    aliases: list[str],
    columns: dict[tuple[str, str], str],
    late: list[exp.Expr],
) -> exp.Select:
    tables = [table for table in _tables(select) if table.alias_or_name not in aliases]
    alias = fresh_name("p", [table.alias_or_name for table in tables])

    def change(node: exp.Expr) -> exp.Expr | None:
        name = columns.get((node.table, node.name)) if isinstance(node, exp.Column) else None
        return None if name is None else column(alias, name)

    made = select.copy()
    made.set("from_", exp.From(this=script.reference(block, alias)))
    made.set("joins", [exp.Join(this=table.copy()) for table in tables])
    for clause in ("group", "having", "order"):
        if made.args.get(clause) is not None:
            made.set(clause, replaced(made.args[clause], change))
    made.set("expressions", [replaced(item, change) for item in select.expressions])
    set_where(made, [replaced(each, change) for each in late])
    return made


def _all(conditions: list[exp.Expr]) -> exp.Expr:
    made = conditions[0]
    for each in conditions[1:]:
        made = exp.And(this=made, expression=each)
    return made
