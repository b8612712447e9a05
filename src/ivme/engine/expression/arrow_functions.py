"""Arrow kernels for the scalar functions, where they mean exactly what `expression.FUNCTIONS` means.

A kernel takes the call, the types of its arguments and the arguments themselves (arrays, or scalars for constants);
it answers with an array, or with None where Arrow would give anything else than `evaluate`, for some row, or for a
pair of types. An Arrow error counts as None, too. Not here, since Arrow differs: rounding (floats in their decimal
digits), casts of and to text but the plainest, and division and remainders of decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.arrow_types import arrow_type, column_type
from ivme.engine.expression import arrow_text as text
from ivme.query import sql_values
from ivme.query.expression import Call, Literal
from ivme.query.types import Type

Types = list[Type]
Arguments = list[Any]
Kernel = Callable[[Call, Types, Arguments], pa.Array | None]

_FLOAT = pa.float64()


def widened(array: pa.Array, type_: Type) -> pa.Array:
    """An array's values in a type that holds them; raises an Arrow error where that may not be exact."""
    wanted = arrow_type(type_)
    if array.type == wanted or pa.types.is_null(array.type):
        return array.cast(wanted)
    if type_.kind == "float" and pa.types.is_integer(array.type):
        return array.cast(wanted, safe=False)
    if type_.kind == "decimal" and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(19, 0)).cast(wanted)
    if (column_type(array.type) or type_).kind in ("decimal", "date") and type_.kind in ("decimal", "timestamp"):
        return array.cast(wanted)
    raise pa.ArrowInvalid(f"{array.type} is not widened to {wanted}")


def _floats(*arguments: Any) -> list[Any]:
    return [pc.cast(argument, _FLOAT, safe=False) for argument in arguments]


