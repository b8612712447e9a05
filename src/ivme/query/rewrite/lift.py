"""From any SELECT to a script: queries inside it become blocks, and what is left is in the language of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from ivme.errors import UnknownNameError
from ivme.query.order import HIDDEN, Order
from ivme.query.recursion import is_recursive, read_closures
from ivme.query.rewrite.across import split_across
from ivme.query.rewrite.aggregates import plain_aggregates
from ivme.query.rewrite.clauses import (
    condition_of,
    conjuncts,
    is_aggregated,
    set_where,
)
from ivme.query.rewrite.domains import Tied, Undecided
from ivme.query.rewrite.from_clause import (
    Ties,
    all_of,
    conditions_to_where,
    exists_for_semi_joins,
    flatten,
    is_true,
    named_columns,
    parts_of_join,
    tie,
    tied_alias,
)
from ivme.query.rewrite.grouping import split_groups
from ivme.query.rewrite.inlining import aliases_around, aliases_in, identifier_of, inline, untaken
from ivme.query.rewrite.lateral import Lateral
from ivme.query.rewrite.order import has_limit, take_order
from ivme.query.rewrite.outer import Joins
from ivme.query.rewrite.parameters import (
    BOTH_SIDES,
    add_values,
    bind,
    exported,
    note_comparisons,
    parameters_in,
    parameters_read,
    refuse_whole,
)
from ivme.query.rewrite.qualify import MADE, Inlined, Names, qualify
from ivme.query.rewrite.ranks import is_limited, is_one_rank, push_ranks, take_ranks
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, quoted, select_all
from ivme.query.rewrite.set_operations import combined, rows_of_values
from ivme.query.rewrite.strict import REFUSED
from ivme.query.rewrite.subqueries import Subqueries
from ivme.query.rewrite.subquery_keys import SubqueryKeys
from ivme.query.rewrite.windows import refuse_ordered, refuse_windows, take_windows, with_window_columns
from ivme.query.sql_deep_access import deep_access
from ivme.query.sql_text import is_set
from ivme.query.sql_union import union_of

Queries = Mapping[str, exp.CTE]
"""The queries of WITH by lower-cased name, each as it was written; one that is used becomes a block."""


def is_hidden(item: exp.Expr) -> bool:
    """Whether a column is there for the order alone, so that no star shows it."""
    return str(item.alias).startswith(HIDDEN)


@dataclass(frozen=True, slots=True)
class Lift:
    """Lifts queries under the names that WITH has made known."""

    script: Script
    queries: Queries

    def query(self, node: exp.Expr, domains: frozenset[str] = frozenset(), *, is_inner: bool = False) -> exp.Select:
        """The query as one SELECT in the language of blocks, over tables and the blocks that this adds.

        It has rows for each value of the parameters in `domains`. One that `is_inner` is read by another.
        """
        node = node.unnest()
        if isinstance(node, exp.SetOperation) and not is_limited(node):
            return self._set_operation(node, domains)
        if isinstance(node, exp.Select) and not is_limited(node):
            return self._select(node, domains, is_inner=is_inner)
        if domains:
            return self._select(select_all(node), domains, is_inner=is_inner)
        if is_limited(node):
            return self._limited(node)
        if not isinstance(node, exp.Values):
            raise self.script.source.unsupported("this is not a query", node, "write a SELECT")
        return rows_of_values(node, self.script)

    def _select(self, node: exp.Select, domains: frozenset[str], *, is_inner: bool) -> exp.Select:
        """A SELECT; joined with the values of parameters where it has rows for values that no row has."""
        if domains and is_aggregated(node) and node.args.get("group") is None:
            return self._for_each_value(node, domains)
        saved = self.script.saved()
        try:
            select, names, lift = self._open(node, None, domains)
            made = lift._finish(select, names)
            if is_inner:
                refuse_whole(made, self.script)
        except Undecided as undecided:
            if undecided.parameter in domains:
                raise
            self.script.restore(saved)
            if undecided.is_whole:
                return self._for_each_value(node, domains | {undecided.parameter})
            return self._select(node, domains | {undecided.parameter}, is_inner=is_inner)
        return made

    def _for_each_value(self, node: exp.Select, domains: frozenset[str]) -> exp.Select:
        """Aggregates of all rows, for each value of the parameters."""
        values = exp.Lateral(this=exp.Subquery(this=node.copy()), alias=exp.TableAlias(this=quoted("rows")))
        shown: list[exp.Expr] = [exp.Column(this=exp.Star(), table=quoted("rows"))]
        shown += [aliased(column("rows", each.alias), each.alias) for each in node.expressions if is_hidden(each)]
        made = exp.Select(expressions=shown, joins=[exp.Join(this=values, kind="CROSS")])
        return self._select(made, domains.union(parameters_read(node, self.queries)), is_inner=False)

    def _limited(self, node: exp.Expr) -> exp.Select:
        """The first rows of a query, or of each group, of which all are stored."""
        if isinstance(node, exp.Select) and not has_limit(node):
            node = with_window_columns(node, self._columns_of_from)
            if not is_one_rank(node) or parameters_in(node):
                return self._windowed(node)
            ranked = take_ranks(node)
            return ranked.of(self.script.rows_of(self._ordered(ranked.rows, ranked.order)))
        inner, order = take_order(self.script.source, node)
        assert order is not None, "it has LIMIT or OFFSET"
        return self.script.rows_of(self._ordered(inner, order))

    def _columns_of_from(self, node: exp.Select) -> Callable[[exp.Identifier], bool]:
        """Says of a name whether a table of a SELECT has such a column; leaves the script as it is."""
        read = node.copy()
        for clause in set(read.args) - {"with_", "from_", "joins", "laterals"}:
            read.set(clause, None)
        read.set("expressions", [aliased(exp.Literal.number(1), "one")])
        saved = self.script.saved()
        _, names, _ = self._open(read, None)
        self.script.restore(saved)
        return lambda name: bool(names.owners(name))

    def _windowed(self, node: exp.Select) -> exp.Select:
        """A SELECT with window functions: blocks that add their columns, and what is made of these."""
        taken = take_windows(self.script.source, node)
        block = self._ordered(taken.rows, taken.orders[0])
        for order in taken.orders[1:]:
            block = self.script.add_ordered(block, order)
        made = taken.of(self.script, block)
        note_comparisons(made, {"r": self.script.reference(block, "r")}, self.script, with_hidden=True)
        return self._finished(made)

    def _ordered(self, inner: exp.Expr, order: Order) -> str:
        """A block that shows the rows of a query as an order says."""
        rows = self.query(inner, is_inner=True)
        refuse_ordered(rows, order, self.script)
        return self.script.add_ordered(self.script.add(rows), order)

    def _set_operation(self, node: exp.SetOperation, domains: frozenset[str]) -> exp.Select:
        lift = self._with(node)
        both = [lift.query(side, domains, is_inner=True) for side in (node.this, node.expression)]
        given = [set(parameters_in(side)) for side in both]
        for place, (side, others) in enumerate(((node.this, given[1]), (node.expression, given[0]))):
            if others - given[place]:
                both[place] = lift.query(side, domains | (others - given[place]), is_inner=True)
        return combined(node, both[0], both[1], self.script)

    def _open(
        self, node: exp.Expr, outer: Names | None, domains: frozenset[str] = frozenset()
    ) -> tuple[exp.Select, Names, Lift]:
        source = self.script.source
        node = node.unnest()
        if not isinstance(node, exp.Select) or is_limited(node):
            select = self._closed(node, outer)
            return select, qualify(select, self.script, outer), self
        select = node.copy()
        push_ranks(select, self.queries)
        for argument, (word, instead) in REFUSED.items():
            if is_set(select.args.get(argument)):
                place = source.keyword([word])
                found = select.find(exp.Hint) if place is None else None
                raise source.unsupported(f"{word} is not supported", found if place is None else place, instead)
        refuse_windows(source, select)
        select.set("order", None)  # it is not shown
        lift = self._with(select)
        flatten(select)
        exists_for_semi_joins(select, source)
        values = add_values(select, domains, self.script)
        laterals: Ties = []
        inlined = lift._lift_sources(select, outer, values, laterals)
        names = qualify(select, self.script, outer, inlined)
        conditions_to_where(select)
        tie(select, names, laterals)
        bind(select, names, values)
        return select, names, lift

    def _closed(self, node: exp.Expr, outer: Names | None) -> exp.Select:
        """A set operation, or a query with LIMIT, which sees nothing of the SELECT around it."""
        try:
            return self.query(node, is_inner=True)
        except UnknownNameError as error:
            if outer is None:
                raise
            message = f"a subquery with LIMIT, UNION and the like cannot read the query around it: {error.message}"
            limit = "rank rows in place of LIMIT: QUALIFY ROW_NUMBER() OVER (PARTITION BY column ORDER BY ...) <= n"
            instead = limit if is_limited(node) else "write EXISTS or NOT EXISTS for each side"
            raise Tied(self.script.source.unsupported(message, error.position, instead)) from None

    def _finish(self, select: exp.Select, names: Names) -> exp.Select:
        select = Joins(self.script, names, self._finished).flat(select)
        select = plain_aggregates(select)
        select = self._join_subqueries(select, names)
        grouped = split_groups(select, self.script)
        if grouped is not None:
            select = self._join_subqueries(grouped.select, grouped.names(names))
        return split_across(select, self.script)

    def _finished(self, select: exp.Select) -> exp.Select:
        """The same for a SELECT that a pass made."""
        return self._finish(select, qualify(select, self.script))

    def _join_subqueries(self, select: exp.Select, names: Names) -> exp.Select:
        return Subqueries(self._keys(names), self._finished).join(select)

    def _with(self, select: exp.Query) -> Lift:
        clause = select.args.get("with_")
        if clause is None:
            return self
        select.set("with_", None)
        return Lift(self.script, {**self.queries, **{cte.alias.lower(): cte for cte in clause.expressions}})

    # FROM

    def _lift_sources(
        self, select: exp.Select, outer: Names | None, values: Mapping[str, exp.Expr], laterals: Ties
    ) -> dict[str, Inlined]:
        """Makes every source a table; plain subqueries of inner joins are taken into this SELECT."""
        start = select.args.get("from_")
        if start is None:
            one = self.script.add(union_of([exp.Select(expressions=[aliased(exp.Literal.number(1), "one")])]))
            select.set("from_", exp.From(this=self.script.reference(one, "one")))
            return {}
        joins = list(select.args.get("joins") or ())
        inner = not any(join.side in ("LEFT", "RIGHT", "FULL") for join in joins)
        inlined: dict[str, Inlined] = {}
        taken = [*aliases_in(start, *joins), *aliases_around(outer)]
        for place, holder in enumerate((start, *joins)):
            if isinstance(holder.this, exp.Lateral) and isinstance(holder.this.this, exp.Subquery):
                before = exp.Select(from_=start.copy(), joins=[join.copy() for join in joins[: place - 1]])
                names = qualify(before, self.script, outer, inlined)
                names.bound |= values
                self._lateral(holder, before, names, inlined, taken, laterals, is_inner=inner)
                continue
            parts = parts_of_join(holder.this)
            if parts is not None:
                self._nested_join(holder, *parts, inlined, taken)
                continue
            made = self._source(holder.this, taken)
            if made is not None:
                query, alias, columns = made
                found = None if not inner else inline(query, alias, columns, taken, self.script.source)
                if found is not None:
                    holder.set("this", exp.Table(this=alias))
                    inlined[alias.name] = found
                    continue
                query, columns, tests = exported(query, alias, columns, self.script)
                if tests and holder is not start and holder.side == "LEFT":
                    holder.set("on", all_of([*conjuncts(holder.args.get("on")), *tests]))
                elif tests and any(join.side in ("RIGHT", "FULL") for join in joins):
                    message = "a parameter in a subquery beside RIGHT or FULL JOIN is not supported"
                    raise self.script.source.unsupported(message, tests[0].expression, BOTH_SIDES)
                else:
                    set_where(select, [*condition_of(select), *tests])
                holder.set("this", self._table(query, alias, columns))
        return inlined

    def _lateral(
        self,
        holder: exp.Join,
        before: exp.Select,
        around: Names,
        inlined: dict[str, Inlined],
        taken: list[str],
        laterals: Ties,
        *,
        is_inner: bool,
    ) -> None:
        """Makes a LATERAL a block, or a part of this SELECT; `laterals` gets what ties it to the tables before it."""
        node = holder.this
        keys = self._keys(around)
        select, names = keys.open(node.this, around)
        alias = identifier_of(node.args.get("alias"), "lateral", taken)
        columns = named_columns(node.args.get("alias"))
        lateral = Lateral(keys, self._finished, select, names, tied_alias(alias.name), before)
        found = inline(select, alias, columns, taken, self.script.source) if is_inner and lateral.is_plain else None
        if found is not None:
            holder.set("this", exp.Table(this=alias))
            inlined[alias.name] = found
            return
        made = lateral.joined(columns)
        holder.set("this", self.script.reference(self.script.add(made.block), alias.name))
        if made.is_total and holder.side == "LEFT" and is_true(holder.args.get("on")):
            holder.set("side", None)
            holder.set("on", None)
        laterals.append((holder, made.conditions))

    def _keys(self, names: Names) -> SubqueryKeys:
        def opened(node: exp.Expr, outer: Names) -> tuple[exp.Select, Names]:
            inner, inside, _ = self._open(node, outer)
            return inner, inside

        return SubqueryKeys(self.script, names, opened, self._finish)

    def _nested_join(
        self,
        holder: exp.Expr,
        table: exp.Expr,
        joins: list[exp.Join],
        inlined: dict[str, Inlined],
        taken: list[str],
    ) -> None:
        """A join in parentheses becomes a block, under the aliases that it has inside."""
        nested = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), joins=joins)
        select, names, lift = self._open(nested, None)
        items: list[exp.Expr] = []
        made: list[str] = []
        sources: dict[str, dict[str, exp.Expr]] = {}
        alias = untaken(MADE + "join", taken)
        for inside, columns in names.sources.items():
            sources[inside] = {}
            for name in columns:
                made.append(fresh_name(name, made))
                items.append(aliased(names.column(inside, name), made[-1]))
                sources[inside][name] = column(alias, made[-1])
        merged: dict[str, exp.Expr] = {}
        hidden = {(inside, name) for inside, name in names.hidden if inside in sources}
        for name, meant in names.merged.items():
            made.append(fresh_name(name, made))
            items.append(aliased(names.current(meant), made[-1]))
            merged[name] = column(alias, made[-1])
        select.set("expressions", items)
        block = self.script.reference(self.script.add(lift._finish(select, names)), alias)
        inlined[block.name] = Inlined({alias: block}, [], sources, merged, hidden)
        holder.set("this", block)

    def _source(self, node: exp.Expr, taken: list[str]) -> tuple[exp.Select, exp.Identifier, list[str] | None] | None:
        """The SELECT that a source stands for, its alias and the names of its columns; None for a table."""
        source = self.script.source
        alias = node.args.get("alias")
        columns = named_columns(alias)
        if isinstance(node, exp.Values):
            rows = rows_of_values(node, self.script)
            return rows, identifier_of(alias, "values", taken), columns
        if isinstance(node, exp.Subquery):
            query = self.query(node.this, is_inner=True)
            return query, identifier_of(alias, "subquery", taken), columns
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            deep = deep_access(source, node)
            if deep is not None:
                raise deep
            word = {"lateral": "LATERAL", "table": "a table function"}.get(node.key, node.key.upper())
            raise source.unsupported(f"{word} in FROM is not supported", node, "list tables and subqueries in FROM")
        cte = None if node.args.get("db") else self.queries.get(node.name.lower())
        if cte is None:
            return None
        if is_recursive(cte):
            return self.script.rows_of(self._closure(cte)), node.this if alias is None else alias.this, columns
        rest = {name: each for name, each in self.queries.items() if each is not cte}
        named = cte.args["alias"].args.get("columns")
        columns = columns or ([c.name for c in named] if named else None)
        made = Lift(self.script, rest).query(cte.this, is_inner=True)
        return made, node.this if alias is None else alias.this, columns

    def _closure(self, cte: exp.CTE) -> str:
        """A block for a recursive query of WITH, which must be reachability."""
        clause = exp.With(expressions=[cte.copy()], recursive=True)
        name = cte.args["alias"].this
        select = exp.Select(from_=exp.From(this=exp.Table(this=name.copy())), with_=clause)
        found = read_closures(self.script.source, select, self.script.tables)[name.name.lower()]
        items = [exp.Column(this=each.copy(), table=name.copy()) for each in found.names]
        select.set("expressions", [aliased(item, item.name) for item in items])
        return self.script.add(select)

    def _table(self, query: exp.Select, alias: exp.Identifier, columns: list[str] | None) -> exp.Table:
        """A block for the query, under its alias."""
        if columns:
            if len(columns) != len(query.expressions):
                message = f"{alias.name} has {len(columns)} names for {len(query.expressions)} columns"
                raise self.script.source.unsupported(message, alias, "name each column once")
            query = query.copy()
            items = zip(query.expressions, columns, strict=True)
            query.set("expressions", [aliased(item.unalias(), name) for item, name in items])
        name = self.script.add(query)
        return exp.Table(this=exp.to_identifier(name, quoted=True), alias=exp.TableAlias(this=alias.copy()))
