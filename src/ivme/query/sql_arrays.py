"""Arrays of constants, ARRAY(1, 2) and ARRAY['a', 'b']: a constant that columns of that type are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from ivme.query.expression import Expression, Literal
from ivme.query.inference import literal_type
from ivme.query.one_type import cast_to
from ivme.query.sql_deep_access import FLATTEN
from ivme.query.sql_text import SqlText
from ivme.query.types import Type

_CAST = "write its elements in one type, as in ARRAY(1.0, 2.5), or compare with a parameter: column = :name"


def read_array(source: SqlText, node: exp.Expr, elements: Sequence[Expression]) -> Literal:
    """The constant; its elements are constants of one type, NULL among them. Decimals get the scale of the longest.

    An empty one stands in COALESCE only, where it has the type of the other values.
    """
    if not all(isinstance(each, Literal) for each in elements):
        message = "an array of computed values is not supported: arrays are carried, compared and counted as wholes"
        raise source.unsupported(message, node, FLATTEN)
    value = _one_scale(tuple(each.value for each in elements if isinstance(each, Literal)))
    if literal_type(value) is None and (value or not isinstance(node.parent, exp.Coalesce)):
        raise source.unsupported("the elements of this array have no common type", node, _CAST)
    return Literal(value)


def nested_null(source: SqlText, node: exp.Expr, value: Expression, target: Type) -> Expression:
    """NULL as an array or struct; nothing else is converted."""
    if not isinstance(value, Literal) or value.value is not None:
        raise source.unsupported(f"a CAST to {target} is not supported", node, FLATTEN)
    return cast_to(value, None, target)


def _one_scale(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Decimals with one scale, as in Spark: ARRAY(1.5, 2.25) is ARRAY(1.50, 2.25)."""
    decimals = [value for value in values if isinstance(value, Decimal)]
    exponents = [exponent for value in decimals if isinstance(exponent := value.as_tuple().exponent, int)]
    one = Decimal((0, (1,), min([0, *exponents])))
    return tuple(value.quantize(one) if isinstance(value, Decimal) else value for value in values)
