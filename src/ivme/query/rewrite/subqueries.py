"""Subqueries become joins.

    R.b IN (SELECT S.b FROM S WHERE S.c = R.c)         a join with the distinct (b, c) of S
    NOT EXISTS (SELECT 1 FROM S WHERE S.c = R.c)       a join with the keys of R that S has no row for (`absent`)
    R.b > (SELECT AVG(S.b) FROM S WHERE S.c = R.c)     a join with the averages by c
    EXISTS (...) OR R.b = 1                            a join with the keys of both sides, marked 1 or 0

A join with distinct keys leaves the multiplicity of rows as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.absent import (
    Finished,
    absent_keys,
    as_branch,
    is_absent,
    key_name,
    keys_of,
    null_safe,
    padded,
    rows_of_keys,
)
from ivme.query.rewrite.clauses import (
    aggregates_in,
    condition_of,
    is_aggregated,
    is_null_of_none,
    or_of_no_rows,
    own_columns,
    own_nodes,
    replaced,
    set_where,
)
from ivme.query.rewrite.grouping import keys_with_queries
from ivme.query.rewrite.grouping_sets import refuse_sets
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.quantifiers import as_in, is_one_row, quantified, values_of
from ivme.query.rewrite.script import aliased, column, fresh_name
from ivme.query.rewrite.subquery_keys import Keyed, SubqueryKeys, group_by, has_query
from ivme.query.rewrite.tied import first_row, sides_of_union, without_limit

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_MARK, _VALUE, _ROWS = "#mark", "#value", "#rows"
_SEVERAL = "a subquery used as a value has several rows"


@dataclass(slots=True)
class Subqueries:
    """The subqueries of one SELECT on their way into its FROM clause."""

    keys: SubqueryKeys
    finished: Finished
    tables: list[exp.Expr] = field(default_factory=list)
    conditions: list[exp.Expr] = field(default_factory=list)
    added: list[exp.Table] = field(default_factory=list)

    def join(self, select: exp.Select) -> exp.Select:
        """The SELECT with joins in the place of subqueries; of one with groups, those that are computed from rows."""
        if not any(isinstance(node, exp.Query) for part in _parts(select) for node in own_nodes(part)):
            return select
        select = select.copy()
        self.tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        plain = [each for each in condition_of(select) if not has_query(each)]
        self.conditions = plain
        for each in condition_of(select):
            if has_query(each):
                made = self._condition(each)
                self.conditions += [] if made is None else [made]
        if is_aggregated(select):
            self._in_keys(select)
        change = self._in_aggregates if is_aggregated(select) else self._value
        select.set("expressions", [change(item) for item in select.expressions])
        if is_aggregated(select) and select.args.get("having") is not None:
            select.set("having", self._in_aggregates(select.args["having"]))
        set_where(select, self.conditions)
        for table in self.added:
            select.append("joins", exp.Join(this=table))
        return select

    # Conditions

    def _condition(self, node: exp.Expr) -> exp.Expr | None:
        """What is left of a condition once its subqueries are joined."""
        negated = isinstance(node, exp.Not)
        inner = as_in(node.this.unnest() if negated else node)
        if isinstance(inner, exp.Not):
            negated, inner = not negated, inner.this
        parts = self._parts_of_union(inner)
        if parts is not None:
            if not negated:
                return self._value(exp.Or(this=parts[0], expression=parts[1]), positive=True)
            left = [self._condition(exp.Not(this=each)) for each in parts]
            self.conditions += [each for each in left if each is not None]
            return None
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return self._in(inner, negated=negated)
        if isinstance(inner, exp.Exists):
            (self._anti_join if negated else self._semi_join)(self.keys.of(without_limit(inner.this), []))
            return None
        test = quantified(inner)
        if test is not None and not negated:
            query, condition, is_all = test
            keyed = self.keys.of(query, [], condition)
            (self._anti_join if is_all else self._semi_join)(keyed)
            return None
        return self._value(node, positive=True, required=isinstance(node, _COMPARISONS))

    def _parts_of_union(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """EXISTS or IN of a UNION that reads the query around, as one of each side; None for all else."""
        if isinstance(node, exp.Exists):
            sides = sides_of_union(without_limit(node.this))
            made: list[exp.Expr] | None = None if sides is None else [exp.Exists(this=side.copy()) for side in sides]
        elif isinstance(node, exp.In) and node.args.get("query") is not None:
            sides = sides_of_union(node.args["query"])
            queries = None if sides is None else [exp.Subquery(this=side.unnest().copy()) for side in sides]
            made = None if queries is None else [exp.In(this=node.this.copy(), query=each) for each in queries]
        else:
            return None
        query = node.this if isinstance(node, exp.Exists) else node.args["query"]
        return (made[0], made[1]) if made is not None and self.keys.is_tied(query) else None

    def _in(self, node: exp.In, *, negated: bool) -> exp.Expr | None:
        values = values_of(node.this)
        query = node.args["query"]
        if is_one_row(query):
            comparison = exp.NEQ if negated else exp.EQ
            return self._value(comparison(this=node.this.copy(), expression=query.copy()), required=True)
        if not negated:
            self._semi_join(self.keys.of(query, values, joins=True))
            return None
        if len(values) != 1:
            message = "NOT IN with several columns is not supported"
            raise self.keys.script.source.unsupported(
                message, node, "write NOT EXISTS with an equality for each column"
            )
        self._anti_join(self.keys.of(query, values))
        self._anti_join(self.keys.of(query, [], _is_null))
        missing = exp.Case(ifs=[exp.If(this=_is_null(values[0]), true=exp.Literal.number(1))])
        self._anti_join(self.keys.of(query, [missing], constant=True))
        return None

    def _semi_join(self, keyed: Keyed) -> None:
        if not keyed.outer:
            self._require_rows(keyed, exp.GT)
            return
        if keyed.is_unique:
            self._join_groups(keyed)
            return
        alias = self._add(self.keys.script.add(self.keys.finish(_distinct(keyed.select), keyed.names)))
        self.conditions += keyed.equal(alias)

    def _join_groups(self, keyed: Keyed) -> None:
        """Joins the block that a subquery shows the groups of, whose keys are unique."""
        alias = self._add(keyed.select.args["from_"].this.name)

        def change(node: exp.Expr) -> exp.Expr | None:
            return column(alias, node.name) if isinstance(node, exp.Column) else None

        self.conditions += [replaced(each, change) for each in condition_of(keyed.select)]
        keys = [replaced(item.unalias(), change) for item in keyed.select.expressions]
        pairs = zip(keyed.outer, keys, strict=True)
        self.conditions += [exp.EQ(this=outer.copy(), expression=key) for outer, key in pairs]

    def _anti_join(self, keyed: Keyed) -> None:
        if not keyed.outer:
            self._require_rows(keyed, exp.EQ)
            return
        right = as_branch(self.keys.finish(keyed.select, keyed.names), self.keys.script)
        left = self._left(keyed.outer)
        alias = self._add(absent_keys(left, right, self.keys.script, nulls_equal=keyed.nulls_equal))
        self.conditions += [*null_safe(keyed.outer, alias), is_absent(alias)]

    def _require_rows(self, keyed: Keyed, test: type[exp.Binary]) -> None:
        """EXISTS of a subquery that is the same for all rows: that it has a row."""
        self.conditions.append(test(this=self._count(keyed), expression=exp.Literal.number(0)))

    def _count(self, keyed: Keyed) -> exp.Expr:
        """How many rows a subquery without keys has."""
        select = keyed.select.copy()
        if is_aggregated(select) or select.args.get("distinct") is not None:
            select = self.keys.script.rows_of(self.keys.script.add(self.keys.finish(select, keyed.names)))
            select.set("expressions", [aliased(exp.Count(this=exp.Star()), _ROWS)])
            return column(self._add(self.keys.script.add(select)), _ROWS)
        select.set("expressions", [aliased(exp.Count(this=exp.Star()), _ROWS)])
        return column(self._add(self.keys.script.add(self.keys.finish(select, keyed.names))), _ROWS)

    def _left(self, outer: list[exp.Expr]) -> exp.Select:
        """The keys that the query around has."""
        self.keys.refuse_undecided(outer)
        known = {table.alias_or_name for table in (*self.tables, *self.added)}
        if any(found.table not in known for each in outer for found in own_columns(each)):
            message = "a subquery inside a subquery cannot be tied to the outermost query here"
            raise self.keys.script.source.unsupported(message, outer[0], "join the tables of both subqueries")
        tables = [*self.tables, *self.added]
        return rows_of_keys(outer, tables, self.conditions, self.keys.script, self.finished)

    # Values

    def _value(self, node: exp.Expr, *, positive: bool = False, required: bool = False) -> exp.Expr:
        """The node with columns in the place of its subqueries. In a `positive` condition NULL is as good as FALSE."""
        positive = positive and not any(isinstance(each, exp.Not | exp.Case | exp.Is) for each in own_nodes(node))

        def change(each: exp.Expr) -> exp.Expr | None:
            found = as_in(each)
            if isinstance(found, exp.Not) and found is not each:
                return exp.Not(this=exp.Paren(this=self._value(found.this)))
            parts = self._parts_of_union(found)
            if parts is not None:
                return exp.Paren(this=self._value(exp.Or(this=parts[0], expression=parts[1]), positive=positive))
            if isinstance(found, exp.In) and found.args.get("query") is not None:
                return self._in_value(found, positive=positive)
            if isinstance(each, exp.Exists):
                return self._mark(self.keys.of(without_limit(each.this), []))
            test = quantified(each)
            if test is not None:
                if not positive or test[2]:
                    message = f"{'ALL' if test[2] else 'ANY'} is not supported in this place"
                    raise self.keys.script.source.unsupported(message, each, "join it to the other conditions by AND")
                return self._mark(self.keys.of(test[0], [], test[1]))
            if isinstance(each, exp.Subquery | exp.Select):
                return self._scalar(each, required=required)
            return None

        return replaced(node, change)

    def _in_keys(self, select: exp.Select) -> None:
        """Keys of GROUP BY have their subqueries joined before rows are grouped."""
        for key in keys_with_queries(select):
            made = self._value(key)
            text = exact_text(key)
            for clause in ("expressions", "group", "having"):
                value = select.args.get(clause)
                change = partial(_swapped, text=text, made=made)
                if isinstance(value, list):
                    select.set(clause, [replaced(each, change) for each in value])
                elif value is not None:
                    select.set(clause, replaced(value, change))

    def _in_aggregates(self, node: exp.Expr) -> exp.Expr:
        def change(each: exp.Expr) -> exp.Expr | None:
            return self._value(each) if isinstance(each, exp.AggFunc) and has_query(each) else None

        return replaced(node, change)

    def _in_value(self, node: exp.In, *, positive: bool) -> exp.Expr:
        """IN as a truth value: NULL if there is no match, and the value or a row of the subquery is NULL."""
        values, query = [self._value(each) for each in values_of(node.this)], node.args["query"]
        if is_one_row(query):
            return self._value(exp.EQ(this=node.this.copy(), expression=query.copy()))
        match = self._mark(self.keys.of(query, values))
        if positive:
            return match
        if len(values) != 1:
            message = "IN with several columns is supported as a condition of WHERE only"
            raise self.keys.script.source.unsupported(message, node, "write EXISTS with an equality for each column")
        has_null = self._mark(self.keys.of(query, [], _is_null))
        unknown = exp.And(this=_is_null(values[0]), expression=self._mark(self.keys.of(query, [])))
        return exp.Case(
            ifs=[
                exp.If(this=match, true=exp.Boolean(this=True)),
                exp.If(this=exp.Or(this=has_null, expression=unknown), true=exp.Null()),
            ],
            default=exp.Boolean(this=False),
        )

    def _mark(self, keyed: Keyed) -> exp.Expr:
        """Whether a subquery has a row for a key, as a truth value."""
        if not keyed.outer:
            return exp.Paren(this=exp.GT(this=self._count(keyed), expression=exp.Literal.number(0)))
        rows = self.keys.script.rows_of(self.keys.script.add(self.keys.finish(_distinct(keyed.select), keyed.names)))
        rows.append("expressions", aliased(exp.Literal.number(1), _MARK))
        left, zero = self._left(keyed.outer), exp.Literal.number(0)
        alias = self._add(padded(left, rows, self.keys.script, zero, nulls_equal=keyed.nulls_equal))
        self.conditions += null_safe(keyed.outer, alias)
        return exp.Paren(this=exp.EQ(this=column(alias, _MARK), expression=exp.Literal.number(1)))

    def _scalar(self, query: exp.Expr, *, required: bool) -> exp.Expr:
        """The value of a subquery; `required` if it decides nothing where it is NULL."""
        first = first_row(query)
        if first is not None and self.keys.is_tied(query):
            query = first
        inner, names = self.keys.open(query, self.keys.names)
        if len(inner.expressions) != 1:
            message = "a subquery used as a value has one column"
            raise self.keys.script.source.unsupported(message, query, "select one column")
        pairs, nulls_equal = self.keys.take_tied(inner, names, self._left)
        value = inner.expressions[0].unalias()
        inner.set("order", None)
        if is_aggregated(inner) and inner.args.get("group") is None and inner.args.get("having") is None:
            found = aggregates_in(value) or [exp.Count(this=exp.Star())]
            required = required and _is_null_of_null(value, found)
        else:
            inner, names = self._one_row(inner, names, pairs)
            pairs = [(column("r", key_name(n)), outer) for n, (_, outer) in enumerate(pairs, 1)]
            value = _only(column("r", _VALUE), exp.Count(this=exp.Star()))
            found = [exp.Max(this=column("r", _VALUE)), exp.Count(this=exp.Star())]
            value = _only(found[0], found[1])
        required = required and all(is_null_of_none(each) for each in found)
        columns = {exact_text(each): f"{_VALUE}{n}" for n, each in enumerate(found, 1)}
        items = [
            aliased(each.copy(), columns[text]) for text, each in {exact_text(each): each for each in found}.items()
        ]
        inner.set("expressions", [*keys_of([key for key, _ in pairs]), *items])
        group_by(inner, [key for key, _ in pairs])
        keys = Keyed(self.keys.finish(inner, names), names, [outer for _, outer in pairs], nulls_equal)
        alias = self._joined_values(keys, required=required)

        def change(node: exp.Expr) -> exp.Expr | None:
            name = columns.get(exact_text(node))
            if name is None:
                return None
            made = column(alias, name)
            return or_of_no_rows(made, node) if pairs else made

        return exp.Paren(this=replaced(value, change))

    def _one_row(
        self, inner: exp.Select, names: Names, pairs: list[tuple[exp.Expr, exp.Expr]]
    ) -> tuple[exp.Select, Names]:
        """The rows of a subquery that may have one for each key only, as a block: its keys and its value."""
        if is_aggregated(inner):
            tied = [key for key, _ in pairs]
            refuse_sets(inner, tied, self.keys.script.source)
            group_by(inner, tied)
        value = inner.expressions[0].unalias().copy()
        inner.set("expressions", [*keys_of([key for key, _ in pairs]), aliased(value, _VALUE)])
        rows = self.keys.script.rows_of(self.keys.script.add(self.keys.finish(inner, names)))
        return rows, Names(self.keys.script, tables={"r": rows.args["from_"].this})

    def _joined_values(self, keyed: Keyed, *, required: bool) -> str:
        """Joins a block of values on its keys; keys that it has not get NULL, unless a value is required."""
        script, outer = self.keys.script, keyed.outer
        if outer and not required:
            right = as_branch(keyed.select, script)
            alias = self._add(padded(self._left(outer), right, script, nulls_equal=keyed.nulls_equal))
            self.conditions += null_safe(outer, alias)
            return alias
        alias = self._add(script.add(keyed.select))
        self.conditions += keyed.equal(alias)
        return alias

    def _add(self, name: str) -> str:
        """Joins a block; the alias that it has."""
        alias = fresh_name("q1", self.keys.names.tables)
        table = self.keys.script.reference(name, alias)
        self.added.append(table)
        self.keys.names.tables[alias] = table
        return alias


def _swapped(node: exp.Expr, text: str, made: exp.Expr) -> exp.Expr | None:
    return made.copy() if exact_text(node) == text else None


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node.copy(), expression=exp.Null())


def _only(value: exp.Expr, rows: exp.Expr) -> exp.Expr:
    """The value, which fails to be computed where there are several rows: the text is not a number."""
    several = exp.GT(this=rows.copy(), expression=exp.Literal.number(1))
    text = exp.Case(ifs=[exp.If(this=several, true=exp.Literal.string(_SEVERAL))], default=exp.Literal.string("1"))
    number = exp.Cast(this=text, to=exp.DataType.build("BIGINT"))
    holds = exp.EQ(this=number, expression=exp.Literal.number(1))
    return exp.Case(ifs=[exp.If(this=holds, true=value.copy())])


def _is_null_of_null(value: exp.Expr, aggregates: list[exp.Expr]) -> bool:
    """Whether a value is NULL where the aggregates in it are: COALESCE and the like may make something of them."""
    value = value.unnest()
    if any(exact_text(value) == exact_text(each) for each in aggregates):
        return True
    if isinstance(value, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return any(_is_null_of_null(side, aggregates) for side in (value.this, value.expression))
    return isinstance(value, exp.Neg | exp.Cast) and _is_null_of_null(value.this, aggregates)


def _distinct(select: exp.Select) -> exp.Select:
    made = select.copy()
    made.set("distinct", exp.Distinct())
    return made


def _parts(select: exp.Select) -> list[exp.Expr]:
    found = [select.args.get("where"), select.args.get("having")]
    return [*(each for each in found if each is not None), *select.expressions]
