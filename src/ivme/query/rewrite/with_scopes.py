"""The queries of WITH under names that mean one thing in the whole statement.

A query of WITH is visible in the queries of its clause that follow it, in the query that the clause belongs to, and in
all queries inside that one, where a query or a table of the same name is hidden:

    WITH orders AS (SELECT * FROM orders WHERE paid) SELECT o.id FROM orders AS o
    WITH orders_2 AS (SELECT * FROM orders WHERE paid) SELECT o.id FROM orders_2 AS o

Behind this pass no name is hidden, and all queries stand in one clause, that of the whole statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.query.rewrite.script import fresh_name
from ivme.query.sql_text import SqlText

Scope = dict[str, exp.CTE]
"""The queries of WITH that are visible, by lower-cased name."""


@dataclass(slots=True)
class _Uses:
    """What the names of a statement mean: the queries of WITH, where each is read, and what are tables."""

    queries: list[exp.CTE] = field(default_factory=list)
    reads: list[tuple[exp.Table, exp.CTE]] = field(default_factory=list)
    tables: set[str] = field(default_factory=set)


def one_scope(source: SqlText, statement: exp.Expr) -> exp.Expr:
    """The statement with one WITH clause at most; it is changed in place."""
    if statement.find(exp.With) is None:
        return statement
    uses = _Uses()
    _resolve(source, statement, {}, uses)
    _rename(uses)
    clauses = list(statement.find_all(exp.With))
    if len(clauses) > 1 or clauses[0].parent is not statement.unnest():
        _gather(statement.unnest(), clauses, uses.queries)
    return statement


def _resolve(source: SqlText, node: exp.Expr, scope: Scope, uses: _Uses) -> None:
    """Finds what each table below a node means, given the queries that are visible there."""
    clause = node.args.get("with_")
    if clause is not None:
        scope = _with_clause(source, clause, scope, uses)
    if isinstance(node, exp.Table):
        found = None if node.args.get("db") else scope.get(node.name.lower())
        if found is None:
            uses.tables.add(node.name.lower())
        else:
            uses.reads.append((node, found))
    for child in node.iter_expressions():
        if child is not clause:
            _resolve(source, child, scope, uses)


def _with_clause(source: SqlText, clause: exp.Expr, scope: Scope, uses: _Uses) -> Scope:
    """What is visible behind a WITH clause; a query sees itself if the clause is RECURSIVE."""
    own: Scope = {}
    for cte in clause.expressions:
        name = cte.alias.lower()
        if name in own:
            raise source.unsupported(f"two queries of WITH are called {cte.alias!r}", cte, "rename one")
        itself = {name: cte} if clause.args.get("recursive") else {}
        _resolve(source, cte.this, {**scope, **own, **itself}, uses)
        own[name] = cte
        uses.queries.append(cte)
    return {**scope, **own}


def _rename(uses: _Uses) -> None:
    """Gives another name to each query whose name means something else elsewhere."""
    written = Counter(cte.alias.lower() for cte in uses.queries)
    taken = uses.tables | set(written)
    for cte in uses.queries:
        name = cte.alias.lower()
        if written[name] == 1 and name not in uses.tables:
            continue
        written[name] -= 1
        made = fresh_name(cte.alias, taken)
        taken.add(made.lower())
        for table in _reads(uses, cte):
            if table.args.get("alias") is None:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            elif table.args["alias"].this is None:
                table.args["alias"].set("this", table.this.copy())
            table.this.set("this", made)
        cte.args["alias"].this.set("this", made)


def _reads(uses: _Uses, cte: exp.CTE) -> Iterator[exp.Table]:
    return (table for table, found in uses.reads if found is cte)


def _gather(statement: exp.Expr, clauses: list[exp.With], queries: list[exp.CTE]) -> None:
    """Puts all queries of WITH into the clause of the statement, each behind those that it reads."""
    recursive = any(clause.args.get("recursive") for clause in clauses)
    for clause in clauses:
        clause.pop()
    statement.set("with_", exp.With(expressions=[cte.copy() for cte in queries], recursive=recursive))
