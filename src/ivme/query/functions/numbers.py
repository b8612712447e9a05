"""Functions of numbers: arithmetic, rounding, bits, and those of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from typing import Any

from ivme.query import sql_values as values
from ivme.query.functions.definition import INTEGERS, NUMBERS, Function

_WORD = 2**64
_WIDE = Context(prec=400)


def _signed(word: int) -> int:
    """The integer of 64 bits with these bits."""
    word %= _WORD
    return word - _WORD if word >= _WORD // 2 else word


def positive_modulo(left: Any, right: Any) -> Any:
    """The remainder, with the divisor added to a negative one, as Spark does it."""
    found = values.modulo(left, right)
    return values.modulo(values.add(found, right), right) if found < 0 else found


def integral_quotient(left: Any, right: Any) -> int:
    """The quotient of integers or decimals without its fraction."""
    if right == 0:
        raise ZeroDivisionError("division by zero; guard it with NULLIF or CASE")
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return values.bounded(quotient if (left < 0) == (right < 0) else -quotient)
    return values.bounded(int(values.WIDE.divide_int(values.decimal(left), values.decimal(right))))


def _to_digits(how: str) -> Callable[[Any, int], Decimal]:
    """A number rounded to so many digits after the point, as a decimal; a float has 15 of them, as in Spark."""

    def apply(value: Any, digits: int) -> Decimal:
        exact = values.to_decimal(value, 30, 15) if isinstance(value, float) else values.decimal(value)
        exponent = exact.as_tuple().exponent
        if not isinstance(exponent, int) or -exponent <= digits:
            return exact
        cut = exact.quantize(Decimal(1).scaleb(-digits), how, _WIDE).quantize(Decimal(1).scaleb(-max(digits, 0)))
        return cut or cut.copy_abs()

    return apply


def _factorial(value: int) -> int | None:
    return math.factorial(value) if 0 <= value <= 20 else None


def _sign(value: Any) -> float:
    return float((value > 0) - (value < 0))


def _real(function: Callable[[float], float]) -> Callable[[Any], float]:
    """A function of a float: NaN where it has no value, and infinite where it overflows, as in Java."""

    def apply(value: Any) -> float:
        number = values.to_float(value)
        try:
            return function(number)
        except OverflowError:
            return math.inf if function(math.copysign(1.0, number)) > 0 else -math.inf
        except ValueError:
            return math.nan

    return apply


def _nearest(number: float) -> float:
    """The nearest whole number, of two the even one."""
    return float(round(number)) if math.isfinite(number) else number


def _logarithm(function: Callable[[float], float], least: float = 0.0) -> Callable[[Any], float | None]:
    """A logarithm, which is NULL where there is none."""

    def apply(value: Any) -> float | None:
        number = values.to_float(value)
        return function(number) if number > least else None

    return apply


def _log(base: Any, value: Any) -> float | None:
    divisor, dividend = values.to_float(base), values.to_float(value)
    if divisor <= 0 or dividend <= 0:
        return None
    logarithms = math.log(dividend), math.log(divisor)
    if logarithms[1] == 0:
        return math.nan if logarithms[0] == 0 else math.copysign(math.inf, logarithms[0])
    return logarithms[0] / logarithms[1]


def power(base: Any, exponent: Any) -> float:
    """Java's power: infinite where 0 has a negative exponent, NaN for a root of a negative number."""
    left, right = values.to_float(base), values.to_float(exponent)
    if abs(left) == 1 and math.isinf(right):
        return math.nan
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        return math.inf if left == 0 else math.nan


def _shift(value: int, count: int) -> int:
    return _signed(value << count % 64)


def _unsigned_shift(value: int, count: int) -> int:
    return _signed(value % _WORD >> count % 64)


def _arithmetic(count: tuple[int, int], apply: Callable[..., Any], sql: str, symbol: str = "") -> Function:
    return Function(*count, apply, sql, "arithmetic", NUMBERS, symbol=symbol)


def _rounding(apply: Callable[..., Any], sql: str, runs: str = "kernel") -> Function:
    return Function(1, 2, apply, sql, "arithmetic", NUMBERS, (INTEGERS,), runs=runs)


def _digits(apply: Callable[..., Any], name: str) -> Function:
    return Function(
        2, 2, apply, f"{name}(a, digits)", "decimal", NUMBERS, (INTEGERS,), runs="by row", form=f"{name}({{0}}, {{1}})"
    )


def _of_float(apply: Callable[..., Any], sql: str, count: int = 1, runs: str = "by row") -> Function:
    return Function(count, count, apply, sql, "float", NUMBERS, (NUMBERS,), runs=runs, fails="never")


def _of_bits(count: int, apply: Callable[..., Any], sql: str, symbol: str = "", form: str = "") -> Function:
    return Function(
        count, count, apply, sql, "int", INTEGERS, (INTEGERS,), runs="kernel", fails="never", symbol=symbol, form=form
    )


