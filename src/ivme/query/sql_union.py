"""A union of a script: SELECTs of one table each, or of none, joined by UNION ALL."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from ivme.query.expression import Expression, conjunction
from ivme.query.model import Table
from ivme.query.sql_expression import Scalars
from ivme.query.sql_from import read_from
from ivme.query.sql_scope import Key, KnownTables, Scope
from ivme.query.sql_text import SqlText
from ivme.query.sql_where import Body, conjuncts, read_condition
from ivme.query.union import Branch, Union

WEIGHT = "#weight"
"""The name of the column that repeats a row; no column of a user can be called so."""


def union_of(branches: Iterable[exp.Select]) -> exp.Expr:
    """The node of a union in a script: a list of SELECTs, as sqlglot's own has only two sides and nests."""
    return exp.Tuple(expressions=list(branches))


def is_union(node: exp.Expr) -> bool:
    return isinstance(node, exp.Tuple)


def read_union(source: SqlText, node: exp.Expr, tables: Iterable[Table], name: str) -> Union:
    """The union that a node says."""
    declared = tuple(tables)
    branches = [_branch(source, select, declared) for select in node.expressions]
    relations = dict.fromkeys(branch.relation for branch in branches)
    known = {table.name: table for table in declared}
    columns = tuple(item.alias for item in node.expressions[0].expressions if item.alias != WEIGHT)
    read = tuple(known[relation] for relation in relations if relation is not None)
    return Union(name, columns, tuple(branches), read)


def _branch(source: SqlText, select: exp.Select, tables: tuple[Table, ...]) -> Branch:
    catalog = KnownTables(source, tables)
    has_from = select.args.get("from_") is not None
    body = Body(read_from(source, select, catalog, {}).scope if has_from else Scope(source, catalog))
    scalars = Scalars(body.scope, tuple(range(len(body.scope.occurrences))))
    items = [(item.alias, _expression(body, scalars, item.unalias())) for item in select.expressions]
    where = select.args.get("where")
    tests = [read_condition(body, scalars, each) for each in conjuncts([] if where is None else [where.this])]
    columns = tuple(expression for name, expression in items if name != WEIGHT)
    weight = next((expression for name, expression in items if name == WEIGHT), None)
    relation = body.scope.occurrences[0].relation if has_from else None
    return Branch(relation, columns, conjunction(tests), weight)


def _expression(body: Body, scalars: Scalars, node: exp.Expr) -> Expression:
    expression = scalars.translate(node)
    if body.scope.occurrences:
        body.check_kinds(Key(0, expression), node)
    return expression
