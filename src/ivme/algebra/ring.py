"""Payloads: what a tuple carries, and how payloads add and multiply.

The source works over the ring of integers (003, section 2.1): a payload is a multiplicity. Aggregates that are
sums ride along in the ring of degree one, (count, s1, ..., sk) with

    (c, s) + (c', s') = (c + c', s + s')        (c, s) · (c', s') = (c·c', c·s' + c'·s)

so that a sum over a join is the sum of each side times the count of the other. A leaf lifts a row of weight m
whose lifted values are v1, ..., vk to (m, m·v1, ..., m·vk); each value is lifted by one leaf only. Only the count
decides whether an entry is there: SUM over {5, -5} is a group with sum 0 (DESIGN section 4).
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

EXACT = Context(prec=200)
"""Decimal sums are exact: 200 digits hold any 38-digit value times any 64-bit count, added up."""

Payload = int | tuple[Any, ...]
"""A multiplicity, or a multiplicity followed by sums."""


def add(left: Payload, right: Payload) -> Payload:
    """The sum of two payloads of one kind."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return tuple(_plus(a, b) for a, b in zip(left, right, strict=True))
    assert isinstance(left, int)
    assert isinstance(right, int)
    return left + right


def multiply(left: Payload, right: Payload) -> Payload:
    """The product; a plain multiplicity scales.

    >>> multiply((2, 10, 0), (3, 0, 7)), multiply(4, (1, 5))
    ((6, 30, 14), (4, 20))
    """
    if isinstance(left, int):
        if isinstance(right, int):
            return left * right
        return tuple(_times(left, value) for value in right)
    if isinstance(right, int):
        return tuple(_times(right, value) for value in left)
    c, d = left[0], right[0]
    return (c * d, *(_plus(_times(c, b), _times(d, a)) for a, b in zip(left[1:], right[1:], strict=True)))


def count(payload: Payload) -> int:
    """The multiplicity in a payload."""
    return payload if isinstance(payload, int) else payload[0]


def negate(payload: Payload) -> Payload:
    """The additive inverse."""
    return -payload if isinstance(payload, int) else tuple(-value for value in payload)


def lift(weight: int, values: tuple[Any, ...]) -> Payload:
    """The payload of a leaf row of that weight whose lifted values are `values` (None where another leaf lifts)."""
    return (weight, *(0 if value is None else _times(weight, value) for value in values))


def _plus(left: Any, right: Any) -> Any:
    return EXACT.add(left, right) if isinstance(left, Decimal) or isinstance(right, Decimal) else left + right


def _times(count: int, value: Any) -> Any:
    return EXACT.multiply(count, value) if isinstance(value, Decimal) else count * value
