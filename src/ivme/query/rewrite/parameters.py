"""Parameters: they are compared in the view's own block, so that blocks before it show what they are compared with.

SELECT x.n FROM (SELECT a, COUNT(*) AS n FROM R WHERE b = :b GROUP BY a) x
block#1: SELECT a, COUNT(*) AS n, b AS "#b" FROM R GROUP BY a, b
         SELECT x.n FROM block#1 AS x WHERE x."#b" = :b

Where rows depend on a value that no row has (NOT EXISTS, a count of nothing), the SELECT is joined with all values that
the parameter is compared with, and NULL, which equals none of them: see `domains`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from ivme.query.rewrite.clauses import (
    condition_of,
    conjuncts,
    own_columns,
    own_nodes,
    replaced,
    set_where,
)
from ivme.query.rewrite.domains import VALUE, Undecided
from ivme.query.rewrite.grouping_sets import has_total
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.script import Script, aliased, column, quoted
from ivme.query.sql_pairing import ASOF

BOTH_SIDES = "write LEFT JOIN, and for FULL JOIN the rows of the other side without a partner after UNION ALL"

Parameter = tuple[exp.Expr, exp.Expr, type[exp.Binary]]
"""An expression over columns, the parameter that it equals, and the comparison: = or <=>."""


def without_parameters(select: exp.Select, script: Script) -> tuple[exp.Select, list[Parameter]]:
    """The SELECT without the conditions of WHERE that are equalities with parameters, and those."""
    found, kept = [], []
    for each in condition_of(select):
        parameter = equality(each)
        if parameter is None:
            kept.append(each)
        else:
            found.append(parameter)
    if not found:
        return select, []
    refuse_whole(select, script)
    made = select.copy()
    set_where(made, [each.copy() for each in kept])
    return made, found


def refuse_whole(select: exp.Select, script: Script) -> None:
    """Aggregates of all rows have a row for every value of a parameter, also for those that no row has."""
    if not has_total(select):
        return
    is_whole = select.args.get("group") is None
    for each in condition_of(select):
        found = equality(each)
        if found is not None and (is_whole or found[2] is exp.EQ):
            message = "a parameter of aggregates of all rows is not supported where they are computed with"
            instead = "group by the column that the parameter is compared with"
            error = script.source.unsupported(message, found[1], instead)
            raise Undecided(found[1].name, error, is_whole=is_whole)


def exported(
    query: exp.Select, alias: exp.Identifier, columns: list[str] | None, script: Script
) -> tuple[exp.Select, list[str] | None, list[exp.Expr]]:
    """A query in FROM without parameters, the names of its columns, and the conditions on it of the SELECT around."""
    made, parameters = without_parameters(query, script)
    if not parameters:
        return query, columns, []
    made = made.copy()
    names = list(columns) if columns is not None else [item.alias for item in query.expressions]
    tests: list[exp.Expr] = []
    for number, (expression, parameter, comparison) in enumerate(parameters, 1):
        names.append(f"#{alias.name} {number}")
        shown(made, expression, names[-1])
        place = exp.Column(this=quoted(names[-1]), table=alias.copy())
        tests.append(comparison(this=place, expression=parameter.copy()))
    return made, names, tests


def shown(select: exp.Select, expression: exp.Expr, name: str) -> None:
    """Makes an expression a column of a SELECT, by which its rows are grouped if they are."""
    select.append("expressions", aliased(expression.copy(), name))
    if select.args.get("group") is not None:
        select.args["group"].append("expressions", expression.copy())


def equality(node: exp.Expr) -> Parameter | None:
    """What a condition compares with a parameter; None if it is not an equality of that kind."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    sides = (node.this.unnest(), node.expression.unnest())
    for side, other in (sides, sides[::-1]):
        if isinstance(side, exp.Placeholder) and other.find(exp.Placeholder) is None:
            made = isinstance(node, exp.EQ) or other.name.startswith("#")  # users write = only
            return (other, side, type(node)) if made else None
    return None


def bound_by(select: exp.Select, is_own: Mapping[str, object]) -> dict[str, exp.Expr]:
    """What the SELECT's own WHERE says that parameters equal: an expression over its tables."""
    found: dict[str, exp.Expr] = {}
    for each in condition_of(select):
        parameter = equality(each)
        if parameter is not None and parameter[2] is exp.EQ:
            columns = list(own_columns(parameter[0]))
            plain = not any(isinstance(node, exp.Query) for node in own_nodes(parameter[0]))
            if plain and columns and all(column.table in is_own for column in columns):
                found.setdefault(parameter[1].name, parameter[0])
    return found


