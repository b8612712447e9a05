"""Parameters: they are compared in the view's own block, so that blocks before it show what they are compared with.

SELECT x.n FROM (SELECT a, COUNT(*) AS n FROM R WHERE b = :b GROUP BY a) x
block#1: SELECT a, COUNT(*) AS n, b AS "#b" FROM R GROUP BY a, b
         SELECT x.n FROM block#1 AS x WHERE x."#b" = :b
"""

from __future__ import annotations

from sqlglot import exp

from ivme.query.rewrite.clauses import condition_of, is_aggregated, set_where
from ivme.query.rewrite.script import Script, aliased, quoted

Parameter = tuple[exp.Expr, exp.Expr]
"""An expression over columns, and the parameter that it equals."""


def without_parameters(select: exp.Select, script: Script) -> tuple[exp.Select, list[Parameter]]:
    """The SELECT without the conditions of WHERE that are equalities with parameters, and those."""
    found, kept = [], []
    for each in condition_of(select):
        parameter = _equality(each)
        if parameter is None:
            kept.append(each)
        else:
            found.append(parameter)
    if not found:
        return select, []
    if is_aggregated(select) and select.args.get("group") is None:
        message = "a parameter of aggregates of all rows is not supported where they are computed with"
        instead = "group by the column that the parameter is compared with"
        raise script.source.unsupported(message, found[0][1].parent, instead)
    made = select.copy()
    set_where(made, [each.copy() for each in kept])
    return made, found


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
    for number, (expression, parameter) in enumerate(parameters, 1):
        names.append(f"#{alias.name} {number}")
        made.append("expressions", aliased(expression.copy(), names[-1]))
        if made.args.get("group") is not None:
            made.args["group"].append("expressions", expression.copy())
        place = exp.Column(this=quoted(names[-1]), table=alias.copy())
        tests.append(exp.EQ(this=place, expression=parameter.copy()))
    return made, names, tests


def _equality(node: exp.Expr) -> Parameter | None:
    if not isinstance(node, exp.EQ):
        return None
    sides = (node.this.unnest(), node.expression.unnest())
    for side, other in (sides, sides[::-1]):
        if isinstance(side, exp.Placeholder) and other.find(exp.Placeholder) is None:
            return other, side
    return None
