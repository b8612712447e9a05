"""Derived tables that become part of the SELECT around them, and the aliases that their tables get there.

An alias that we make is one that nothing in sight has: neither this FROM clause nor that of a query around it, whose
columns keep their aliases in subqueries.
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.clauses import condition_of, is_aggregated, own_columns, replaced
from ivme.query.rewrite.from_clause import under
from ivme.query.rewrite.qualify import Inlined, Names
from ivme.query.rewrite.script import column, fresh_name, refuse_repeated
from ivme.query.sql_text import SqlText


def aliases_in(*holders: exp.Expr) -> list[str]:
    """The aliases and names of tables in parts of a FROM clause, those within subqueries included."""
    found = [each for holder in holders for each in holder.find_all(exp.Table, exp.TableAlias)]
    return [each.alias_or_name if isinstance(each, exp.Table) else each.name for each in found]


def aliases_around(names: Names | None) -> list[str]:
    """The aliases in all queries around one, as written and as they are now."""
    return [] if names is None else [*names.sources, *names.tables, *aliases_around(names.outer)]


def untaken(wanted: str, taken: list[str]) -> str:
    """A name like the wanted one that is not taken; from now on it is."""
    taken.append(fresh_name(wanted, taken))
    return taken[-1]


def identifier_of(alias: exp.Expr | None, default: str, taken: list[str]) -> exp.Identifier:
    """The name of an alias; where there is none, one like the default."""
    found = None if alias is None else alias.this
    return found if isinstance(found, exp.Identifier) else exp.Identifier(this=untaken(default, taken))


def inline(
    query: exp.Select, alias: exp.Identifier, columns: list[str] | None, taken: list[str], source: SqlText
) -> Inlined | None:
    """The tables, conditions and columns of a query that can be part of the SELECT around; None if it cannot."""
    constants = any(next(own_columns(item), None) is None for item in query.expressions)
    if constants or is_aggregated(query) or query.args.get("distinct") is not None:
        return None
    tables = [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
    refuse_repeated(query.expressions if columns is None else (), source)
    names = columns or [item.alias for item in query.expressions]
    if len(names) != len(query.expressions):
        return None
    renamed = {name: untaken(f"{alias.name}.{name}", taken) for name in (table.alias_or_name for table in tables)}

    def change(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column) or node.table not in renamed:
            return None
        return column(renamed[node.table], node.name)

    made = [replaced(item.unalias(), change) for item in query.expressions]
    if len({exact_text(each) for each in made}) < len(made):  # columns that grouping sets tell apart
        return None
    return Inlined(
        {renamed[table.alias_or_name]: under(table, renamed[table.alias_or_name]) for table in tables},
        [replaced(each, change) for each in condition_of(query)],
        {alias.name: dict(zip(names, made, strict=True))},
    )