def with_bound(node: exp.Expr, bound: Mapping[str, exp.Expr]) -> exp.Expr:
    """The node with what parameters equal in their place; queries inside it stay as they are."""

    def change(each: exp.Expr) -> exp.Expr | None:
        found = bound.get(each.name) if isinstance(each, exp.Placeholder) else None
        return None if found is None else found.copy()

    return replaced(node, change) if bound else node


def add_values(select: exp.Select, parameters: Iterable[str], script: Script) -> dict[str, exp.Expr]:
    """Joins a SELECT with the values of parameters, in front of its tables; the columns that they equal then."""
    found: dict[str, exp.Expr] = {}
    start, joins = select.args.get("from_"), list(select.args.get("joins") or ())
    tables: list[exp.Expr] = []
    for name in sorted(parameters):
        alias = f"#{name}"
        tables.append(script.values_of(name, alias))
        found[name] = column(alias, VALUE)
        if any(join.side in ("RIGHT", "FULL") for join in joins):
            message = f"the parameter :{name} is not supported beside RIGHT and FULL JOIN here"
            raise script.source.unsupported(message, exp.Placeholder(this=name), BOTH_SIDES)
        if any(join.method == ASOF for join in joins):
            message = f"the parameter :{name} is not supported beside ASOF JOIN here"
            instead = "make the ASOF JOIN a view, and write the parameter in a view over it"
            raise script.source.unsupported(message, exp.Placeholder(this=name), instead)
    if tables:
        tables += [] if start is None else [start.this]
        select.set("from_", exp.From(this=tables[0]))
        select.set("joins", [*(exp.Join(this=table, kind="CROSS") for table in tables[1:]), *joins])
    return found


def bind(select: exp.Select, names: Names, values: Mapping[str, exp.Expr]) -> None:
    """Finds out what parameters equal in the rows of a qualified SELECT; those of `values` are columns of it."""
    note_comparisons(select, names.tables, names.script)
    names.bound = {**bound_by(select, names.tables), **values}
    known = {select.args["from_"].this.alias_or_name}
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            before = {p: x for p, x in names.bound.items() if {found.table for found in own_columns(x)} <= known}
            join.set("on", with_bound(join.args["on"], before))
        known.add(join.this.alias_or_name)
    if values:
        for clause in ("where", "having"):
            if select.args.get(clause) is not None:
                select.set(clause, with_bound(select.args[clause], values))
        tests = [exp.NullSafeEQ(this=x.copy(), expression=exp.Placeholder(this=p)) for p, x in values.items()]
        set_where(select, [*condition_of(select), *tests])


def parameters_in(node: exp.Expr) -> list[str]:
    """The names of all parameters, those of queries inside included."""
    return list(dict.fromkeys(each.name for each in node.find_all(exp.Placeholder)))


def parameters_read(node: exp.Select, queries: Mapping[str, exp.CTE]) -> list[str]:
    """The names of the parameters of a SELECT; of the queries of WITH only those that are read count."""
    clause = node.args.get("with_")
    known = {**queries, **({} if clause is None else {cte.alias.lower(): cte for cte in clause.expressions})}
    body = node.copy()
    body.set("with_", None)
    parts: list[exp.Expr] = [body]
    read: set[str] = set()
    for part in parts:  # it grows
        names = {table.name.lower() for table in part.find_all(exp.Table)} & known.keys() - read
        read |= names
        parts += [known[name].this for name in sorted(names)]
    return list(dict.fromkeys(name for part in parts for name in parameters_in(part)))


def note_comparisons(
    select: exp.Select, tables: Mapping[str, exp.Expr], script: Script, *, with_hidden: bool = False
) -> None:
    """Tells the script which columns the parameters of a SELECT are compared with, as far as equalities say it.

    Hidden columns are those of queries inside, whose own comparisons are known; those of windows are not.
    """
    seen: set[int] = set()
    for each in _conditions(select):
        parameter = equality(each)
        if parameter is None:
            continue
        aliases = {column.table for column in own_columns(parameter[0])}
        if len(aliases) == 1 and aliases <= set(tables):
            seen |= {id(node) for node in each.walk()}
            if with_hidden or not any(column.name.startswith("#") for column in own_columns(parameter[0])):
                script.domains.compare(parameter[1].name, parameter[0], tables[next(iter(aliases))])
    for node in _all_own(select):
        if isinstance(node, exp.Placeholder) and id(node) not in seen:
            script.domains.blur(node)


def _conditions(select: exp.Select) -> Iterator[exp.Expr]:
    yield from condition_of(select)
    for join in select.args.get("joins") or ():
        yield from conjuncts(join.args.get("on"))


def _all_own(select: exp.Select) -> Iterable[exp.Expr]:
    for clause, value in select.args.items():
        if clause not in ("from_", "with_"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, exp.Expr):
                    yield from own_nodes(node)
