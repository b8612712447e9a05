"""From any SELECT to a script: queries inside it become blocks, and what is left is in the language of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from ivme.errors import UnknownNameError
from ivme.query.rewrite.across import split_across
from ivme.query.rewrite.aggregates import plain_aggregates
from ivme.query.rewrite.clauses import (
    condition_of,
    conjuncts,
    is_aggregated,
    own_columns,
    own_nodes_of,
    replaced,
    set_where,
)
from ivme.query.rewrite.grouping import split_groups
from ivme.query.rewrite.order import take_order
from ivme.query.rewrite.outer import Joins
from ivme.query.rewrite.parameters import exported
from ivme.query.rewrite.qualify import Inlined, Names, qualify
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_from
from ivme.query.rewrite.set_operations import combined
from ivme.query.rewrite.strict import REFUSED
from ivme.query.rewrite.subqueries import Subqueries
from ivme.query.rewrite.subquery_keys import SubqueryKeys
from ivme.query.sql_deep_access import deep_access
from ivme.query.sql_text import SqlText, is_set
from ivme.query.sql_union import union_of
from ivme.query.sql_windows import window_refusal

Queries = Mapping[str, exp.CTE]
"""The queries of WITH by lower-cased name, each as it was written; one that is used becomes a block."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Lifts queries under the names that WITH has made known."""

    script: Script
    queries: Queries

    def query(self, node: exp.Expr) -> exp.Select:
        """The query as one SELECT in the language of blocks, over tables and the blocks that this adds."""
        node = node.unnest()
        if _is_limited(node):
            return self._limited(node)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node)
        if isinstance(node, exp.Values):
            return self.script.rows_of(self._values(node))
        select, names, lift = self._open(node, None)
        return lift._finish(select, names)

    def _limited(self, node: exp.Expr) -> exp.Select:
        """The first rows of a query, of which all are kept."""
        inner, order = take_order(self.script.source, node)
        assert order is not None, "it has LIMIT or OFFSET"
        return self.script.rows_of(self.script.add_ordered(self.script.add(self.query(inner)), order))

    def _set_operation(self, node: exp.SetOperation) -> exp.Select:
        lift = self._with(node)
        source = self.script.source
        if node.args.get("by_name") or node.args.get("side") or node.args.get("on"):
            raise source.unsupported("a set operation BY NAME is not supported", node, "list the columns in one order")
        return combined(node, lift.query(node.this), lift.query(node.expression), self.script)

    def _values(self, node: exp.Values) -> str:
        rows = [each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions]
        names = [f"col{number}" for number in range(1, len(rows[0]) + 1)]
        short = next((row for row in rows if len(row) != len(names)), None)
        if short is not None:
            message = f"a row of VALUES has {len(short)} columns, and the first one {len(names)}"
            raise self.script.source.unsupported(message, short[0], "give every row the same columns")
        branches = [exp.Select(expressions=[aliased(v.copy(), n) for v, n in zip(r, names, strict=True)]) for r in rows]
        return self.script.add(union_of(branches))

    def _open(self, node: exp.Expr, outer: Names | None) -> tuple[exp.Select, Names, Lift]:
        source = self.script.source
        node = node.unnest()
        if not isinstance(node, exp.Select) or _is_limited(node):
            select = self._closed(node, outer)
            return select, qualify(select, self.script, outer), self
        select = node.copy()
        for argument, (word, instead) in REFUSED.items():
            if is_set(select.args.get(argument)):
                place = source.keyword([word])
                found = select.find(exp.Hint) if place is None else None
                raise source.unsupported(f"{word} is not supported", found if place is None else place, instead)
        window = next((node for node in own_nodes_of(select) if isinstance(node, exp.Window)), None)
        if window is not None:
            raise window_refusal(source, window)
        select.set("order", None)  # nobody sees it
        lift = self._with(select)
        _flatten(select)
        _exists_for_semi_joins(select, source)
        inlined = lift._lift_sources(select)
        names = qualify(select, self.script, outer, inlined)
        _conditions_to_where(select)
        return select, names, lift

    def _closed(self, node: exp.Expr, outer: Names | None) -> exp.Select:
        """A set operation, or a query with LIMIT, which sees nothing of the SELECT around it."""
        try:
            return self.query(node)
        except UnknownNameError as error:
            if outer is None:
                raise
            message = f"a subquery with LIMIT, UNION and the like cannot read the query around it: {error.message}"
            raise self.script.source.unsupported(message, error.position, "tie a plain SELECT to it") from None

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
        def opened(node: exp.Expr, outer: Names) -> tuple[exp.Select, Names]:
            inner, inside, _ = self._open(node, outer)
            return inner, inside

        keys = SubqueryKeys(self.script, names, opened, self._finish)
        return Subqueries(keys, self._finished).join(select)

    def _with(self, select: exp.Query) -> Lift:
        clause = select.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            message = "WITH RECURSIVE is supported where it is reachability, and the only query of the view"
            raise self.script.source.unsupported(message, clause, "make the recursive query a view, and read that view")
        select.set("with_", None)
        return Lift(self.script, {**self.queries, **{cte.alias.lower(): cte for cte in clause.expressions}})

    # FROM

    def _lift_sources(self, select: exp.Select) -> dict[str, Inlined]:
        """Makes every source a table; plain subqueries of inner joins are taken into this SELECT."""
        start = select.args.get("from_")
        if start is None:
            one = self.script.add(union_of([exp.Select(expressions=[aliased(exp.Literal.number(1), "one")])]))
            select.set("from_", exp.From(this=self.script.reference(one, "one")))
            return {}
        joins = list(select.args.get("joins") or ())
        inner = not any(join.side in ("LEFT", "RIGHT", "FULL") for join in joins)
        inlined: dict[str, Inlined] = {}
        for holder in (start, *joins):
            parts = _parts_of_join(holder.this)
            if parts is not None:
                self._nested_join(holder, *parts, inlined)
                continue
            made = self._source(holder.this)
            if made is not None:
                query, alias, columns = made
                found = None if not inner else self._inlined(query, alias, columns, inlined)
                if found is not None:
                    holder.set("this", exp.Table(this=alias))
                    inlined[alias.name] = found
                    continue
                if inner:
                    query, columns, tests = exported(query, alias, columns, self.script)
                    set_where(select, [*condition_of(select), *tests])
                holder.set("this", self._table(query, alias, columns))
        return inlined

    def _nested_join(
        self, holder: exp.Expr, table: exp.Expr, joins: list[exp.Join], inlined: dict[str, Inlined]
    ) -> None:
        """A join in parentheses becomes a block, under the aliases that it has inside."""
        nested = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), joins=joins)
        select, names, lift = self._open(nested, None)
        items: list[exp.Expr] = []
        taken: list[str] = []
        sources: dict[str, dict[str, exp.Expr]] = {}
        alias = fresh_name("join", inlined)
        for inside, columns in names.sources.items():
            sources[inside] = {}
            for name in columns:
                taken.append(fresh_name(name, taken))
                items.append(aliased(names.column(inside, name), taken[-1]))
                sources[inside][name] = column(alias, taken[-1])
        merged: dict[str, exp.Expr] = {}
        hidden = {(inside, name) for inside, name in names.hidden if inside in sources}
        for name, meant in names.merged.items():
            taken.append(fresh_name(name, taken))
            items.append(aliased(names.current(meant), taken[-1]))
            merged[name] = column(alias, taken[-1])
        select.set("expressions", items)
        block = self.script.reference(self.script.add(lift._finish(select, names)), alias)
        inlined[block.name] = Inlined({alias: block}, [], sources, merged, hidden)
        holder.set("this", block)

    def _source(self, node: exp.Expr) -> tuple[exp.Select, exp.Identifier, list[str] | None] | None:
        """The SELECT that a source stands for, its alias and the names of its columns; None for a table."""
        source = self.script.source
        alias = node.args.get("alias")
        columns = None if alias is None or not alias.args.get("columns") else [c.name for c in alias.args["columns"]]
        if isinstance(node, exp.Values):
            return self.script.rows_of(self._values(node)), _identifier(alias, "values"), columns
        if isinstance(node, exp.Subquery):
            return self.query(node.this), _identifier(alias, fresh_name("subquery", ())), columns
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            deep = deep_access(source, node)
            if deep is not None:
                raise deep
            word = {"lateral": "LATERAL", "table": "a table function"}.get(node.key, node.key.upper())
            raise source.unsupported(f"{word} in FROM is not supported", node, "list tables and subqueries in FROM")
        cte = None if node.args.get("db") else self.queries.get(node.name.lower())
        if cte is None:
            return None
        rest = {name: each for name, each in self.queries.items() if each is not cte}
        named = cte.args["alias"].args.get("columns")
        columns = columns or ([c.name for c in named] if named else None)
        return Lift(self.script, rest).query(cte.this), node.this if alias is None else alias.this, columns

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

    def _inlined(
        self, query: exp.Select, alias: exp.Identifier, columns: list[str] | None, before: Mapping[str, Inlined]
    ) -> Inlined | None:
        """The tables, conditions and columns of a query that can be part of the SELECT around; None if it cannot."""
        constants = any(next(own_columns(item), None) is None for item in query.expressions)
        if constants or is_aggregated(query) or query.args.get("distinct") is not None:
            return None
        tables = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
        taken = [name for each in before.values() for name in each.tables]
        renamed: dict[str, str] = {}
        for table in tables:
            renamed[table.alias_or_name] = fresh_name(
                f"{alias.name}.{table.alias_or_name}", [*taken, *renamed.values()]
            )

        def change(node: exp.Expr) -> exp.Expr | None:
            return column(renamed[node.table], node.name) if isinstance(node, exp.Column) else None

        names = columns or [item.alias for item in query.expressions]
        if len(names) != len(query.expressions):
            return None
        made = [replaced(item.unalias(), change) for item in query.expressions]
        return Inlined(
            {renamed[table.alias_or_name]: _under(table, renamed[table.alias_or_name]) for table in tables},
            [replaced(each, change) for each in condition_of(query)],
            {alias.name: dict(zip(names, made, strict=True))},
        )