NUMERIC: dict[str, Function] = {
    "add": _arithmetic((2, 2), values.add, "a + b", "+"),
    "subtract": _arithmetic((2, 2), values.subtract, "a - b", "-"),
    "multiply": _arithmetic((2, 2), values.multiply, "a * b", "*"),
    "divide": _arithmetic((2, 2), values.divide, "a / b", "/"),
    "modulo": _arithmetic((2, 2), values.modulo, "a % b, MOD(a, b)", "%"),
    "pmod": _arithmetic((2, 2), positive_modulo, "PMOD(a, b)"),
    "div": Function(2, 2, integral_quotient, "a DIV b", "int", ("int", "decimal"), (("int", "decimal"),), symbol="DIV"),
    "negate": _arithmetic((1, 1), values.negate, "-a, NEGATIVE(a)"),
    "abs": _arithmetic((1, 1), values.absolute, "ABS(a)"),
    "round": _rounding(values.rounded, "ROUND(a), ROUND(a, digits)"),
    "bround": _rounding(partial(values.rounded, how=ROUND_HALF_EVEN), "BROUND(a), BROUND(a, digits)", "by row"),
    "floor": _arithmetic((1, 1), values.floor, "FLOOR(a)"),
    "ceil": _arithmetic((1, 1), values.ceil, "CEIL(a), CEILING(a)"),
    "floor_to": _digits(_to_digits(ROUND_FLOOR), "FLOOR"),
    "ceil_to": _digits(_to_digits(ROUND_CEILING), "CEIL"),
    "sign": _of_float(_sign, "SIGN(a), SIGNUM(a)", runs="kernel"),
    "sqrt": _of_float(_real(math.sqrt), "SQRT(a)", runs="kernel"),
    "cbrt": _of_float(_real(math.cbrt), "CBRT(a)", runs="kernel"),
    "power": _of_float(power, "POWER(a, b), POW(a, b)", 2, "kernel"),
    "exp": _of_float(_real(math.exp), "EXP(a)", runs="kernel"),
    "expm1": _of_float(_real(math.expm1), "EXPM1(a)", runs="kernel"),
    "ln": _of_float(_logarithm(math.log), "LN(a), LOG(a)", runs="kernel"),
    "log": _of_float(_log, "LOG(base, a)", 2),
    "log10": _of_float(_logarithm(math.log10), "LOG10(a)", runs="kernel"),
    "log2": _of_float(_logarithm(math.log2), "LOG2(a)", runs="kernel"),
    "log1p": _of_float(_logarithm(math.log1p, -1.0), "LOG1P(a)", runs="kernel"),
    "sin": _of_float(_real(math.sin), "SIN(a)", runs="kernel"),
    "cos": _of_float(_real(math.cos), "COS(a)", runs="kernel"),
    "tan": _of_float(_real(math.tan), "TAN(a)", runs="kernel"),
    "asin": _of_float(_real(math.asin), "ASIN(a)", runs="kernel"),
    "acos": _of_float(_real(math.acos), "ACOS(a)", runs="kernel"),
    "atan": _of_float(_real(math.atan), "ATAN(a)", runs="kernel"),
    "atan2": _of_float(lambda y, x: math.atan2(values.to_float(y), values.to_float(x)), "ATAN2(y, x)", 2, "kernel"),
    "sinh": _of_float(_real(math.sinh), "SINH(a)", runs="kernel"),
    "cosh": _of_float(_real(math.cosh), "COSH(a)", runs="kernel"),
    "tanh": _of_float(_real(math.tanh), "TANH(a)", runs="kernel"),
    "hypot": _of_float(lambda a, b: math.hypot(values.to_float(a), values.to_float(b)), "HYPOT(a, b)", 2),
    "degrees": _of_float(_real(math.degrees), "DEGREES(a)", runs="kernel"),
    "radians": _of_float(_real(math.radians), "RADIANS(a)", runs="kernel"),
    "rint": _of_float(_real(_nearest), "RINT(a)", runs="kernel"),
    "factorial": Function(1, 1, _factorial, "FACTORIAL(a)", "int", INTEGERS, runs="by row", fails="never"),
    "bit_and": _of_bits(2, lambda a, b: a & b, "a & b", "&"),
    "bit_or": _of_bits(2, lambda a, b: a | b, "a | b", "|"),
    "bit_xor": _of_bits(2, lambda a, b: a ^ b, "a ^ b", "^"),
    "bit_not": _of_bits(1, lambda value: ~value, "~a", form="~{0}"),
    "bit_count": _of_bits(1, lambda value: (value % _WORD).bit_count(), "BIT_COUNT(a)"),
    "shiftleft": _of_bits(2, _shift, "a << b, SHIFTLEFT(a, b)"),
    "shiftright": _of_bits(2, lambda value, count: value >> count % 64, "a >> b, SHIFTRIGHT(a, b)"),
    "shiftrightunsigned": _of_bits(2, _unsigned_shift, "SHIFTRIGHTUNSIGNED(a, b)"),
}
