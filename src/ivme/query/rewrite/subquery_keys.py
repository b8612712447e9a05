"""The keys for which a subquery has rows: the columns that tie it to the query around it.

SELECT 1 FROM S WHERE S.c = R.c AND S.d > 1      the keys S.c of S with S.d > 1, which R.c equals
SELECT 1 FROM S WHERE S.c > R.c                  the keys R.c of R joined with S on S.c > R.c
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ivme.errors import UnknownNameError
from ivme.query.exact_text import exact_text
from ivme.query.rewrite.absent import key_name, keys_of, null_safe
from ivme.query.rewrite.clauses import (
    aggregates_in,
    condition_of,
    is_aggregated,
    own_columns,
    own_nodes,
    replaced,
    set_where,
)
from ivme.query.rewrite.domains import Tied, Undecided
from ivme.query.rewrite.grouping_sets import grouping_of, has_sets, refuse_sets
from ivme.query.rewrite.parameters import with_bound
from ivme.query.rewrite.qualify import Names, is_outer
from ivme.query.rewrite.quantifiers import Test
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_all

Open = Callable[[exp.Expr, Names], tuple[exp.Select, Names]]
"""Reads the FROM clause of a subquery and qualifies its names, those of the SELECT around included."""
Finish = Callable[[exp.Select, Names], exp.Select]
"""Takes what is left of a SELECT to the language of blocks."""

_VALUES = "compare the parameter with a column of the query around, too: that of a table of its values, if need be"
_TOO_DEEP = "a subquery inside a subquery cannot be tied to the outermost query here"
_BOTH = "join the tables of both subqueries"
_KEYS = "compare columns of the subquery with columns outside by =, joined by AND, in the WHERE of the subquery"


@dataclass(frozen=True, slots=True)
class Keyed:
    """The keys for which a subquery has rows, as an unfinished SELECT; `outer` is what they equal in the query around.

    NULL equals NULL where the keys are columns of the query around (`nulls_equal`), and nothing where users wrote =.
    """

    select: exp.Select
    names: Names
    outer: list[exp.Expr]
    nulls_equal: bool = False
    is_unique: bool = False
    """Whether it is finished, plain, over one block, and has one row a key: then it can be joined as it is."""

    def equal(self, alias: str) -> list[exp.Expr]:
        """That the keys of a block are those of the query around."""
        if self.nulls_equal:
            return null_safe(self.outer, alias)
        return equal_keys(self.outer, alias)


@dataclass(frozen=True, slots=True)
class SubqueryKeys:
    """Finds the keys of the subqueries of one SELECT, whose names are `names`."""

    script: Script
    names: Names
    open: Open
    finish: Finish

    def of(
        self,
        query: exp.Expr,
        values: list[exp.Expr],
        test: Test | None = None,
        *,
        constant: bool = False,
        joins: bool = False,
    ) -> Keyed:
        """The keys for which a subquery has rows: its columns that equal `values`, and those that tie it outside.

        With `test`, rows count only if it holds for their column. With `constant` a value equals 1 if there is a row.
        With `joins`, the keys are only joined with, and groups may be joined as they are.
        """
        inner, names = self.open(query, self.names)
        items = [item.unalias() for item in inner.expressions]
        if constant:
            items = [exp.Literal.number(1)]
        if values and len(items) != len(values):
            message = f"the subquery has {len(items)} columns, and is compared with {len(values)}"
            raise self.script.source.unsupported(message, query, "select as many columns as there are values")
        tests = [] if test is None else [test(items[0].copy())]
        foreign = any(is_outer(found, names) for each in tests for found in own_columns(each))
        correlated = self._correlated(inner, names)
        is_behind_groups = foreign or has_sets(inner) or any(map(aggregates_in, tests))
        if is_behind_groups and is_aggregated(inner) and not correlated:
            self._refuse_after_where(inner, names)
            try:
                return self.of(select_all(query), values, test, constant=constant, joins=joins)
            except UnknownNameError as error:
                message = f"{_TOO_DEEP}: {error.message}"
                raise self.script.source.unsupported(message, error.position, _BOTH) from None
        if foreign or any(pair_of(each, names) is None for each in correlated):
            return self._joined_outside(inner, names, list(zip(items, values, strict=False)), tests)
        pairs = [*zip(items, values, strict=False), *self.take_correlated(inner, names)]
        set_where(inner, [*condition_of(inner), *tests])
        if is_aggregated(inner):
            return self._of_groups(inner, names, pairs, joins=joins)
        inner.set("expressions", keys_of([key for key, _ in pairs]) or [aliased(exp.Literal.number(1), "one")])
        if pairs:
            inner.set("distinct", None)
        return Keyed(inner, names, [outer for _, outer in pairs])

    def is_tied(self, query: exp.Expr) -> bool:
        """Whether a query with LIMIT or a set operation reads the query around it."""
        saved = self.script.saved()
        try:
            self.open(query, self.names)
        except Tied:
            return True
        finally:
            self.script.restore(saved)
        return False

    def refuse_undecided(self, outer: list[exp.Expr]) -> None:
        """Refuses keys of the query around that are parameters, unless their values are joined."""
        parameter = next((found for each in outer for found in each.find_all(exp.Placeholder)), None)
        if parameter is not None:
            message = f"the parameter :{parameter.name} decides this for values that no row has, too"
            raise Undecided(parameter.name, self.script.source.unsupported(message, parameter, _VALUES))

    def _correlated(self, inner: exp.Select, names: Names) -> list[exp.Expr]:
        return [each for each in condition_of(inner) if any(is_outer(found, names) for found in own_columns(each))]

    def _joined_outside(
        self, inner: exp.Select, names: Names, pairs: list[tuple[exp.Expr, exp.Expr]], tests: list[exp.Expr]
    ) -> Keyed:
        """Joins the tables outside that the conditions of a subquery read, in the subquery; the keys are their columns.

        So any condition may tie it to the query around.
        """
        if is_aggregated(inner):
            message = "a subquery with aggregates is tied to the query around it by equalities only"
            raise self.script.source.unsupported(message, inner, _KEYS)
        set_where(inner, [with_bound(each, self.names.bound) for each in condition_of(inner)])
        read = (*condition_of(inner), *tests, *(item for item, _ in pairs))
        outside = [each for part in read for each in own_columns(part) if is_outer(each, names)]
        outside += [found for _, value in pairs for found in own_columns(value)]
        aliases: dict[str, str] = {}
        for each in outside:
            self._refuse_outermost(each)
            taken = [*names.tables, *aliases.values()]
            aliases.setdefault(each.table, fresh_name(f"{each.table} outside", taken))

        def foreign(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and is_outer(node, names):
                return column(aliases[node.table], node.name)
            return None

        def all_foreign(node: exp.Expr) -> exp.Expr | None:
            return column(aliases[node.table], node.name) if isinstance(node, exp.Column) else None

        sides = [(replaced(item, foreign), replaced(value, all_foreign)) for item, value in pairs]
        equal = [exp.EQ(this=item, expression=value) for item, value in sides]
        set_where(inner, [*(replaced(each, foreign) for each in (*condition_of(inner), *tests)), *equal])
        for alias, new in aliases.items():
            table = self.names.tables[alias].copy()
            table.set("alias", exp.TableAlias(this=exp.to_identifier(new, quoted=True)))
            inner.append("joins", exp.Join(this=table))
            names.tables[new] = table
        keys = list(dict.fromkeys((each.table, each.name) for each in outside))
        inner.set("expressions", keys_of([column(aliases[alias], name) for alias, name in keys]))
        inner.set("distinct", exp.Distinct())
        return Keyed(inner, names, [column(alias, name) for alias, name in keys], nulls_equal=True)

    def _refuse_outermost(self, found: exp.Column) -> None:
        """Refuses a column that is neither of the subquery nor of the query around it, but of one further out."""
        if found.table not in self.names.tables:
            raise self.script.source.unsupported(_TOO_DEEP, found, _BOTH)

    def _of_groups(
        self, inner: exp.Select, names: Names, pairs: list[tuple[exp.Expr, exp.Expr]], *, joins: bool
    ) -> Keyed:
        """The keys of a subquery that groups: those of a block of its rows."""
        if inner.args.get("group") is None and pairs:
            message = "a subquery with aggregates and without GROUP BY has a row for every key"
            raise self.script.source.unsupported(message, inner, "compare its value with =, or leave it out")
        refuse_sets(inner, [key for key, _ in pairs], self.script.source)
        keys, sets = grouping_of(inner)
        group = inner.args.get("group")
        if group is not None and group.args.get("all"):  # of the columns that it shows, which others replace
            inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        tied = {exact_text(key) for key, _ in pairs}
        is_unique = joins and len(sets) == 1 and tied >= {exact_text(key) for key in keys}
        group_by(inner, [key for key, _ in pairs if not aggregates_in(key)])
        inner.set("expressions", keys_of([key for key, _ in pairs]) or [aliased(exp.Count(this=exp.Star()), "one")])
        finished = self.finish(inner, names)
        if is_unique and self._is_one_block(finished):
            return Keyed(finished, names, [outer for _, outer in pairs], is_unique=True)
        rows = self.script.rows_of(self.script.add(finished))
        inside = Names(self.script, tables={"r": rows.args["from_"].this})
        return Keyed(rows, inside, [outer for _, outer in pairs])

    def _is_one_block(self, select: exp.Select) -> bool:
        """Whether a finished SELECT shows columns of one block, filtered at most."""
        is_plain = not is_aggregated(select) and not select.args.get("joins") and select.args.get("distinct") is None
        return is_plain and select.args["from_"].this.name in self.script.columns

    def take_tied(
        self, inner: exp.Select, names: Names, left: Callable[[list[exp.Expr]], exp.Select]
    ) -> tuple[list[tuple[exp.Expr, exp.Expr]], bool]:
        """What ties a subquery that is a value to the query around, as pairs (inside, outside); and if NULLs are equal.

        Where that is more than equalities, the distinct keys of the query around, of the rows that `left` makes, are
        joined in the subquery: any condition may compare with them, and they are what it groups by.
        """
        correlated = self._correlated(inner, names)
        if all(pair_of(each, names) is not None or has_query(each) for each in correlated):
            return self.take_correlated(inner, names), False
        found = [each for part in correlated for each in own_columns(part) if is_outer(each, names)]
        named = dict.fromkeys((each.table, each.name) for each in found)
        keys: list[exp.Expr] = [column(table, name) for table, name in named]
        rows = self.script.rows_of(self.script.add(left(keys)))
        rows.set("distinct", exp.Distinct())
        alias = fresh_name("outside", names.tables)
        table = self.script.reference(self.script.add(rows), alias)
        inner.append("joins", exp.Join(this=table))
        names.tables[alias] = table
        inside = {key.sql(): column(alias, key_name(number)) for number, key in enumerate(keys, 1)}

        def change(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column) and is_outer(node, names):
                return inside[column(node.table, node.name).sql()].copy()
            return None

        set_where(inner, [replaced(each, change) if each in correlated else each for each in condition_of(inner)])
        self.take_correlated(inner, names)  # refuses what else reads the query around
        return [(inside[key.sql()], key) for key in keys], True

    def take_correlated(self, inner: exp.Select, names: Names) -> list[tuple[exp.Expr, exp.Expr]]:
        """Takes the conditions that compare with columns outside off a subquery, as pairs (inside, outside)."""
        pairs, kept = [], []
        for each in condition_of(inner):
            pair = pair_of(each, names)
            if pair is not None:
                for found in own_columns(pair[1]):
                    self._refuse_outermost(found)
                pairs.append((pair[0], with_bound(pair[1], self.names.bound)))
            elif any(is_outer(found, names) for found in own_columns(each)):
                message = "this subquery is tied to the query around it by equalities only"
                raise self.script.source.unsupported(message, each, _KEYS)
            else:
                kept.append(each)
        set_where(inner, kept)
        self._refuse_after_where(inner, names)
        return pairs

    def _refuse_after_where(self, inner: exp.Select, names: Names) -> None:
        for part in read_after_where(inner):
            if any(is_outer(found, names) for found in own_columns(part)):
                raise self.script.source.unsupported("a column of the query around is not allowed here", part, _KEYS)


def equal_keys(outer: list[exp.Expr], alias: str) -> list[exp.Expr]:
    """That expressions are the keys of a block."""
    return [exp.EQ(this=each.copy(), expression=column(alias, key_name(n))) for n, each in enumerate(outer, 1)]


def group_by(inner: exp.Select, keys: list[exp.Expr]) -> None:
    """Adds keys to GROUP BY; a constant is the same in all groups, and a number would be a position."""
    keys = [key for key in keys if next(own_columns(key), None) is not None]
    if keys:
        group = inner.args.get("group")
        old = [] if group is None else list(group.expressions)
        inner.set("group", exp.Group(expressions=[*old, *(key.copy() for key in keys)]))


def pair_of(node: exp.Expr, names: Names) -> tuple[exp.Expr, exp.Expr] | None:
    """The sides of an equality of the subquery and the query around it, the inner one first; None if it is not one."""
    sides = [node.this.unnest(), node.expression.unnest()] if isinstance(node, exp.EQ) else []
    outer = [{True} if isinstance(side, exp.Placeholder) else _sides(side, names) for side in sides]
    if any(has_query(side) for side in sides):
        return None
    if outer == [{False}, {True}]:
        return sides[0], sides[1]
    return (sides[1], sides[0]) if outer == [{True}, {False}] else None


def _sides(node: exp.Expr, names: Names) -> set[bool]:
    return {is_outer(found, names) for found in own_columns(node)}


def has_query(node: exp.Expr) -> bool:
    return any(isinstance(each, exp.Query) for each in own_nodes(node))


def read_after_where(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT reads beside WHERE."""
    joins = [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on") is not None]
    rest = [select.args.get("group"), select.args.get("having")]
    return [*select.expressions, *joins, *(each for each in rest if each is not None)]
