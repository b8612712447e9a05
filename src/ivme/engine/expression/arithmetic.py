"""Functions that need all their arguments and are not comparisons: arithmetic, rounding and casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.engine.expression.graph import REAL, WIDE, WORD, Node
from ivme.engine.expression.integers import REAL_FUNCTIONS, Integers
from ivme.engine.expression.moments import Moments
from ivme.engine.expression.numbers import INT_DIGITS, MOST_DIGITS, Value
from ivme.query.expression import Call, Expression, Literal

if TYPE_CHECKING:
    from ivme.engine.expression.compile import Compiler

_Method = Callable[[Call, Sequence[Value], Node | None], Value | None]


class Arithmetic:
    """Compiles calls whose arguments are compiled; None where the kernel lacks a function for their types."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph
        self._made = self._methods(Integers(compiler), compiler.moments)

    def _methods(self, integers: Integers, moments: Moments) -> dict[str, _Method]:
        """What compiles each function that needs all its arguments."""
        return {
            **dict.fromkeys(("add", "subtract", "multiply", "divide", "modulo"), self._arithmetic),
            **dict.fromkeys(("negate", "abs"), self._signed),
            **dict.fromkeys(("floor", "ceil"), self._whole),
            **dict.fromkeys(("cast_int", "cast_float", "cast_bool"), self._number),
            **dict.fromkeys(("cast_date", "cast_timestamp"), moments.cast),
            "round": self._rounded,
            "cast_decimal": self._in_digits,
            **dict.fromkeys(("div", "pmod"), integers.modulo),
            **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "bit_not", "bit_count"), integers.bits),
            **dict.fromkeys(("shiftleft", "shiftright", "shiftrightunsigned"), integers.bits),
            **dict.fromkeys(REAL_FUNCTIONS, integers.real),
            **dict.fromkeys(("year", "quarter", "month", "weekofyear", "day", "last_day"), moments.part_of_date),
            **dict.fromkeys(("dayofweek", "weekday", "dayofweek_iso"), moments.part_of_date),
            **dict.fromkeys(("dayofyear", "yearofweek"), moments.part_of_date),
            **dict.fromkeys(("hour", "minute", "second"), moments.part_of_time),
            "extract_second": moments.seconds,
            **dict.fromkeys(("date_add", "date_sub", "add_months"), moments.later),
            "timestampadd": moments.timestampadd,
            "datediff": moments.datediff,
            "timestampdiff": moments.timestampdiff,
            "date_trunc": moments.date_trunc,
            "trunc": moments.trunc,
            **dict.fromkeys(("unix_date", "unix_seconds", "unix_millis", "unix_micros"), moments.counted),
            **dict.fromkeys(("date_from_unix_date", "timestamp_seconds"), moments.of_count),
            **dict.fromkeys(("timestamp_millis", "timestamp_micros"), moments.of_count),
        }

    def value(self, call: Call, mask: Node | None) -> Value | None:
        if call.function == "cast_decimal" and (cast := self._cast_quotient(call, mask)) is not None:
            return cast
        arguments = [self._compiler.value(argument, mask) for argument in call.arguments]
        if any(argument.type is None for argument in arguments):
            plain = not any(isinstance(argument, Call) for argument in call.arguments)
            return self._compiler.constant(None, self._compiler.type_of(call)) if plain else None
        if any(argument.loose for argument in arguments):
            return None
        return self._made[call.function](call, arguments, mask)

    def _arithmetic(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        left, right = arguments
        type_, graph = self._compiler.type_of(call), self._graph
        if type_ is None or not (left.is_number and right.is_number):
            return None
        if type_.kind == "float":
            reals = [self._compiler.numbers.to_real(argument, mask) for argument in arguments]
            return Value(graph.node(f"{call.function}_real", REAL, *reals, mask=mask), type_)
        if type_.kind == "int":
            node = graph.node(f"{call.function}_int", WORD, left.node, right.node, mask=mask)
            return Value(node, type_, 0, INT_DIGITS)
        found = self._decimals(call.function, left, right, mask)
        return None if found is None or found.scale > MOST_DIGITS else replace(found, type=type_)

    def _decimals(self, function: str, left: Value, right: Value, mask: Node | None) -> Value | None:
        if function in ("add", "subtract"):
            return self._compiler.numbers.added(function, left, right, mask)
        if function == "multiply":
            return self._compiler.numbers.multiplied(left, right, mask)
        return self._compiler.numbers.remainder(left, right, mask) if function == "modulo" else None

    def quotient(self, call: Expression, scale: int, mask: Node | None) -> Value | None:
        """A quotient of decimals rounded to a scale: the one thing that becomes of it."""
        if not isinstance(call, Call) or call.function != "divide" or not self._is_decimal(call):
            return None
        left, right = (self._compiler.value(argument, mask) for argument in call.arguments)
        kinds = {left.kind, right.kind}
        if left.loose or right.loose or not kinds <= {"int", "decimal"}:
            return None
        found = self._compiler.numbers.quotient(left, right, scale, mask)
        return None if found is None else replace(found, type=self._compiler.type_of(call))

    def _is_decimal(self, call: Call) -> bool:
        type_ = self._compiler.type_of(call)
        return type_ is not None and type_.kind == "decimal"

    def _cast_quotient(self, call: Call, mask: Node | None) -> Value | None:
        type_ = self._compiler.type_of(call)
        assert type_ is not None
        assert type_.precision is not None
        assert type_.scale is not None
        found = self.quotient(call.arguments[0], type_.scale, mask)
        return None if found is None else self._compiler.numbers.in_digits(found, type_.precision, type_.scale, mask)

    def _signed(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        (value,) = arguments
        if not value.is_number:
            return None
        suffix = {WORD: "word", WIDE: "wide", REAL: "real"}[value.node.kind]
        return replace(value, node=self._graph.node(f"{call.function}_{suffix}", value.node.kind, value.node))

    def _rounded(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """ROUND to a constant number of digits, of numbers that are exact."""
        value, digits = arguments[0], call.arguments[1] if len(arguments) == 2 else Literal(0)
        if not isinstance(digits, Literal) or type(digits.value) is not int or value.kind not in ("int", "decimal"):
            return None
        places = digits.value
        if places >= value.scale:
            return replace(value, type=self._compiler.type_of(call))
        if value.scale - places > MOST_DIGITS or value.kind == "int":
            return None
        lowered = self._compiler.numbers.lowered(value, places, "half_up")
        found = lowered if places >= 0 else self._compiler.numbers.raised(lowered, 0, mask)
        return replace(found, type=self._compiler.type_of(call))

    def _whole(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """FLOOR and CEIL."""
        (value,), type_ = arguments, self._compiler.type_of(call)
        if value.kind == "int":
            return value
        if value.kind == "float":
            node = self._graph.node(f"{call.function}_real", WORD, value.node, mask=mask)
            return Value(node, type_, 0, INT_DIGITS)
        if value.kind != "decimal":
            return None
        found = self._compiler.numbers.lowered(value, 0, call.function) if value.scale else value
        return replace(found, type=type_)

    def _number(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """CAST to an int, a float or a truth value."""
        found = self._as_number(call, arguments[0], mask)
        if found is None or call.function != "cast_int" or len(arguments) == 1:
            return found
        bits = call.arguments[1]
        assert isinstance(bits, Literal)
        return replace(found, node=self._graph.node("fits_bits", WORD, found.node, mask=mask, k=bits.value))

    def _as_number(self, call: Call, value: Value, mask: Node | None) -> Value | None:
        type_ = self._compiler.type_of(call)
        if value.kind == "timestamp" and call.function == "cast_int":
            return self._compiler.moments.whole_seconds(call, value)
        if not value.is_number and value.kind != "bool":
            return None
        if call.function == "cast_float":
            return Value(self._compiler.numbers.to_real(value, mask), type_)
        if call.function == "cast_bool":
            return self._compiler.comparisons.truth(value)
        if value.kind == "float":
            return Value(self._graph.node("truncate_real", WORD, value.node, mask=mask), type_, 0, INT_DIGITS)
        if value.scale:
            value = self._compiler.numbers.lowered(value, 0, "truncate")
        node = value.node
        if node.kind == WIDE:
            node = self._graph.node("narrow", WORD, node, mask=mask)
        return Value(node, type_, 0, INT_DIGITS)

    def _in_digits(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """CAST to a decimal."""
        value, type_ = arguments[0], self._compiler.type_of(call)
        assert type_ is not None
        assert type_.precision is not None
        assert type_.scale is not None
        if value.kind == "bool":
            value = replace(value, digits=1)
        elif value.kind == "timestamp":
            value = self._compiler.moments.exact_seconds(value)
        elif value.kind not in ("int", "decimal"):
            return None
        return self._compiler.numbers.in_digits(value, type_.precision, type_.scale, mask)
