"""A pairing of a script: a SELECT of two tables, whose JOIN says that they meet in an inequality.

SELECT l.id AS id, SUM(r.price) AS price FROM orders AS l RANGE JOIN prices AS r ON l.item = r.item AND l.day >= r.day

A column of which only sums are taken stands in SUM. Items of the left table come before those of the right one.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from ivme.query.model import Table
from ivme.query.pairing import FLIPPED, Comparison, Pairing, Side
from ivme.query.sql_text import SqlText
from ivme.query.sql_union import read_union, union_of

ASOF, RANGE = "ASOF", "RANGE"
"""How the joins of pairings are called: each left row with the nearest right row, or with all that meet it."""

OPERATORS: dict[type[exp.Expr], Comparison] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def is_pairing(node: exp.Expr) -> bool:
    """Whether a node of a script is one."""
    joins: list[exp.Join] = (node.args.get("joins") or []) if isinstance(node, exp.Select) else []
    return len(joins) == 1 and joins[0].method in (ASOF, RANGE)


def conditions_of(node: exp.Expr) -> list[exp.Expr]:
    """Its comparisons: of keys first, then of bounds."""
    found = _flat(node.args["joins"][0].args["on"])
    return [*(each for each in found if isinstance(each, exp.EQ)), *(e for e in found if not isinstance(e, exp.EQ))]


def read_pairing(source: SqlText, node: exp.Expr, tables: Iterable[Table], name: str) -> Pairing:
    """The pairing that a node says."""
    declared = tuple(tables)
    join = node.args["joins"][0]
    holders = node.args["from_"].this, join.this
    aliases = [holder.alias_or_name for holder in holders]
    keys: tuple[list[exp.Expr], list[exp.Expr]] = ([], [])
    bounds: tuple[list[exp.Expr], list[exp.Expr]] = ([], [])
    comparisons: list[Comparison] = []
    for condition in conditions_of(node):
        sides = [condition.this, condition.expression]
        is_flipped = alias_of(sides[0]) == aliases[1]
        for place, side in enumerate(reversed(sides) if is_flipped else sides):
            (keys if isinstance(condition, exp.EQ) else bounds)[place].append(side)
        if not isinstance(condition, exp.EQ):
            comparison = OPERATORS[type(condition)]
            comparisons.append(FLIPPED[comparison] if is_flipped else comparison)
    bounds = (bounds[0][:1], bounds[1])
    sides_made = [
        _side(source, node, holder, keys[place], bounds[place], declared) for place, holder in enumerate(holders)
    ]
    columns = tuple(item.alias for item in node.expressions)
    known = {table.name: table for table in declared}
    read = tuple(known[each] for each in dict.fromkeys(side.relation for side in sides_made))
    first = join.method == ASOF
    pads = first and join.side == "LEFT"
    return Pairing(name, columns, sides_made[0], sides_made[1], tuple(comparisons), read, first, pads)


def _side(
    source: SqlText,
    node: exp.Expr,
    holder: exp.Table,
    keys: list[exp.Expr],
    bounds: list[exp.Expr],
    tables: tuple[Table, ...],
) -> Side:
    """A side, read as a branch of a union is."""
    items = [item.unalias() for item in node.expressions if alias_of(item) == holder.alias_or_name]
    shown = [item.this if isinstance(item, exp.Sum) else item for item in items]
    wanted = [*keys, *bounds, *shown]
    listed = [exp.Alias(this=each.copy(), alias=exp.to_identifier(f"c{n}")) for n, each in enumerate(wanted)]
    select = exp.Select(expressions=listed, from_=exp.From(this=holder.copy()))
    where = node.args.get("where")
    mine = [each for each in ([] if where is None else _flat(where.this)) if alias_of(each) == holder.alias_or_name]
    if mine:
        made = mine[0].copy()
        for each in mine[1:]:
            made = exp.And(this=made, expression=each.copy())
        select.set("where", exp.Where(this=made))
    branch = read_union(source, union_of([select]), tables, "").branches[0]
    assert branch.relation is not None
    first, second = len(keys), len(keys) + len(bounds)
    summed = frozenset(place for place, item in enumerate(items) if isinstance(item, exp.Sum))
    found = branch.columns
    return Side(branch.relation, found[:first], found[first:second], found[second:], branch.where, summed)


def alias_of(node: exp.Expr) -> str | None:
    """The table whose columns an expression reads; None if there are several or none."""
    found = {each.table for each in node.find_all(exp.Column)}
    return found.pop() if len(found) == 1 else None


def _flat(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return [*_flat(node.this), *_flat(node.expression)] if isinstance(node, exp.And) else [node]
