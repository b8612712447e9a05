"""The FROM clause as users write it, in fewer forms: joins in parentheses, semi- and anti-joins, ON of inner joins."""

from __future__ import annotations

from sqlglot import exp

from ivme.query.rewrite.clauses import condition_of, conjuncts, replaced, set_where
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.script import aliased, select_from
from ivme.query.sql_text import SqlText

Ties = list[tuple[exp.Join, list[exp.Expr]]]
"""Joins of blocks that a LATERAL became, each with the conditions that tie it to the tables before it."""


def flatten(select: exp.Select) -> None:
    """Takes a join in parentheses at the start of FROM, or one that is joined by an inner join, out of them."""
    start = select.args.get("from_")
    if start is None:
        return
    if isinstance(start.this, exp.Lateral) and isinstance(start.this.this, exp.Subquery):
        plain = start.this.this.copy()  # there is nothing before it that it could read
        plain.set("alias", start.this.args.get("alias"))
        start.set("this", plain)
    joins: list[exp.Join] = []
    pads = any(join.side for join in select.args.get("joins") or ())  # then a condition in ON is not one in WHERE
    for holder in (start, *(select.args.get("joins") or ())):
        is_start = holder is start
        parts = parts_of_join(holder.this)
        if parts is not None and not parts[1] and not is_start:  # a table in parentheses
            holder.set("this", parts[0])
            joins.append(holder)
            continue
        inner = parts is not None and not pads and not any(_is_special(join) for join in (holder, *parts[1]))
        if parts is None or not (is_start or inner):
            joins += [] if is_start else [holder]
            continue
        first, inside = parts
        if is_start:
            holder.set("this", first)
            joins += inside
            continue
        if holder.args.get("on") is not None:
            select.set("where", _and_where(select, holder.args["on"]))
        joins += [exp.Join(this=first, kind="CROSS"), *inside]
    select.set("joins", joins)


def _is_special(join: exp.Expr) -> bool:
    """Whether a join means something else once other tables stand before it: NATURAL, USING, and all but inner ones."""
    if not isinstance(join, exp.Join):
        return False
    return bool(join.side or join.kind in ("SEMI", "ANTI") or join.method or join.args.get("using"))


def parts_of_join(node: exp.Expr) -> tuple[exp.Expr, list[exp.Join]] | None:
    """The first table and the joins of a join in parentheses; None for anything else."""
    own = list(node.args.get("joins") or ())
    is_derived = isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table | exp.Subquery)
    if own and (isinstance(node, exp.Table) or is_derived or node.args.get("alias") is not None):
        first = node.copy()
        first.set("joins", None)
        return first, own
    if not isinstance(node, exp.Subquery) or is_derived or node.args.get("alias") is not None:
        return None
    inside = parts_of_join(node.this) or (node.this, [])
    return inside[0], [*inside[1], *own]


def _and_where(select: exp.Select, condition: exp.Expr) -> exp.Where:
    where = select.args.get("where")
    return exp.Where(
        this=condition if where is None else exp.And(this=exp.Paren(this=where.this), expression=condition)
    )


def conditions_to_where(select: exp.Select) -> None:
    """ON of inner joins says what WHERE would; beside outer joins it stays where it is."""
    joins = list(select.args.get("joins") or ())
    if any(join.side in ("LEFT", "RIGHT", "FULL") for join in joins):
        return
    on = [each for join in joins for each in conjuncts(join.args.get("on"))]
    if joins:
        select.set("joins", [exp.Join(this=join.this) for join in joins])
        set_where(select, [*on, *condition_of(select)])


def exists_for_semi_joins(select: exp.Select, source: SqlText) -> None:
    """LEFT SEMI JOIN and LEFT ANTI JOIN as EXISTS and NOT EXISTS."""
    joins: list[exp.Join] = []
    tests: list[exp.Expr] = []
    for join in select.args.get("joins") or ():
        if join.kind not in ("SEMI", "ANTI"):
            if tests and join.side in ("RIGHT", "FULL"):
                message = f"{join.side} JOIN after a SEMI or ANTI JOIN is not supported"
                raise source.unsupported(message, join.this, "put the first joins into a subquery in FROM")
            joins.append(join)
            continue
        partner = select_from(join.this, [aliased(exp.Literal.number(1), "one")])
        if join.args.get("using"):
            start = select.args["from_"].this.alias_or_name
            mine = join.this.alias_or_name
            pairs = [
                exp.EQ(this=column_of(start, name), expression=column_of(mine, name)) for name in join.args["using"]
            ]
            set_where(partner, pairs)
        elif join.args.get("on") is not None:
            set_where(partner, [join.args["on"]])
        exists = exp.Exists(this=partner)
        tests.append(exists if join.kind == "SEMI" else exp.Not(this=exists))
    if tests:
        select.set("joins", joins)
        set_where(select, [*condition_of(select), *tests])


def column_of(alias: str, name: exp.Identifier) -> exp.Column:
    return exp.Column(this=name.copy(), table=exp.to_identifier(alias))


_TIED = "#tied "


def tied_alias(alias: str) -> str:
    """What a LATERAL is called in the conditions that tie it, before its SELECT knows what it is called there."""
    return f"{_TIED}{alias}"


def tie(select: exp.Select, names: Names, ties: Ties) -> None:
    """Adds qualified conditions to joins; inner joins have theirs in WHERE."""

    def change(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column) or not node.table.startswith(_TIED):
            return None
        return names.column(node.table.removeprefix(_TIED), node.name)

    inner = not any(join.side for join in select.args.get("joins") or ())
    for join, written in ties:
        conditions = [replaced(each, change) for each in written]
        if inner:
            set_where(select, [*conditions, *condition_of(select)])
        elif conditions:
            join.set("kind", None)
            own = [each for each in conjuncts(join.args.get("on")) if not is_true(each)]
            join.set("on", all_of([*own, *conditions]))


def all_of(conditions: list[exp.Expr]) -> exp.Expr:
    """The conditions, joined by AND."""
    made: exp.Expr = exp.Boolean(this=True)
    for number, each in enumerate(conditions):
        made = each.copy() if number == 0 else exp.And(this=made, expression=each.copy())
    return made


def is_true(condition: exp.Expr | None) -> bool:
    """Whether ON says nothing."""
    return condition is None or (isinstance(condition, exp.Boolean) and bool(condition.this))


def named_columns(alias: exp.Expr | None) -> list[str] | None:
    """The names that an alias gives to columns."""
    return None if alias is None or not alias.args.get("columns") else [c.name for c in alias.args["columns"]]


def under(table: exp.Table, alias: str) -> exp.Table:
    """A table under an alias."""
    made = table.copy()
    made.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return made