def _compared(name: str, call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    """A comparison; NaN is left to `evaluate`, for which it is the largest number."""
    left, right = _comparable(call, types, arguments)
    if left is None or right is None:
        return None
    if left.type == right.type == _FLOAT and any(pc.any(pc.is_nan(side)).as_py() for side in (left, right)):
        return None
    return getattr(pc, name)(left, right)


def _comparable(call: Call, types: Types, arguments: Arguments) -> tuple[Any, Any]:
    """Both sides in one type, or None for a side where there is none."""
    left, right = arguments
    kinds = {types[0].kind, types[1].kind}
    if len(kinds) == 1 or kinds == {"int", "decimal"}:
        return left, right
    if kinds == {"int", "float"}:
        left, right = _floats(left, right)
        return left, right
    if kinds == {"date", "timestamp"}:
        return pc.cast(left, pa.timestamp("us")), pc.cast(right, pa.timestamp("us"))
    if kinds in ({"string", "date"}, {"string", "timestamp"}):
        return _moment(call, 0, types, left), _moment(call, 1, types, right)
    return None, None


def _moment(call: Call, side: int, types: Types, argument: Any) -> Any:
    """One side of the comparison of a date or timestamp with its text, if that is a constant."""
    if types[side].kind != "string":
        return argument
    constant, other = call.arguments[side], types[1 - side]
    if not isinstance(constant, Literal):
        return None
    try:
        read = sql_values.to_date if other.kind == "date" else sql_values.to_timestamp
        return pa.scalar(read(constant.value), arrow_type(other))
    except ValueError:
        return None


def _comparison(name: str) -> Kernel:
    return lambda call, types, arguments: _compared(name, call, types, arguments)


def _null_safe_eq(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    equal = _compared("equal", call, types, arguments)
    left, right = (pc.is_null(argument) for argument in arguments)
    return None if equal is None else pc.if_else(pc.or_(left, right), pc.and_(left, right), equal)


def _nullif(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    equal = _compared("equal", call, types, arguments)
    if equal is None:
        return None
    return pc.if_else(pc.fill_null(equal, False), pa.scalar(None, arguments[0].type), arguments[0])


def _in(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    found: Any = pa.scalar(False)
    for position in range(1, len(arguments)):
        pair = Call("eq", (call.arguments[0], call.arguments[position]))
        equal = _compared("equal", pair, [types[0], types[position]], [arguments[0], arguments[position]])
        if equal is None:
            return None
        found = pc.or_kleene(found, equal)
    return found


def _arithmetic(name: str) -> Kernel:
    def kernel(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        kinds = {type_.kind for type_ in types}
        if kinds == {"int"}:
            return getattr(pc, f"{name}_checked")(*arguments)
        if kinds <= {"int", "float"}:
            return getattr(pc, name)(*_floats(*arguments))
        if "float" in kinds:
            return None
        return getattr(pc, name)(*map(_decimal, call.arguments, types, arguments))

    return kernel


def _decimal(expression: object, type_: Type, argument: Any) -> Any:
    if type_.kind == "decimal":
        return argument
    if isinstance(expression, Literal):
        return pa.scalar(Decimal(expression.value), pa.decimal128(len(str(abs(expression.value))), 0))
    return pc.cast(argument, pa.decimal128(19, 0))


def _divide(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if not all(type_.kind in ("int", "float") for type_ in types):
        return None
    left, right = _floats(*arguments)
    by_zero = pc.and_(pc.is_valid(left), pc.fill_null(pc.equal(right, 0.0), False))
    return None if pc.any(by_zero).as_py() else pc.divide(left, right)


def _modulo(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    if not all(type_.kind == "int" for type_ in types):
        return None
    left, right = arguments
    null = pc.or_(pc.is_null(left), pc.is_null(right))
    divisors = np.asarray(_numbers(pc.if_else(null, 1, right)))
    if (divisors == 0).any():
        return None
    remainders = np.fmod(_numbers(pc.fill_null(left, 0)), divisors)
    return pc.if_else(null, None, pa.array(np.broadcast_to(remainders, len(null))))


def _numbers(values: Any) -> Any:
    return np.int64(values.as_py()) if isinstance(values, pa.Scalar) else values.to_numpy()


def _signed(name: str) -> Kernel:
    def kernel(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        return getattr(pc, f"{name}_checked" if types[0].kind == "int" else name)(arguments[0])

    return kernel


def _whole(name: str) -> Kernel:
    def kernel(_call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
        if types[0].kind == "int":
            return arguments[0]
        return text.integers(getattr(pc, name)(arguments[0])) if types[0].kind == "float" else None

    return kernel


def _round(call: Call, types: Types, arguments: Arguments) -> pa.Array | None:
    digits = call.arguments[1] if len(call.arguments) == 2 else Literal(0)
    keeps = isinstance(digits, Literal) and type(digits.value) is int and digits.value >= 0
    return arguments[0] if types[0].kind == "int" and keeps else None


def _is_null(_call: Call, _types: Types, arguments: Arguments) -> pa.Array:
    return pc.is_null(arguments[0])


KERNELS: dict[str, Kernel] = {
    "eq": _comparison("equal"),
    "ne": _comparison("not_equal"),
    "lt": _comparison("less"),
    "le": _comparison("less_equal"),
    "gt": _comparison("greater"),
    "ge": _comparison("greater_equal"),
    "null_safe_eq": _null_safe_eq,
    "is_null": _is_null,
    "in": _in,
    "like": text.like,
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "divide": _divide,
    "modulo": _modulo,
    "negate": _signed("negate"),
    "abs": _signed("abs"),
    "round": _round,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "nullif": _nullif,
    "lower": text.recased("lower"),
    "upper": text.recased("upper"),
    "length": text.length,
    "substring": text.substring,
    "concat": text.concat,
    "trim": text.trim,
    "year": text.part_of_date("year"),
    "month": text.part_of_date("month"),
    "day": text.part_of_date("day"),
    "cast_int": text.cast_int,
    "cast_float": text.cast_float,
    "cast_decimal": text.cast_decimal,
    "cast_string": text.cast_string,
    "cast_bool": text.cast_bool,
    "cast_date": text.cast_date,
    "cast_timestamp": text.cast_timestamp,
}
"""The kernels by the names of `expression.FUNCTIONS`; functions that evaluate their arguments lazily have none."""