def _is_limited(node: exp.Expr) -> bool:
    return any(is_set(node.args.get(clause)) for clause in ("limit", "offset"))


def _identifier(alias: exp.Expr | None, default: str) -> exp.Identifier:
    return exp.Identifier(this=default) if alias is None or alias.this is None else alias.this


def _under(table: exp.Table, alias: str) -> exp.Table:
    made = table.copy()
    made.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    return made


def _flatten(select: exp.Select) -> None:
    """Takes a join in parentheses at the start of FROM, or one that is joined by an inner join, out of them."""
    start = select.args.get("from_")
    if start is None:
        return
    joins: list[exp.Join] = []
    for holder in (start, *(select.args.get("joins") or ())):
        is_start = holder is start
        parts = _parts_of_join(holder.this)
        inner = parts is not None and not any(_joins_by_name(join) for join in parts[1])
        if parts is None or not (is_start or (inner and not holder.side)):
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


def _joins_by_name(join: exp.Join) -> bool:
    """Whether a join means something else once other tables stand before it: NATURAL, USING, and all but inner ones."""
    return bool(join.side or join.kind in ("SEMI", "ANTI") or join.method or join.args.get("using"))


def _parts_of_join(node: exp.Expr) -> tuple[exp.Expr, list[exp.Join]] | None:
    """The first table and the joins of a join in parentheses; None for anything else."""
    own = list(node.args.get("joins") or ())
    if own and (isinstance(node, exp.Table) or node.args.get("alias") is not None):
        first = node.copy()
        first.set("joins", None)
        return first, own
    if not isinstance(node, exp.Subquery) or node.args.get("alias") is not None:
        return None
    if not isinstance(node.this, exp.Table | exp.Subquery) and not own:
        return None
    inside = _parts_of_join(node.this) or (node.this, [])
    if isinstance(inside[0], exp.Query) and not isinstance(inside[0], exp.Subquery):
        return None
    return inside[0], [*inside[1], *own]


def _and_where(select: exp.Select, condition: exp.Expr) -> exp.Where:
    where = select.args.get("where")
    return exp.Where(
        this=condition if where is None else exp.And(this=exp.Paren(this=where.this), expression=condition)
    )


def _conditions_to_where(select: exp.Select) -> None:
    """ON of inner joins says what WHERE would; beside outer joins it stays where it is."""
    joins = list(select.args.get("joins") or ())
    if any(join.side in ("LEFT", "RIGHT", "FULL") for join in joins):
        return
    on = [each for join in joins for each in conjuncts(join.args.get("on"))]
    if joins:
        select.set("joins", [exp.Join(this=join.this) for join in joins])
        set_where(select, [*on, *condition_of(select)])


def _exists_for_semi_joins(select: exp.Select, source: SqlText) -> None:
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
