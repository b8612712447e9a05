"""From expressions over a table's columns to a graph of typed operations of the kernel.

What the kernel lacks is a column of its own in the graph, which others compute: a function of one column of text by
code (`by_code`), everything else for the rows that get to it (`foreign`). Both are given in the codes of their type.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.domain import DictionaryValues
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.value_check import INT_LIMIT
from ivme.engine.expression.arithmetic import Arithmetic
from ivme.engine.expression.branches import Branches
from ivme.engine.expression.comparisons import Comparisons
from ivme.engine.expression.graph import REAL, WIDE, WORD, Graph, Node
from ivme.engine.expression.moments import Moments
from ivme.engine.expression.numbers import INT_DIGITS, NARROW_DIGITS, Numbers, Value
from ivme.errors import ExpressionError, SchemaError
from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of, evaluate
from ivme.query.inference import literal_type, type_of
from ivme.query.model import Table
from ivme.query.types import Type

_TEXT = ("string", "binary")
_LAZY = ("and", "or", "not", "case", "coalesce", "fails")
_CHOICES = ("case", "coalesce", "greatest", "least")
_BRANCHES = (*_LAZY, "is_null", "nullif", "greatest", "least")


class Compiler:
    """Compiles expressions over the rows of one table; what it makes of them is in `graph` and the three lists."""

    def __init__(self, table: Table, domains: Domains) -> None:
        self.table = table
        self.graph = Graph(len(table.columns))
        self.numbers = Numbers(self.graph)
        self.by_code: list[tuple[Expression, int]] = []
        """Functions of one column of text, and its position."""
        self.foreign: list[Expression] = []
        self.members: list[tuple[list[int], bool]] = []
        self.dictionaries: list[Any] = []
        self._domains = domains
        self._values: dict[tuple[Expression, int], Value] = {}
        self.moments = Moments(self)
        self.comparisons = Comparisons(self)
        self.arithmetic = Arithmetic(self)
        self._branches = Branches(self)

    def value(self, expression: Expression, mask: Node | None) -> Value:
        """The value of an expression, whose failures count in the rows of the mask."""
        key = expression, id(mask)
        if key not in self._values:
            self._values[key] = self._value(expression, mask)
        return self._values[key]

    def _value(self, expression: Expression, mask: Node | None) -> Value:
        if isinstance(expression, ColumnRef):
            return self._column(expression)
        if isinstance(expression, Literal):
            return self.constant(expression.value, literal_type(expression.value))
        if next(columns_of(expression), None) is None:
            return self._folded(expression, mask)
        if self._is_by_code(expression):
            return self._remembered(expression, mask)
        found = self._native(expression, mask)
        return self._foreign(expression, mask) if found is None else found

    def type_of(self, expression: Expression) -> Type | None:
        return type_of(expression, self.table)

    def constant(self, value: Any, type_: Type | None) -> Value:
        """A constant of a type."""
        graph = self.graph
        if value is None or type_ is None:
            return Value(graph.null(REAL if _kind(type_) == "float" else WORD), type_)
        if type_.kind == "float":
            return Value(graph.real(struct.unpack("<q", struct.pack("<d", value))[0]), type_)
        if type_.kind in _TEXT or type_.is_nested:
            return Value(graph.literal(type_, value), type_)
        if type_.kind == "int" and abs(value) > INT_LIMIT:
            return self._doubtful(type_, None)
        if type_.kind == "int":
            return Value(graph.word(value), type_, 0, len(str(abs(value))))
        if type_.kind == "decimal":
            return self._decimal(value, type_)
        return Value(graph.word(self._domains.domain(type_).encode_value(value)), type_)

    def _decimal(self, value: Decimal | int, type_: Type) -> Value:
        sign, digits, exponent = Decimal(value).as_tuple()
        assert isinstance(exponent, int)
        whole = int("".join(map(str, digits))) * 10 ** max(exponent, 0) * (-1 if sign else 1)
        count = len(str(abs(whole)))
        node = self.graph.word(whole) if count <= NARROW_DIGITS else self.graph.wide(whole)
        return Value(node, type_, max(-exponent, 0), count)

    def of_codes(self, node: Node, type_: Type | None, mask: Node | None) -> Value:
        """The values that codes of a type stand for."""
        if type_ is None or type_.kind in ("bool", "date", "timestamp", *_TEXT) or type_.is_nested:
            return Value(node, type_)
        if type_.kind == "int":
            return Value(node, type_, 0, INT_DIGITS)
        if type_.kind == "float":
            return Value(self.graph.node("real_of_code", REAL, node), type_)
        assert type_.precision is not None
        assert type_.scale is not None
        if type_.precision > NARROW_DIGITS:
            node = self.graph.node("wide_of_code", WIDE, node, mask=mask, k=self.dictionary(type_))
        return Value(node, type_, type_.scale, type_.precision)

    def dictionary(self, type_: Type) -> int:
        """The number of the dictionary of a type."""
        domain = self._domains.domain(type_)
        assert isinstance(domain, DictionaryValues)
        native = domain.dictionary.native  # type: ignore[attr-defined]
        if native not in self.dictionaries:
            self.dictionaries.append(native)
        return self.dictionaries.index(native)

    def _column(self, column: ColumnRef) -> Value:
        position = self.position(column.name)
        type_ = declared_type(self.table, self.table.columns[position])
        return self.of_codes(self.graph.input(position), type_, None)

    def position(self, name: str) -> int:
        return next(i for i, each in enumerate(self.table.columns) if each.name.lower() == name.lower())

    def _folded(self, call: Call, mask: Node | None) -> Value:
        """An expression without columns; where it has no value, or is NaN, rows that get to it are doubtful."""
        type_ = self.type_of(call)
        try:
            value = evaluate(call, {})
            own = type_ if value is None or (type_ is not None and type_.is_nested) else literal_type(value)
        except (ExpressionError, SchemaError):
            return self._doubtful(type_, mask)
        if value != value:
            return self._doubtful(type_, mask)
        return replace(self.constant(value, own), type=type_, loose=_kind(own) != _kind(type_))

    def _doubtful(self, type_: Type | None, mask: Node | None) -> Value:
        kind = REAL if _kind(type_) == "float" else WORD
        return Value(self.graph.node("doubt", kind, self.graph.null(kind), mask=mask), type_)

    def _is_by_code(self, call: Call) -> bool:
        """Whether a call reads nothing but one column of text, and text is what it is applied to."""
        names = {name.lower() for name in columns_of(call)}
        if len(names) > 1 or call.function in _LAZY or (call.function == "is_null" and _is_column(call.arguments[0])):
            return False
        if _kind(self.table.columns[self.position(names.pop())].type) not in _TEXT:
            return False
        return any(_kind(self.type_of(argument)) in _TEXT for argument in call.arguments)

    def _remembered(self, call: Call, mask: Node | None) -> Value:
        place = (call, self.position(next(columns_of(call))))
        if place not in self.by_code:
            self.by_code.append(place)
        table = self.by_code.index(place)
        node = self.graph.node("look_up", WORD, self.graph.input(place[1]), mask=mask, k=table)
        return self.of_codes(node, self.type_of(call), mask)

    def _foreign(self, call: Call, mask: Node | None) -> Value:
        type_ = self.type_of(call)
        if type_ is None:
            return self._doubtful(None, mask)
        if call not in self.foreign:
            self.foreign.append(call)
        node = self.graph.node("foreign", WORD, mask=mask, k=self.foreign.index(call))
        loose = type_.is_numeric and type_.kind != "int" and call.function in ("divide", *_CHOICES)
        loose = loose or (type_.kind == "decimal" and call.function != "cast_decimal")
        return replace(self.of_codes(node, type_, mask), loose=loose)

    def _native(self, call: Call, mask: Node | None) -> Value | None:
        """The value by the kernel's own operations; None if it lacks them for these types."""
        if call.definition.runs != "kernel":
            return None
        if call.function in _BRANCHES:
            return self._branches.value(call, mask)
        if call.function in ("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "in"):
            return self.comparisons.value(call, mask)
        return self.arithmetic.value(call, mask)

    def in_type(self, expression: Expression, mask: Node | None) -> Value:
        """The value of an expression in its type, as a view has it."""
        type_ = self.type_of(expression)
        if type_ is not None and type_.kind == "decimal":
            assert type_.precision is not None
            assert type_.scale is not None
            value = self.arithmetic.quotient(expression, type_.scale, mask) or self.value(expression, mask)
            return replace(self.numbers.in_digits(value, type_.precision, type_.scale, mask), type=type_)
        value = self.value(expression, mask)
        if type_ is not None and type_.kind == "float" and value.node.kind != REAL:
            return Value(self.numbers.to_real(value, mask), type_)
        if type_ is not None and type_.kind == "timestamp":
            return Value(self.moments.micros(value) or value.node, type_)
        return value


def _kind(type_: Type | None) -> str:
    return "null" if type_ is None else type_.kind


def _is_column(expression: Expression) -> bool:
    return isinstance(expression, ColumnRef)
