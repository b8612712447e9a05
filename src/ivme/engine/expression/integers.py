"""Functions of integers and of their bits, and those of floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ivme.engine.expression.graph import REAL, WORD, Node
from ivme.engine.expression.numbers import INT_DIGITS, Value
from ivme.query.expression import Call

if TYPE_CHECKING:
    from ivme.engine.expression.compile import Compiler

REAL_FUNCTIONS = (
    *("sign", "sqrt", "cbrt", "power", "exp", "expm1", "ln", "log10", "log2", "log1p"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "degrees", "radians", "rint"),
)
"""Functions of floats that the kernel has by the same name, from the same library as Python."""


class Integers:
    """Compiles calls whose arguments are compiled; None where the kernel lacks a function for their types."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph

    def bits(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """An operation of integers, whose name is the function's."""
        if any(argument.kind != "int" for argument in arguments):
            return None
        node = self._graph.node(call.function, WORD, *(argument.node for argument in arguments), mask=mask)
        return Value(node, self._compiler.type_of(call), 0, INT_DIGITS)

    def modulo(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """DIV and PMOD, of integers and of floats."""
        kinds = {argument.kind for argument in arguments}
        if kinds == {"int"}:
            node = self._graph.node(f"{call.function}_int", WORD, *(each.node for each in arguments), mask=mask)
            return Value(node, self._compiler.type_of(call), 0, INT_DIGITS)
        return self.real(call, arguments, mask) if "float" in kinds and call.function == "pmod" else None

    def real(self, call: Call, arguments: Sequence[Value], mask: Node | None) -> Value | None:
        """A function of floats."""
        if not all(argument.is_number for argument in arguments):
            return None
        reals = [self._compiler.numbers.to_real(argument, mask) for argument in arguments]
        return Value(self._graph.node(f"{call.function}_real", REAL, *reals, mask=mask), self._compiler.type_of(call))
