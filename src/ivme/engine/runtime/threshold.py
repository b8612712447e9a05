"""Thresholds of heavy and light: exact comparisons of degrees with multiples of M^ε (source 003, section 5.1)."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

LARGEST_EXPONENT = 1000
"""Up to which denominator of ε the comparison is exact; beyond, M^ε is taken as a float."""


def least_degree(factor: Fraction, size: int, epsilon: Fraction) -> int:
    """The least integer d with d >= factor · size^ε, for a size of at least 1.

    >>> least_degree(Fraction(3, 2), 100, Fraction(1, 2)), least_degree(Fraction(1, 2), 101, Fraction(1, 2))
    (15, 6)
    """
    guess: int = max(0, ceil(float(factor) * float(size) ** float(epsilon)))
    if epsilon.denominator > LARGEST_EXPONENT:
        return guess
    while guess > 0 and _reaches(guess - 1, factor, size, epsilon):
        guess -= 1
    while not _reaches(guess, factor, size, epsilon):
        guess += 1
    return guess


def _reaches(degree: int, factor: Fraction, size: int, epsilon: Fraction) -> bool:
    """Whether degree >= factor · size^(p/q), decided in integers."""
    p, q = epsilon.numerator, epsilon.denominator
    return bool((degree * factor.denominator) ** q >= factor.numerator**q * size**p)
