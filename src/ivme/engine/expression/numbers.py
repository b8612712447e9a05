"""Numbers as the kernel computes them: in words where 18 digits suffice, in 128 bits up to 38 digits, or as floats.

A decimal has the scale that its operation gives it by itself (a product the sum of its factors' scales), as in
`evaluate`, and is brought to the scale of its type only at the end. So what is computed inside an expression is exact,
and equals what `evaluate` computes; a number beyond 38 digits, which `evaluate` rounds, makes its row doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivme.engine.expression.graph import REAL, WIDE, WORD, Graph, Node
from ivme.query.types import Type

NARROW_DIGITS = 18
MOST_DIGITS = 38
INT_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Value:
    """A compiled expression. `type` is None for NULL.

    Numbers but floats have a scale and at most so many `digits`. A `loose` value is one that `evaluate` has in another
    type, or with other digits, where it is part of something: only its value in the expression's own type is right.
    """

    node: Node
    type: Type | None
    scale: int = 0
    digits: int = 0
    loose: bool = False

    @property
    def kind(self) -> str:
        """The kind of the values, "null" for NULL."""
        return "null" if self.type is None else self.type.kind

    @property
    def is_number(self) -> bool:
        return self.kind in ("int", "decimal", "float")


class Numbers:
    """Makes nodes of numbers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def to_real(self, value: Value, mask: Node | None) -> Node:
        """A number, or a truth value, as a float."""
        if value.node.kind == REAL:
            return value.node
        if value.kind in ("int", "bool"):
            return self.graph.node("real_of_int", REAL, value.node)
        return self.graph.node("real_of_wide", REAL, self._wide(value).node, mask=mask, k=value.scale)

    def raised(self, value: Value, scale: int, mask: Node | None) -> Value:
        """The same number with more digits behind its point."""
        if value.scale == scale:
            return value
        zeros = scale - value.scale
        factor = self._whole(10**zeros, zeros)
        digits = min(value.digits + zeros, MOST_DIGITS)
        return replace(self.multiplied(value, factor, mask), scale=scale, digits=digits)

    def lowered(self, value: Value, scale: int, how: str) -> Value:
        """The number with fewer digits behind its point, rounded: "half_up", "floor", "ceil" or "truncate"."""
        dropped = value.scale - scale
        node = self.graph.node(f"drop_{how}", WIDE, self._wide(value).node, k=dropped)
        return replace(value, node=node, scale=scale, digits=max(value.digits - dropped, 0) + 1)

    def multiplied(self, left: Value, right: Value, mask: Node | None) -> Value:
        digits, scale = left.digits + right.digits, left.scale + right.scale
        both_words = left.node.kind == right.node.kind == WORD
        if both_words and digits <= NARROW_DIGITS:
            return self._result("multiply_narrow", WORD, left, right, None, scale, digits)
        if both_words and digits <= MOST_DIGITS:
            return self._result("multiply_words", WIDE, left, right, None, scale, digits)
        return self._checked("multiply_wide", left, right, mask, scale, digits)

    def added(self, operation: str, left: Value, right: Value, mask: Node | None) -> Value:
        """The sum or difference ("add", "subtract")."""
        left, right = self.aligned(left, right, mask)
        digits = max(left.digits, right.digits) + 1
        if left.node.kind == WORD and digits <= NARROW_DIGITS:
            return self._result(f"{operation}_narrow", WORD, left, right, None, left.scale, digits)
        return self._checked(f"{operation}_wide", left, right, mask, left.scale, digits)

    def remainder(self, left: Value, right: Value, mask: Node | None) -> Value:
        left, right = self.aligned(left, right, mask)
        if left.node.kind == WORD:
            return self._result("modulo_int", WORD, left, right, mask, left.scale, right.digits)
        return self._checked("modulo_wide", left, right, mask, left.scale, right.digits)

    def quotient(self, left: Value, right: Value, scale: int, mask: Node | None) -> Value | None:
        """The quotient rounded half up to a scale; None if its operands would have too many digits."""
        shift = scale - left.scale + right.scale
        if abs(shift) > MOST_DIGITS:
            return None
        dividend = self.raised(left, left.scale + max(shift, 0), mask)
        divisor = self.raised(right, right.scale + max(-shift, 0), mask)
        return self._checked("divide_wide", dividend, divisor, mask, scale, MOST_DIGITS)

    def aligned(self, left: Value, right: Value, mask: Node | None) -> tuple[Value, Value]:
        """Both numbers with one scale, in registers of one kind."""
        scale = max(left.scale, right.scale)
        left, right = self.raised(left, scale, mask), self.raised(right, scale, mask)
        if left.node.kind == right.node.kind:
            return left, right
        return self._wide(left), self._wide(right)

    def in_digits(self, value: Value, precision: int, scale: int, mask: Node | None) -> Value:
        """The number as a decimal of a precision and scale; rows where it does not fit are doubtful."""
        if value.scale > scale:
            value = self.lowered(value, scale, "half_up")
        value = self.raised(value, scale, mask)
        if value.digits > precision:
            check = "fits_wide" if value.node.kind == WIDE else "fits_word"
            value = replace(value, node=self.graph.node(check, value.node.kind, value.node, mask=mask, k=precision))
        if precision <= NARROW_DIGITS and value.node.kind == WIDE:
            value = replace(value, node=self.graph.node("narrow", WORD, value.node, mask=mask))
        return Value(value.node, Type("decimal", precision, scale), scale, precision)

    def wide(self, value: Value) -> Node:
        """A number's node in 128 bits."""
        return self._wide(value).node

    def _whole(self, number: int, zeros: int) -> Value:
        digits = zeros + 1
        node = self.graph.word(number) if digits <= NARROW_DIGITS else self.graph.wide(number)
        return Value(node, Type("int"), 0, digits)

    def _wide(self, value: Value) -> Value:
        if value.node.kind == WIDE:
            return value
        return replace(value, node=self.graph.node("widen", WIDE, value.node))

    def _checked(self, operation: str, left: Value, right: Value, mask: Node | None, scale: int, digits: int) -> Value:
        return self._result(operation, WIDE, self._wide(left), self._wide(right), mask, scale, min(digits, MOST_DIGITS))

    def _result(
        self, operation: str, kind: str, left: Value, right: Value, mask: Node | None, scale: int, digits: int
    ) -> Value:
        node = self.graph.node(operation, kind, left.node, right.node, mask=mask)
        return Value(node, Type("decimal", MOST_DIGITS, 0), scale, digits)
