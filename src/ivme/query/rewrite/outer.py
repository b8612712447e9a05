"""Joins become lists of tables and conditions; outer joins, tables padded with NULLs where a key is missing.

    SELECT R.a, S.c FROM R LEFT JOIN S ON R.b = S.b
    block#1: R.b, 0 UNION ALL S.b, 1
    block#2: SELECT k, SUM(n) AS n FROM block#1 GROUP BY k
    block#3: S.b AS k, S.c UNION ALL k, NULL FROM block#2 WHERE n = 0
             SELECT R.a, S.c FROM R, block#3 AS S WHERE R.b <=> S.k

So ten LEFT JOINs are ten padded tables of one join. RIGHT JOIN is LEFT JOIN from the other side; FULL JOIN is LEFT JOIN
together with the padded rows of the right side that have no partner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.query.rewrite.absent import Finished, as_branch, key_name, keys_of, null_safe, padded, rows_of_keys
from ivme.query.rewrite.clauses import condition_of, conjuncts, own_columns, own_nodes, replaced, set_where
from ivme.query.rewrite.from_clause import all_of
from ivme.query.rewrite.pairings import asof_block
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_from
from ivme.query.sql_pairing import ASOF
from ivme.query.sql_union import union_of

_STRICT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Like)
_NULL_IF_A_PART_IS = (
    *_STRICT,
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Placeholder, exp.Paren, exp.Cast, exp.DataType),
    *(exp.DataTypeParam, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Lower, exp.Upper),
)
"""Nodes whose value is NULL as soon as that of a part is."""


@dataclass(slots=True)
class Joins:
    """The FROM clause of one SELECT on its way to a plain list of tables."""

    script: Script
    names: Names
    finish: Finished
    tables: list[exp.Table] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)

    def flat(self, select: exp.Select) -> exp.Select:
        """The SELECT with tables and commas in FROM, and all conditions in WHERE."""
        if not select.args.get("joins"):
            return select
        select = select.copy()
        self.tables = [select.args["from_"].this]
        joins = list(select.args["joins"])
        for number, join in enumerate(joins):
            rest = _Rest(select, joins[number + 1 :], self.names)
            on = [self.names.current(each) for each in conjuncts(join.args.get("on"))]
            side = join.side
            if side in ("RIGHT", "FULL") or join.method == ASOF:
                self._one_table(_Rest(select, joins[number:], self.names))
                on = [self.names.current(each) for each in on]
            if join.method == ASOF:
                self._asof(join, on, rest)
            elif side == "LEFT" and not rest.rejects_nulls(join.this.alias_or_name):
                self._left(join.this, on, rest)
            elif side == "RIGHT":
                self._right(join.this, on, rest)
            elif side == "FULL":
                self._full(join.this, on, rest)
            else:
                self.tables.append(join.this)
                self.conditions += on
        made = self._renamed(select)
        made.set("from_", exp.From(this=self.tables[0].copy()))
        made.set("joins", [exp.Join(this=table.copy()) for table in self.tables[1:]])
        set_where(made, [*self.conditions, *condition_of(made)])
        return made

    def _renamed(self, select: exp.Select) -> exp.Select:
        if not self.names.renamed:
            return select
        for clause, value in list(select.args.items()):
            if clause in ("from_", "joins", "with_") or value is None:
                continue
            if isinstance(value, list):
                select.set(clause, [self.names.current(each) for each in value])
            elif isinstance(value, exp.Expr):
                select.set(clause, self.names.current(value))
        return select

    # LEFT

    def _left(self, table: exp.Table, on: list[exp.Expr], rest: _Rest) -> None:
        alias = table.alias_or_name
        match = _Match.of(alias, on)
        right = select_from(table.copy(), [*keys_of(match.inner), *rest.items(alias)])
        set_where(right, match.own)
        left = match.outer
        if match.rest:
            left, right = self._joined(table, match, rest)
        branch = as_branch(right, self.script)
        name = padded(self._rows(left), branch, self.script, nulls_equal=bool(match.rest))
        self.names.tables[alias] = self.script.reference(name, alias)  # what subqueries read of it may be padded
        self.tables.append(self.names.tables[alias])
        self.conditions += null_safe(left, alias)

    def _joined(self, table: exp.Table, match: _Match, rest: _Rest) -> tuple[list[exp.Expr], exp.Select]:
        """The pairs of keys and right rows that meet all conditions; keys are what the conditions read on the left."""
        alias = table.alias_or_name
        read = [each for part in match.rest for each in own_columns(part) if each.table != alias]
        others = list({(each.table, each.name): each for each in read}.values())
        left = [*match.outer, *others]
        keys = self.script.add(self.finish(_distinct(self._rows(left))))
        known = fresh_name("l", [*self.names.tables, alias])
        place = {(each.table, each.name): len(match.outer) + n for n, each in enumerate(others, 1)}

        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and node.table != alias:
                return column(known, key_name(place[node.table, node.name]))
            return None

        items = [aliased(column(known, key_name(n)), key_name(n)) for n in range(1, len(left) + 1)]
        pairs = select_from(self.script.reference(keys, known), [*items, *rest.items(alias)])
        pairs.set("joins", [exp.Join(this=table.copy())])
        equal = [
            exp.EQ(this=column(known, key_name(n)), expression=inner.copy())
            for n, (outer, inner) in enumerate(zip(match.outer, match.inner, strict=True), 1)
            if not isinstance(outer, exp.Literal)
        ]
        set_where(pairs, [*equal, *match.own, *(replaced(each, change) for each in match.rest)])
        return left, self.finish(pairs)

    def _rows(self, expressions: list[exp.Expr]) -> exp.Select:
        return rows_of_keys(expressions, self.tables, self.conditions, self.script, self.finish)

    # RIGHT and FULL

    def _right(self, table: exp.Table, on: list[exp.Expr], rest: _Rest) -> None:
        (left,) = self.tables
        self.tables, self.conditions = [table], []
        if rest.rejects_nulls(left.alias_or_name):
            self.tables.append(left)
            self.conditions += on
        else:
            self._left(left, on, rest.of_block(left))

    def _full(self, table: exp.Table, on: list[exp.Expr], rest: _Rest) -> None:
        (left,) = self.tables
        mine, others = rest.of_block(left).items(left.alias_or_name), rest.items(table.alias_or_name)
        if not mine and not others:
            mine = [aliased(exp.Literal.number(1), "#one")]
        columns: list[str] = []
        for item in (*mine, *others):
            columns.append(fresh_name(item.alias, columns))
        renamed = [aliased(item.unalias(), name) for item, name in zip((*mine, *others), columns, strict=True)]
        both = select_from(left.copy(), [each.copy() for each in renamed])
        both.set("joins", [exp.Join(this=table.copy(), side="LEFT", on=all_of(on))])
        partner = select_from(left.copy(), [aliased(exp.Literal.number(1), "one")])
        set_where(partner, [each.copy() for each in on])
        others_only = [each.copy() for each in renamed[len(mine) :]] or [aliased(exp.Literal.number(1), "#one")]
        alone = select_from(table.copy(), others_only)
        set_where(alone, [exp.Not(this=exp.Exists(this=partner))])
        alone = as_branch(self.finish(alone), self.script).copy()
        values = {item.alias: item.unalias() for item in alone.expressions}
        alone.set(
            "expressions", [aliased(values[name].copy() if name in values else exp.Null(), name) for name in columns]
        )
        name = self.script.add(union_of([as_branch(self.finish(both), self.script), alone]))
        self._become(name, [(item.unalias(), new) for item, new in zip((*mine, *others), columns, strict=True)])

    # ASOF

    def _asof(self, join: exp.Join, on: list[exp.Expr], rest: _Rest) -> None:
        (left,) = self.tables
        table = join.this
        mine, others = rest.of_block(left).items(left.alias_or_name), rest.items(table.alias_or_name)
        columns: list[str] = []
        for item in (*mine, *others):
            columns.append(fresh_name(item.alias, columns))
        items = [aliased(item.unalias(), name) for item, name in zip((*mine, *others), columns, strict=True)]
        made = asof_block(self.script.source, left, join, on, items)
        name = self.script.add(made)
        self._become(name, [(item.unalias(), item.alias) for item in items])

    def _one_table(self, rest: _Rest) -> exp.Table:
        """The left side as one table: a block, if it is a join."""
        if len(self.tables) == 1:
            return self.tables[0]
        items: list[exp.Expr] = []
        taken: list[str] = []
        for table in self.tables:
            for item in rest.of_block(table).items(table.alias_or_name):
                if not item.alias.startswith("#"):
                    taken.append(fresh_name(item.alias, taken))
                    items.append(aliased(item.unalias(), taken[-1]))
        select = select_from(self.tables[0].copy(), items or [aliased(exp.Literal.number(1), "one")])
        select.set("joins", [exp.Join(this=table.copy()) for table in self.tables[1:]])
        set_where(select, [each.copy() for each in self.conditions])
        name = self.script.add(self.finish(select))
        return self._become(name, [(item.unalias(), item.alias) for item in items])

    def _become(self, name: str, columns: list[tuple[exp.Expr, str]]) -> exp.Table:
        """The tables so far are this block from now on: their columns are its columns."""
        alias = fresh_name("f", self.names.tables)
        table = self.script.reference(name, alias)
        known = {(old.table, old.name): column(alias, new) for old, new in columns if isinstance(old, exp.Column)}
        for key in [*self.names.renamed, *known]:
            self.names.renamed[key] = replaced(self.names.column(*key), lambda node: _known(node, known))
        self.names.tables[alias] = table
        self.tables, self.conditions = [table], []
        return table


def _known(node: exp.Expr, columns: Mapping[tuple[str, str], exp.Column]) -> exp.Expr | None:
    found = columns.get((node.table, node.name)) if isinstance(node, exp.Column) else None
    return None if found is None else found.copy()


@dataclass(frozen=True, slots=True)
class _Match:
    """The conditions of a join with a table: pairs of equal keys, its own conditions, and those over both sides."""

    outer: list[exp.Expr]
    inner: list[exp.Expr]
    own: list[exp.Expr]
    rest: list[exp.Expr]

    @staticmethod
    def of(alias: str, on: list[exp.Expr]) -> _Match:
        outer: list[exp.Expr] = []
        inner: list[exp.Expr] = []
        own: list[exp.Expr] = []
        rest: list[exp.Expr] = []
        for each in on:
            sides = _sides(each)
            mine = [found.table == alias for found in own_columns(each)]
            if all(mine):
                own.append(each)
            elif not any(mine):
                outer.append(_flag(each))
                inner.append(exp.Literal.number(1))
            elif sides is not None and [_owners(side, alias) for side in sides] in (["outer", "own"], ["own", "outer"]):
                first, second = sides if _owners(sides[0], alias) == "outer" else sides[::-1]
                outer.append(first)
                inner.append(second)
            else:
                rest.append(each)
        if not outer and not rest:
            outer, inner = [exp.Literal.number(1)], [exp.Literal.number(1)]
        return _Match(outer, inner, own, rest)


def _sides(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    return (node.this.unnest(), node.expression.unnest()) if isinstance(node, exp.EQ) else None


def _owners(node: exp.Expr, alias: str) -> str:
    """Whether an expression is over the table of that alias, over others, or over both or none."""
    found = {each.table == alias for each in own_columns(node)}
    return {frozenset({True}): "own", frozenset({False}): "outer"}.get(frozenset(found), "mixed")


def _flag(condition: exp.Expr) -> exp.Expr:
    """A key that matches only where the condition holds."""
    branches = [exp.If(this=condition.copy(), true=exp.Literal.number(1))]
    return exp.Case(ifs=branches, default=exp.Literal.number(0))


def _distinct(select: exp.Select) -> exp.Select:
    made = select.copy()
    made.set("distinct", exp.Distinct())
    return made


@dataclass(frozen=True, slots=True)
class _Rest:
    """What comes after a join: all that may read its columns."""

    select: exp.Select
    joins: list[exp.Join]
    names: Names
    whole: frozenset[str] = frozenset()

    def of_block(self, table: exp.Table) -> _Rest:
        """The same for a table that is a block, whose columns are all read."""
        if table.alias_or_name in self.names.sources:
            return self
        self.names.tables[table.alias_or_name] = table
        return _Rest(self.select, self.joins, self.names, self.whole | {table.alias_or_name})

    def items(self, alias: str) -> list[exp.Expr]:
        """The columns of a table that are read, as items of SELECT; all of them if a subquery may read them."""
        columns = self.names.script.columns_of(self.names.tables[alias]) or ()
        known = [name for name in columns if not name.startswith("#")]
        if alias in self.whole or self._has_queries():
            return [aliased(column(alias, name), name) for name in known]
        read = {found.name for part in self._parts() for found in own_columns(part) if found.table == alias}
        return [aliased(column(alias, name), name) for name in known if name in read]

    def rejects_nulls(self, alias: str) -> bool:
        """Whether WHERE holds for no row in which all columns of a table are NULL."""
        for each in condition_of(self.select):
            strict = isinstance(each, _STRICT) and all(isinstance(n, _NULL_IF_A_PART_IS) for n in own_nodes(each))
            if strict and any(found.table == alias for found in own_columns(each)):
                return not any(join.side in ("RIGHT", "FULL") for join in self.joins)
        return False

    def _has_queries(self) -> bool:
        return any(isinstance(node, exp.Query) for part in self._parts() for node in own_nodes(part))

    def _parts(self) -> list[exp.Expr]:
        found: list[exp.Expr] = []
        for clause, value in self.select.args.items():
            if clause not in ("from_", "joins", "with_"):
                found += [
                    node for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr)
                ]
        return found + [join.args["on"] for join in self.joins if join.args.get("on") is not None]
