"""Sums of products of columns of two tables, maintained without a row for each pair: SUM(sale.amount * rate.value).

Each factor is an expression over one table. Products are exact: of integers, or of decimals that have as many digits as
it takes. Products of floats are rounded one by one, so that their sum is not the product of the sums.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from ivme.query.expression import Call, Expression, Literal
from ivme.query.inference import product_type
from ivme.query.sql_expression import Scalars
from ivme.query.sql_scope import Key
from ivme.query.sql_where import Body
from ivme.query.types import Type

_INT_DIGITS = 20
_MAX_DIGITS = 38


def read_joint(body: Body, scalars: Scalars, function: str, node: exp.Expr) -> tuple[Key, Key] | None:
    """The two factors of an aggregate's argument; None if it is not such a product."""
    if function not in ("sum", "avg"):
        return None
    factors = _factors(node)
    if len(factors) < 2 or any(each.find(exp.Query, exp.AggFunc, exp.Window) for each in factors):
        return None
    by_table: dict[int, list[exp.Expr]] = {}
    loose: list[exp.Expr] = []
    for factor in factors:
        tables = scalars.occurrences(factor)
        if len(tables) > 1:
            return None
        (by_table.setdefault(tables[0], []) if tables else loose).append(factor)
    if len(by_table) != 2 or any(body.scope.occurrences[each].closure is not None for each in by_table):
        return None
    first = next(iter(by_table))
    by_table[first] = [*loose, *by_table[first]]
    keys = [Key(table, scalars.translate(_multiplied(found))) for table, found in by_table.items()]
    for key in keys:
        body.check_kinds(key, node)
    exact = _exact(keys, [body.type(key) for key in keys])
    if exact is None:
        return None
    one, other = map(body.classes.add, exact)
    return one, other


def _factors(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return [*_factors(node.this), *_factors(node.expression)] if isinstance(node, exp.Mul) else [node]


def _multiplied(factors: list[exp.Expr]) -> exp.Expr:
    return reduce(lambda one, other: exp.Mul(this=one.copy(), expression=other.copy()), factors)


def _exact(keys: list[Key], types: list[Type | None]) -> list[Key] | None:
    """The factors in one kind, integers or decimals, if their products are exact."""
    kinds = {None if type_ is None else type_.kind for type_ in types}
    if kinds == {"int"}:
        return keys
    one, other = types
    if not kinds <= {"int", "decimal"} or one is None or other is None:
        return None
    if sum(type_.precision or _INT_DIGITS for type_ in (one, other)) >= _MAX_DIGITS:
        return None
    assert product_type(one, other).scale == (one.scale or 0) + (other.scale or 0)
    return [Key(key.occurrence, _decimal(key.expression, type_)) for key, type_ in zip(keys, (one, other), strict=True)]


def _decimal(expression: Expression, type_: Type) -> Expression:
    if type_.kind == "decimal":
        return expression
    return Call("cast_decimal", (expression, Literal(_INT_DIGITS), Literal(0)))
