"""Comparisons of compiled values: both sides in the one type in which Spark compares them."""

from __future__ import annotations

import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.engine.expression.graph import REAL, WIDE, WORD, Node
from ivme.engine.expression.numbers import Value
from ivme.query import sql_values
from ivme.query.expression import Call, Expression, Literal
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.engine.expression.compile import Compiler

_BOOL = Type("bool")
_SUFFIXES = {WORD: "word", WIDE: "wide", REAL: "real"}
_ORDERS = ("lt", "le", "gt", "ge")
_CHAIN = 3
"""Up to so many constants of an IN list are compared one by one."""

_MEMBERS: dict[str, type] = {"int": int, "date": datetime.date, "timestamp": datetime.datetime}
"""The constants of longer lists, by the kind of what is compared with them."""


class Comparisons:
    """Compiles =, <>, <, <=, >, >=, <=> and IN."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph

    def value(self, call: Call, mask: Node | None) -> Value | None:
        """A comparison; None if the kernel lacks it for these types."""
        if call.function == "in":
            return self._in(call, mask)
        left, right = (self._compiler.value(argument, mask) for argument in call.arguments)
        if call.function != "null_safe_eq":
            node = self.compared(call.function, call.arguments, left, right, mask)
            return None if node is None else Value(node, _BOOL)
        return self._null_safe(call, left, right, mask)

    def _null_safe(self, call: Call, left: Value, right: Value, mask: Node | None) -> Value | None:
        if left.type is None or right.type is None:
            both = self._both(self.is_null(left), self.is_null(right))
            return Value(both, _BOOL)
        equal = self.compared("eq", call.arguments, left, right, mask)
        if equal is None:
            return None
        nulls = self.is_null(left), self.is_null(right)
        either = self._graph.node("or_truth", WORD, *nulls)
        return Value(self._graph.node("select_word", WORD, self._both(*nulls), equal, mask=either), _BOOL)

    def _both(self, left: Node, right: Node) -> Node:
        return self._graph.node("and_truth", WORD, left, right)

    def is_null(self, value: Value) -> Node:
        return self._graph.node(f"is_null_{_SUFFIXES[value.node.kind]}", WORD, value.node)

    def truth(self, value: Value) -> Value:
        """CAST of a number to a truth value."""
        if value.kind == "bool":
            return value
        zeros = {WORD: self._graph.word(0), WIDE: self._graph.wide(0), REAL: self._graph.real(0)}
        kind = value.node.kind
        return Value(self._graph.node(f"ne_{_SUFFIXES[kind]}", WORD, value.node, zeros[kind]), _BOOL)

    def compared(
        self, function: str, written: tuple[Expression, ...], left: Value, right: Value, mask: Node | None
    ) -> Node | None:
        """The node of a comparison; None if the kernel lacks it for these types, or one side is loose."""
        if left.loose or right.loose:
            return None
        if left.type is None or right.type is None:
            plain = not any(isinstance(argument, Call) for argument in written)
            return self._graph.word(NULL_CODE) if plain else None
        coded = left.kind in ("string", "binary") or left.type.is_nested
        if left.kind == right.kind and coded and function in _ORDERS:
            number = self._compiler.dictionary(left.type)
            return self._graph.node(f"{function}_text", WORD, left.node, right.node, mask=mask, k=number)
        sides = self._sides(written, left, right, mask)
        if sides is None:
            return None
        return self._graph.node(f"{function}_{_SUFFIXES[sides[0].kind]}", WORD, *sides)

    def _sides(
        self, written: tuple[Expression, ...], left: Value, right: Value, mask: Node | None
    ) -> tuple[Node, Node] | None:
        numbers, kinds = self._compiler.numbers, {left.kind, right.kind}
        if left.is_number and right.is_number:
            if "float" in kinds:
                return numbers.to_real(left, mask), numbers.to_real(right, mask)
            one, other = numbers.aligned(left, right, mask)
            return one.node, other.node
        if len(kinds) == 1:
            return left.node, right.node
        if kinds in ({"string", "date"}, {"string", "timestamp"}):
            return self._dated(written, left, right)
        if kinds == {"date", "timestamp"}:
            return self._micros(left), self._micros(right)
        return None

    def _micros(self, value: Value) -> Node:
        node = self._compiler.moments.micros(value)
        assert node is not None
        return node

    def _dated(self, written: tuple[Expression, ...], left: Value, right: Value) -> tuple[Node, Node] | None:
        """A date or timestamp and its text, if that is a constant."""
        text, moment = (written[0], right) if left.kind == "string" else (written[1], left)
        if not isinstance(text, Literal):
            return None
        read = sql_values.to_date if moment.kind == "date" else sql_values.to_timestamp
        try:
            constant = self._compiler.constant(read(text.value), moment.type)
        except ValueError:
            return None
        return (constant.node, right.node) if left.kind == "string" else (left.node, constant.node)

    def _in(self, call: Call, mask: Node | None) -> Value | None:
        first, options = call.arguments[0], call.arguments[1:]
        left = self._compiler.value(first, mask)
        members = self._members(left, options)
        if members is not None:
            self._compiler.members.append(members)
            number = len(self._compiler.members) - 1
            return Value(self._graph.node("in_words", WORD, left.node, k=number), _BOOL)
        equal: list[Node] = []
        for option in options:
            node = self.compared("eq", (first, option), left, self._compiler.value(option, mask), mask)
            if node is None:
                return None
            equal.append(node)
        return Value(reduce(lambda a, b: self._graph.node("or_truth", WORD, a, b), equal), _BOOL)

    def _members(self, left: Value, options: tuple[Expression, ...]) -> tuple[list[int], bool] | None:
        """The codes of many constants of the left side's own kind, and whether NULL is one of them."""
        wanted = _MEMBERS.get(left.kind)
        if len(options) <= _CHAIN or wanted is None or left.loose:
            return None
        values: list[Any] = [option.value if isinstance(option, Literal) else Call for option in options]
        known: list[Any] = [value for value in values if type(value) is wanted]
        nulls = values.count(None)
        if len(known) + nulls < len(values):
            return None
        if left.kind == "int":  # each is its own code
            return None if any(abs(value) > INT_LIMIT for value in known) else (known, nulls > 0)
        found = [self._compiler.constant(value, left.type) for value in known]
        if any(each.node.operation != "constant" for each in found):
            return None
        return [each.node.k[0] for each in found], nulls > 0

    def _is_of(self, value: object, kind: str) -> bool:
        names = {"int": "int", "date": "date", "timestamp": "datetime"}
        return type(value).__name__ == names[kind]
