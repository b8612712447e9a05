"""Numbers of options, bounded before anything is computed with them.

A text of a dozen characters can stand for a number of a million digits: `Fraction("1e-16000000")` takes minutes, and
every later stage computes with exact fractions. So the length of a text and the size of an exponent are looked at
first, and what is read is rounded to a denominator of at most 10^6. That keeps 1/3 and 2/3 as they are, also when
they come as floats.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from fractions import Fraction

MOST_CHARACTERS = 100
"""The longest text of a number."""

LARGEST_DENOMINATOR = 10**6

_NUMBER = re.compile(r"[+-]?(?:\d+(?:/\d+|\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DIGITS = 30
_MOST_COUNT = 10**18
_LEAST = -20
"""A number below 10^-20 is 0 once it is rounded."""


def read_unit(value: object) -> Fraction | None:
    """A number in [0, 1] with a denominator of at most 10^6, in microseconds; None if the value is not one.

    A float counts as the decimal that it is printed as. A text is a decimal or a fraction.

    >>> read_unit(0.3333333333333333), read_unit("2/3"), read_unit(Decimal("1e-16000000")), read_unit("1e16000000")
    (Fraction(1, 3), Fraction(2, 3), Fraction(0, 1), None)
    """
    exact = _exact(value)
    if exact is None or not 0 <= exact <= 1:
        return None
    return exact.limit_denominator(LARGEST_DENOMINATOR)


def read_count(value: object) -> float | None:
    """A number from 0 to 10^18 as a float; None if the value is not one.

    >>> read_count(3), read_count(Decimal("0.5")), read_count(10**5000), read_count(float("nan"))
    (3.0, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return float(value) if 0 <= value <= _MOST_COUNT else None


def _exact(value: object) -> Fraction | None:
    """The number up to 30 digits, or None where it is clear that it is not between 0 and 1."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _of_text(value.strip()) if len(value) <= MOST_CHARACTERS else None
    if isinstance(value, int):
        return Fraction(value) if value in (0, 1) else None
    if isinstance(value, float):
        return _of_decimal(Decimal(repr(float(value))))
    if isinstance(value, Decimal):
        return _of_decimal(value)
    return _of_fraction(value) if isinstance(value, Fraction) else None


def _of_text(text: str) -> Fraction | None:
    if not _NUMBER.fullmatch(text):
        return None
    numerator, slash, denominator = text.partition("/")
    if not slash:
        return _of_decimal(Decimal(text)) if len(text.lower().partition("e")[2]) <= 15 else None
    return Fraction(int(numerator), int(denominator)) if denominator.isdigit() and int(denominator) else None


def _of_decimal(value: Decimal) -> Fraction | None:
    if not value.is_finite() or (value and (value < 0 or value.adjusted() > 0)):
        return None
    if not value or value.adjusted() < _LEAST:
        return Fraction(0)
    return None if value > 1 else Fraction(Context(prec=_DIGITS).plus(value))


def _of_fraction(value: Fraction) -> Fraction | None:
    if not 0 <= value.numerator <= value.denominator:
        return None
    if value.denominator.bit_length() <= 4 * MOST_CHARACTERS:
        return value
    return Fraction(value.numerator * 10**_DIGITS // value.denominator, 10**_DIGITS)
