"""LATERAL: a subquery in FROM that reads the tables before it becomes a table that is joined by what it reads.

FROM R, LATERAL (SELECT S.c FROM S WHERE S.b = R.b) x                FROM R, S WHERE S.b = R.b
FROM R, LATERAL (SELECT COUNT(*) AS n FROM S WHERE S.b = R.b) x      FROM R, the counts by b, padded with 0, as x
FROM R LEFT JOIN LATERAL (SELECT S.c FROM S WHERE S.b = R.b) x       FROM R LEFT JOIN S AS x ON x.b = R.b
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from ivme.errors import UnknownNameError
from ivme.query.exact_text import exact_text
from ivme.query.rewrite.absent import Finished, as_branch, key_name, keys_of, null_safe, padded, rows_of_keys
from ivme.query.rewrite.clauses import (
    aggregates_in,
    condition_of,
    is_aggregated,
    or_of_no_rows,
    own_columns,
    replaced,
    set_where,
)
from ivme.query.rewrite.grouping_sets import refuse_sets
from ivme.query.rewrite.parameters import with_bound
from ivme.query.rewrite.qualify import Names, is_outer
from ivme.query.rewrite.script import aliased, column
from ivme.query.rewrite.subquery_keys import SubqueryKeys, equal_keys, group_by, has_query, read_after_where

_VALUE = "#value"
_PLAIN = "write a SELECT whose WHERE compares its columns with those outside by =, joined by AND"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a LATERAL became: a block of `columns` under its alias, joined on `conditions`.

    `is_total` says that it has a row for each row of the tables before it.
    """

    block: exp.Select
    columns: list[str]
    conditions: list[exp.Expr] = field(default_factory=list)
    is_total: bool = False


