"""Functions of dates and timestamps as operations on days and microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.engine.expression.graph import WORD, Node
from ivme.engine.expression.numbers import INT_DIGITS, Value
from ivme.query.expression import Call, Literal
from ivme.query.functions.dates import MICROSECONDS, MONTHS, UNITS

if TYPE_CHECKING:
    from ivme.engine.expression.compile import Compiler

_SECOND_DIGITS = 8
_MICROS_DIGITS = 18
_CLOCK = {"hour": ("DAY", "HOUR"), "minute": ("HOUR", "MINUTE"), "second": ("MINUTE", "SECOND")}
"""A part of the time of day: what it is counted in, and the unit."""

_COUNTS = {"unix_seconds": "SECOND", "unix_millis": "MILLISECOND", "unix_micros": "MICROSECOND"}
_OF_COUNTS = {"timestamp_seconds": "SECOND", "timestamp_millis": "MILLISECOND", "timestamp_micros": "MICROSECOND"}


class Moments:
    """Compiles calls whose arguments are compiled; None where the kernel lacks a function for their types."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph

    def days(self, value: Value) -> Node | None:
        """The days of a date or a timestamp."""
        if value.kind == "timestamp":
            return self._graph.node("days_of_micros", WORD, value.node)
        return value.node if value.kind == "date" else None

    def micros(self, value: Value) -> Node | None:
        """The microseconds of a timestamp or a date."""
        if value.kind == "date":
            return self._graph.node("micros_of_days", WORD, value.node)
        return value.node if value.kind == "timestamp" else None

    def _made(
        self, call: Call, operation: str, *operands: Node | None, mask: Node | None = None, k: int = 0
    ) -> Value | None:
        """An operation on words; None if one of them is not a word."""
        if None in operands:
            return None
        type_ = self._compiler.type_of(call)
        return Value(self._graph.node(operation, WORD, *operands, mask=mask, k=k), type_, 0, INT_DIGITS)

    def _word(self, number: int) -> Node:
        return self._graph.word(number)

    def part_of_date(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        return self._made(call, call.function, self.days(arguments[0]))

    def part_of_time(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        micros = self.micros(arguments[0])
        if micros is None:
            return None
        whole, unit = (self._word(MICROSECONDS[name]) for name in _CLOCK[call.function])
        rest = self._graph.node("floor_modulo", WORD, micros, whole)
        return self._made(call, "floor_quotient", rest, unit)

    def seconds(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        """EXTRACT(SECOND), a decimal with the microseconds."""
        found = self._made(call, "floor_modulo", self.micros(arguments[0]), self._word(MICROSECONDS["MINUTE"]))
        return None if found is None else replace(found, scale=6, digits=_SECOND_DIGITS)

    def later(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """DATE_ADD, DATE_SUB and ADD_MONTHS."""
        start, count = arguments
        number = count.node
        if count.kind != "int":
            return None
        if call.function == "date_sub":
            number = self._graph.node("negate_word", WORD, number)
        operation = "add_months" if call.function == "add_months" else "add_days"
        return self._made(call, operation, self.days(start), number, mask=mask)

    def _unit(self, call: Call, place: int) -> str | None:
        unit = call.arguments[place]
        return UNITS.get(str(unit.value).upper()) if isinstance(unit, Literal) else None

    def timestampadd(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        unit, (_, count, start) = self._unit(call, 0), arguments
        if unit is None or count.kind != "int":
            return None
        size = self._word(MONTHS[unit] if unit in MONTHS else MICROSECONDS[unit])
        number = self._graph.node("multiply_int", WORD, count.node, size, mask=mask)
        operation = "add_months_to_micros" if unit in MONTHS else "add_micros"
        return self._made(call, operation, self.micros(start), number, mask=mask)

    def datediff(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        end, start = (self.days(argument) for argument in arguments)
        return self._made(call, "subtract_int", end, start, mask=mask)

    def timestampdiff(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        unit, (start, end) = self._unit(call, 0), (self.micros(argument) for argument in arguments[1:])
        if unit is None or start is None or end is None:
            return None
        if unit in MONTHS:
            distance = self._graph.node("months_apart", WORD, start, end)
        else:
            distance = self._graph.node("subtract_int", WORD, end, start, mask=mask)
        size = self._word(MONTHS[unit] if unit in MONTHS else MICROSECONDS[unit])
        return self._made(call, "div_int", distance, size, mask=mask)

    def date_trunc(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        unit, start = self._unit(call, 0), arguments[1]
        if unit is None:
            return None
        if unit in MONTHS or unit == "WEEK":
            return self._made(call, "micros_of_days", self._first_day(unit, self.days(start)))
        return self._made(call, "floor_to", self.micros(start), self._word(MICROSECONDS[unit]))

    def trunc(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        unit = self._unit(call, 1)
        first = self._first_day(unit, self.days(arguments[0])) if unit in (*MONTHS, "WEEK") else None
        return None if first is None else Value(first, self._compiler.type_of(call))

    def _first_day(self, unit: str | None, days: Node | None) -> Node | None:
        if days is None or unit is None:
            return None
        if unit == "WEEK":
            return self._graph.node("week_start", WORD, days)
        return self._graph.node("month_start", WORD, days, k=MONTHS[unit])

    def counted(self, call: Call, arguments: Sequence[Value], _mask: Node | None) -> Value | None:
        """UNIX_DATE, UNIX_SECONDS, ...: how many since 1970-01-01."""
        if call.function == "unix_date":
            return Value(arguments[0].node, self._compiler.type_of(call), 0, INT_DIGITS)
        unit = self._word(MICROSECONDS[_COUNTS[call.function]])
        return self._made(call, "floor_quotient", self.micros(arguments[0]), unit)

    def of_count(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """DATE_FROM_UNIX_DATE, TIMESTAMP_SECONDS, ..., and CAST of an integer to a timestamp."""
        count, zero = arguments[0], self._word(0)
        if count.kind != "int":
            return None
        if call.function == "date_from_unix_date":
            return self._made(call, "add_days", count.node, zero, mask=mask)
        unit = self._word(MICROSECONDS[_OF_COUNTS.get(call.function, "SECOND")])
        micros = self._graph.node("multiply_int", WORD, count.node, unit, mask=mask)
        return self._made(call, "add_micros", micros, zero, mask=mask)

    def cast(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """CAST to a date or a timestamp."""
        if arguments[0].kind == "int":
            return self.of_count(call, arguments, mask)
        node = (self.days if call.function == "cast_date" else self.micros)(arguments[0])
        return None if node is None else Value(node, self._compiler.type_of(call))

    def whole_seconds(self, call: Call, value: Value) -> Value | None:
        """CAST of a timestamp to an integer."""
        return self._made(call, "floor_quotient", value.node, self._word(MICROSECONDS["SECOND"]))

    def exact_seconds(self, value: Value) -> Value:
        """A timestamp as a decimal of seconds."""
        return replace(value, scale=6, digits=_MICROS_DIGITS)
