"""Payloads form a commutative ring, multiplicities as well as multiplicities with sums."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.algebra.ring import Payload, add, count, lift, multiply, negate

INTEGERS = st.integers(-9, 9)
TRIPLES: st.SearchStrategy[Payload] = st.tuples(INTEGERS, INTEGERS, INTEGERS)
KINDS = pytest.mark.parametrize("kind", ["multiplicities", "sums"])


def payloads(kind: str) -> st.SearchStrategy[Payload]:
    return INTEGERS if kind == "multiplicities" else TRIPLES


def one(kind: str) -> Payload:
    return 1 if kind == "multiplicities" else (1, 0, 0)


def zero(kind: str) -> Payload:
    return 0 if kind == "multiplicities" else (0, 0, 0)


@KINDS
@given(data=st.data())
def test_addition_is_a_commutative_group(kind: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(payloads(kind)) for _ in range(3))
    assert add(a, b) == add(b, a)
    assert add(add(a, b), c) == add(a, add(b, c))
    assert a == add(a, zero(kind))
    assert zero(kind) == add(a, negate(a))


@KINDS
@given(data=st.data())
def test_multiplication_is_a_commutative_monoid(kind: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(payloads(kind)) for _ in range(3))
    assert multiply(a, b) == multiply(b, a)
    assert multiply(multiply(a, b), c) == multiply(a, multiply(b, c))
    assert a == multiply(a, one(kind))
    assert zero(kind) == multiply(a, zero(kind))


@KINDS
@given(data=st.data())
def test_multiplication_distributes_over_addition(kind: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(payloads(kind)) for _ in range(3))
    assert multiply(a, add(b, c)) == add(multiply(a, b), multiply(a, c))


@given(INTEGERS, TRIPLES, TRIPLES)
def test_a_multiplicity_scales_like_itself_with_sums_of_zero(scale: int, a: Payload, b: Payload) -> None:
    assert multiply(scale, a) == multiply(a, scale) == multiply((scale, 0, 0), a)
    assert multiply(scale, add(a, b)) == add(multiply(scale, a), multiply(scale, b))


@given(TRIPLES, TRIPLES)
def test_counting_is_a_homomorphism(a: Payload, b: Payload) -> None:
    assert count(a) + count(b) == count(add(a, b))
    assert count(a) * count(b) == count(multiply(a, b))
    assert -count(a) == count(negate(a))


@given(st.lists(st.tuples(INTEGERS, INTEGERS)), st.lists(st.tuples(INTEGERS, INTEGERS)))
def test_a_product_of_lifted_sides_sums_over_the_cartesian_product(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    """Σ over all pairs (x, y) of their weights, of x, and of y: what SUM means over a join."""
    total: Payload = (0, 0, 0)
    for weight, x in left:
        total = add(total, lift(weight, (x, None)))
    other: Payload = (0, 0, 0)
    for weight, y in right:
        other = add(other, lift(weight, (None, y)))
    pairs = [(m * n, x, y) for m, x in left for n, y in right]
    expected = (sum(m for m, _, _ in pairs), sum(m * x for m, x, _ in pairs), sum(m * y for m, _, y in pairs))
    assert expected == multiply(total, other)


def test_a_row_is_lifted_by_its_weight() -> None:
    assert lift(3, (5, None)) == (3, 15, 0)
    assert lift(-2, (5,)) == (-2, -10)
    assert (2, Fraction(1)) == lift(2, (Fraction(1, 2),))


def test_payloads_of_different_lengths_do_not_add() -> None:
    with pytest.raises(ValueError, match="longer"):
        add((1, 2), (1, 2, 3))
    with pytest.raises(ValueError, match="longer"):
        multiply((1, 2), (1, 2, 3))