@dataclass(frozen=True, slots=True)
class Lateral:
    """A LATERAL of one FROM clause, opened: its SELECT, and its names; `keys` has the names of the tables before it.

    `before` is a SELECT from these tables, joined as they are.
    """

    keys: SubqueryKeys
    finished: Finished
    select: exp.Select
    names: Names
    alias: str
    before: exp.Select

    @property
    def is_plain(self) -> bool:
        """Whether its tables and conditions can be those of the SELECT around, if it is joined by an inner join."""
        parts = [*self.select.expressions, *condition_of(self.select)]
        return (
            not is_aggregated(self.select)
            and self.select.args.get("distinct") is None
            and not any(join.side for join in self.select.args.get("joins") or ())
            and not any(has_query(part) for part in parts)
            and all(next(own_columns(item), None) is not None for item in self.select.expressions)
        )

    def joined(self, columns: list[str] | None) -> Joined:
        """The LATERAL as a block, and how it is joined."""
        items = [item.alias for item in self.select.expressions] if columns is None else columns
        if len(items) != len(self.select.expressions):
            message = f"{self.alias} has {len(items)} names for {len(self.select.expressions)} columns"
            raise self.keys.script.source.unsupported(message, self.select, "name each column once")
        expressions = zip(self.select.expressions, items, strict=True)
        self.select.set("expressions", [aliased(item.unalias(), name) for item, name in expressions])
        if is_aggregated(self.select) and self.select.args.get("group") is None:
            return self._whole(items)
        if is_aggregated(self.select) or self.select.args.get("distinct") is not None:
            return self._keyed(items)
        return self._rows(items)

    def _rows(self, items: list[str]) -> Joined:
        """Rows that any condition may tie: they show what it reads."""
        self._refuse_outer_columns()
        places: dict[tuple[str, str], str] = {}
        kept: list[exp.Expr] = []
        tied: list[exp.Expr] = []
        bound = [with_bound(each, self.keys.names.bound) for each in condition_of(self.select)]
        for each in bound:
            outside = any(is_outer(found, self.names) for found in own_columns(each))
            (tied if outside else kept).append(each)

        def change(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, exp.Column) or is_outer(node, self.names):
                return None
            name = places.setdefault((node.table, node.name), key_name(len(places) + 1))
            return column(self.alias, name)

        if any(has_query(each) for each in tied):
            raise self.keys.script.source.unsupported("a subquery in LATERAL cannot read both", self.select, _PLAIN)
        conditions = [replaced(each, change) for each in tied]
        for key, name in places.items():
            self.select.append("expressions", aliased(column(*key), name))
        set_where(self.select, kept)
        return Joined(self._closed(self.select), [*items, *places.values()], conditions)

    def _closed(self, select: exp.Select) -> exp.Select:
        """The finished SELECT, a block of its own: its subqueries see nothing of the tables before it."""
        try:
            return self.keys.finish(select, replace(self.names, outer=None))
        except UnknownNameError as error:
            message = f"a subquery in LATERAL cannot read the tables before it: {error.message}"
            raise self.keys.script.source.unsupported(message, error.position, _PLAIN) from None

    def _keyed(self, items: list[str]) -> Joined:
        """Groups, or distinct rows, for each key."""
        pairs = self.keys.take_correlated(self.select, self.names)
        inner = [key for key, _ in pairs]
        refuse_sets(self.select, inner, self.keys.script.source)
        if is_aggregated(self.select):
            group_by(self.select, inner)
        keys = keys_of(inner)
        self.select.set("expressions", [*self.select.expressions, *keys])
        conditions = equal_keys([outer for _, outer in pairs], self.alias)
        return Joined(self._closed(self.select), [*items, *(each.alias for each in keys)], conditions)

    def _whole(self, items: list[str]) -> Joined:
        """Aggregates of all rows, which have a row for each key that the tables before it have."""
        pairs = self.keys.take_correlated(self.select, self.names)
        script, having = self.keys.script, condition_of(self.select, "having")
        if not pairs:
            return Joined(self._closed(self.select), items, is_total=not having)
        values = [item.unalias() for item in self.select.expressions]
        found = {exact_text(each): each for part in (*values, *having) for each in aggregates_in(part)}
        columns = {text: f"{_VALUE}{number}" for number, text in enumerate(found, 1)}
        keys, outer = keys_of([key for key, _ in pairs]), [each for _, each in pairs]
        self.keys.refuse_undecided(outer)
        groups = self.select.copy()
        groups.set("having", None)
        totals = [aliased(each.copy(), columns[text]) for text, each in found.items()]
        groups.set("expressions", [*keys, *totals])
        group_by(groups, [key for key, _ in pairs])
        left = self._rows_before(outer)
        rows = script.rows_of(padded(left, as_branch(self._closed(groups), script), script))
        alias = rows.args["from_"].this.alias

        def change(node: exp.Expr) -> exp.Expr | None:
            name = columns.get(exact_text(node))
            if name is None:
                return None
            return or_of_no_rows(column(alias, name), node)

        shown = [aliased(replaced(value, change), name) for value, name in zip(values, items, strict=True)]
        names = [each.alias for each in keys]
        rows.set("expressions", [*shown, *(aliased(column(alias, name), name) for name in names)])
        set_where(rows, [replaced(each, change) for each in having])
        return Joined(rows, [*items, *names], null_safe(outer, self.alias), is_total=not having)

    def _rows_before(self, keys: list[exp.Expr]) -> exp.Select:
        """The values of some keys in the tables before it, those of rows that outer joins pad with NULLs included."""
        script = self.keys.script
        if any(join.side for join in self.before.args.get("joins") or ()):
            select = self.before.copy()
            select.set("expressions", keys_of(keys))
            select.set("distinct", exp.Distinct())
            try:
                return as_branch(self.finished(select), script)
            except UnknownNameError as error:
                message = f"LATERAL after an outer join that reads the query around it: {error.message}"
                raise script.source.unsupported(message, error.position, _PLAIN) from None
        aliases = dict.fromkeys(found.table for each in keys for found in own_columns(each))
        return rows_of_keys(keys, [self.keys.names.tables[alias] for alias in aliases], [], script, self.finished)

    def _refuse_outer_columns(self) -> None:
        for part in read_after_where(self.select):
            if any(is_outer(found, self.names) for found in own_columns(part)):
                message = "a column of the tables before LATERAL is not allowed here"
                raise self.keys.script.source.unsupported(message, part, _PLAIN)
