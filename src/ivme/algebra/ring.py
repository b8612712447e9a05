"""Payloads: what a tuple carries, and how payloads add and multiply.

The source works over the ring of integers (003, section 2.1): a payload is a multiplicity. Aggregates that are
sums ride along in the ring of degree one, (count, s1, ..., sk) with

    (c, s) + (c', s') = (c + c', s + s')        (c, s) · (c', s') = (c·c', c·s' + c'·s)

so that a sum over a join is the sum of each side times the count of the other. A leaf lifts a row of weight m
whose lifted values are v1, ..., vk to (m, m·v1, ..., m·vk); each value is lifted by one leaf only. Only the count
decides whether an entry is there: SUM over {5, -5} is a group with sum 0.

A sum of products of values of several tables, SUM(r.a * t.d), is a joint slot: each leaf lifts its factor, or one, and
joins just multiply them. Joint slots are the source's own ring, with lifts; they ride along as the others do.

Other rings are an extension point (003, chapter 9): a `Ring` says how values of variables are lifted to elements, and
its elements add, multiply and scale themselves. Two are shipped: `covariance` and `relational`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Self

from ivme.algebra.exact import ExactSum
from ivme.errors import DataError

EXACT = Context(prec=200)
"""Decimal sums are exact: 200 digits hold any 38-digit value times any 64-bit count, added up."""


class Element(ABC):
    """An element of a user's ring. It never changes; `count` is the multiplicity that it stands for."""

    __slots__ = ()

    @property
    @abstractmethod
    def count(self) -> int:
        """The multiplicity; an entry whose count is zero is not there."""

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def __mul__(self, other: Self) -> Self: ...

    @abstractmethod
    def scaled(self, factor: int) -> Self:
        """The sum of `factor` copies; -1 gives the additive inverse."""

    def is_close(self, other: Self) -> bool:
        """Whether it is what another order of additions may give: for floats, equal but for rounding."""
        return self == other


class Ring(ABC):
    """A ring of payloads: which variables it lifts, and to what.

    The payload of a result row is the sum, over all assignments of the bound variables, of the products of the lifted
    values: give `create_view(..., ring=...)` an instance, and `v.items()` pairs each row with its element.
    """

    @property
    @abstractmethod
    def variables(self) -> tuple[str, ...]:
        """The query's variables whose values are lifted."""

    @abstractmethod
    def lift(self, variable: str, value: Any) -> Element:
        """The element of one value of a variable, with count 1."""


@dataclass(frozen=True, slots=True)
class Joint:
    """The value of a joint slot."""

    value: Any

    def __bool__(self) -> bool:
        return bool(self.value)


Payload = int | tuple[Any, ...] | Element
"""A multiplicity, a multiplicity followed by sums, or an element of a user's ring."""


def add(left: Payload, right: Payload) -> Payload:
    """The sum of two payloads of one kind."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return tuple(_plus(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Element) and isinstance(right, Element):
        return left + right
    assert isinstance(left, int)
    assert isinstance(right, int)
    return left + right


def multiply(left: Payload, right: Payload) -> Payload:
    """The product; a plain multiplicity scales.

    >>> multiply((2, 10, 0), (3, 0, 7)), multiply(4, (1, 5))
    ((6, 30, 14), (4, 20))
    """
    if isinstance(left, int):
        return _scaled(right, left)
    if isinstance(right, int):
        return _scaled(left, right)
    if isinstance(left, Element) and isinstance(right, Element):
        return left * right
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    c, d = left[0], right[0]
    return (c * d, *(_joined(a, b, c, d) for a, b in zip(left[1:], right[1:], strict=True)))


def _joined(a: Any, b: Any, c: int, d: int) -> Any:
    """A slot of a product, from the slots of both sides and their counts."""
    if isinstance(a, Joint):
        return Joint(_times(a.value, b.value))
    return _plus(_times(c, b), _times(d, a))


def _scaled(payload: Payload, factor: int) -> Payload:
    if isinstance(payload, int):
        return payload * factor
    if isinstance(payload, Element):
        return payload.scaled(factor)
    return tuple(_times(factor, value) for value in payload)


def count(payload: Payload) -> int:
    """The multiplicity in a payload."""
    if isinstance(payload, int):
        return payload
    return payload.count if isinstance(payload, Element) else payload[0]


def is_nothing(payload: Payload) -> bool:
    """Whether a change with this payload changes nothing. An element is stored unless it is equal to its own zero."""
    if isinstance(payload, Element):
        return payload.count == 0 and payload == payload.scaled(0)
    return not any(payload) if isinstance(payload, tuple) else payload == 0


def negate(payload: Payload) -> Payload:
    """The additive inverse."""
    return _scaled(payload, -1)


def lift(weight: int, values: tuple[Any, ...]) -> Payload:
    """The payload of a leaf row of that weight whose lifted values are `values` (None where another leaf lifts)."""
    return (weight, *(0 if value is None else _times(weight, value) for value in values))


def factor(value: Any) -> Any:
    """A factor of a joint slot: of floats exactly, so that no order of sums and products matters."""
    if isinstance(value, float) and not isfinite(value):
        raise DataError(f"{value} cannot be a factor of a sum of products of two tables")
    return Fraction(value) if isinstance(value, float) else value


def product(one: float, other: float) -> ExactSum:
    """The product of floats that are summed, as exact as their squares."""
    return ExactSum.of_product(one, other)


def square(value: Any) -> Any:
    """The exact square of a value that is summed."""
    if isinstance(value, float):
        return ExactSum.of_square(value)
    return EXACT.multiply(value, value) if isinstance(value, Decimal) else value * value


def _plus(left: Any, right: Any) -> Any:
    if isinstance(left, Joint):
        return Joint(_plus(left.value, right.value))
    return EXACT.add(left, right) if isinstance(left, Decimal) or isinstance(right, Decimal) else left + right


def _times(count: Any, value: Any) -> Any:
    if isinstance(value, Joint):
        return Joint(_times(count, value.value))
    if isinstance(value, float):
        return ExactSum.of(value) * count
    is_decimal = isinstance(count, Decimal) or isinstance(value, Decimal)
    return EXACT.multiply(count, value) if is_decimal else count * value
