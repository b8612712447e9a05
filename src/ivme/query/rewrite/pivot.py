"""PIVOT and UNPIVOT as SELECTs.

SELECT * FROM R PIVOT (SUM(x) FOR kind IN ('a', 'b'))
SELECT * EXCEPT (x, kind), SUM(x) FILTER (WHERE kind = 'a') AS a, ... AS b FROM R GROUP BY ALL

SELECT * FROM R UNPIVOT (x FOR kind IN (a, b))
SELECT * EXCEPT (a, b), 'a' AS kind, a AS x FROM R WHERE a IS NOT NULL UNION ALL ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from ivme.query.rewrite.clauses import aggregates_in, is_null_of_none, replaced
from ivme.query.rewrite.script import aliased, quoted
from ivme.query.sql_text import SqlText

_PLAIN = "pivot one column at a time, with constants as its values"


def without_pivots(source: SqlText, statement: exp.Expr) -> exp.Expr:
    """The statement with a subquery for each source that is turned; changed in place."""
    turned = [node for node in statement.find_all(exp.Table, exp.Subquery) if node.args.get("pivots")]
    for node in reversed(turned):  # those inside others first
        pivots = node.args["pivots"]
        inner = node.copy()
        inner.set("pivots", None)
        for pivot in pivots:
            made = _unpivoted(source, inner, pivot) if pivot.args.get("unpivot") else _pivoted(source, inner, pivot)
            alias = pivot.args.get("alias") or exp.TableAlias(this=quoted("pivot"))
            inner = exp.Subquery(this=made, alias=alias.copy())
        node.replace(inner)
    return statement


def _pivoted(source: SqlText, table: exp.Expr, pivot: exp.Pivot) -> exp.Select:
    """A group for each row of the columns that PIVOT does not name, with a column for each value and aggregate."""
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        raise source.unsupported("this PIVOT is not supported", pivot, _PLAIN)
    keys = _parts(fields[0].this)
    names = [each.name for each in pivot.args.get("columns") or ()]
    items: list[exp.Expr] = []
    for value in fields[0].expressions:
        condition = _is_value(source, keys, value)
        for aggregate in pivot.expressions:
            name = names[len(items)] if len(items) < len(names) else ""
            if not name:
                raise source.unsupported("a value of PIVOT has no name", value, "name it with AS")
            items.append(aliased(_where(source, aggregate.unalias(), condition), name))
    named = [each for node in (*keys, *pivot.expressions) for each in node.find_all(exp.Column)]
    made = exp.Select(expressions=[_all_but(named), *items], from_=exp.From(this=table.copy()))
    made.set("group", exp.Group(all=True))
    return made


def _is_value(source: SqlText, keys: Sequence[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The condition that the pivoted columns have a value."""
    parts = _parts(value.this if isinstance(value, exp.PivotAlias) else value)
    if len(parts) != len(keys) or any(each.find(exp.Column) for each in parts):
        raise source.unsupported("PIVOT takes constants as values", value, _PLAIN)
    made: exp.Expr | None = None
    for key, part in zip(keys, parts, strict=True):
        test = exp.NullSafeEQ(this=key.copy(), expression=part.copy())
        made = test if made is None else exp.And(this=made, expression=test)
    assert made is not None, "there is a column"
    return exp.Paren(this=made)


def _where(source: SqlText, aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An expression over aggregates, over the rows of a value; NULL if there are none, also where it counts."""
    found = aggregates_in(aggregate)
    if not found:
        raise source.unsupported("PIVOT takes aggregates", aggregate, "write SUM(...), MAX(...) or another aggregate")

    def filtered(node: exp.Expr) -> exp.Expr | None:
        if not any(node is each for each in aggregates_in(node)):
            return None
        return exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy()))

    made = replaced(aggregate, filtered)
    if len(found) == 1 and found[0] is aggregate and is_null_of_none(aggregate):
        return made
    rows = exp.Filter(this=exp.Count(this=exp.Star()), expression=exp.Where(this=condition.copy()))
    some = exp.GT(this=rows, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=made)])


def _unpivoted(source: SqlText, table: exp.Expr, pivot: exp.Pivot) -> exp.Expr:
    """A row for each row and column that UNPIVOT names, with the column's name and its value."""
    fields = pivot.args.get("fields") or []
    is_plain = len(fields) == 1 and isinstance(fields[0], exp.In) and len(pivot.expressions) == 1
    columns = [each.this if isinstance(each, exp.PivotAlias) else each for each in fields[0].expressions]
    if not is_plain or not columns or not all(isinstance(each, exp.Column) for each in columns):
        instead = "write UNPIVOT (value FOR name IN (a, b))"
        raise source.unsupported("this UNPIVOT is not supported", pivot, instead)
    made: exp.Expr | None = None
    for column, given in zip(columns, fields[0].expressions, strict=True):
        label = given.args["alias"].name if isinstance(given, exp.PivotAlias) else column.name
        items = [
            _all_but(columns),
            aliased(exp.Literal.string(label), fields[0].this.name),
            aliased(column.copy(), pivot.expressions[0].name),
        ]
        branch = exp.Select(expressions=items, from_=exp.From(this=table.copy()))
        if not pivot.args.get("include_nulls"):
            branch.set("where", exp.Where(this=exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))))
        made = branch if made is None else exp.Union(this=made, expression=branch, distinct=False)
    assert made is not None, "there is a column"
    return made


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _all_but(columns: Iterable[exp.Expr]) -> exp.Star:
    """All columns of the source but these."""
    named = {each.name.lower(): each.this.copy() for each in columns}
    return exp.Star(except_=list(named.values()))
