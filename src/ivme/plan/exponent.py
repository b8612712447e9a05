"""Exponents of N as exact functions of ε: `N^max(ε, 1-ε)` and its value.

An exponent is a linear function of ε, or the maximum or minimum of some. Coefficients are rationals, so that what is
printed is what was proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + slope·ε"""

    constant: Fraction
    slope: Fraction = Fraction(0)

    def at(self, epsilon: Fraction) -> Fraction:
        return self.constant + self.slope * epsilon

    def __str__(self) -> str:
        if self.slope == 0:
            return str(self.constant)
        step = "ε" if abs(self.slope) == 1 else f"{abs(self.slope)}ε"
        if self.constant == 0:
            return step if self.slope > 0 else f"-{step}"
        return f"{self.constant}{'+' if self.slope > 0 else '-'}{step}"


@dataclass(frozen=True, slots=True)
class Extremum:
    """The greatest or least of several linear functions."""

    function: str
    parts: tuple[Linear, ...]

    def at(self, epsilon: Fraction) -> Fraction:
        values = [part.at(epsilon) for part in self.parts]
        return max(values) if self.function == "max" else min(values)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Linear functions one after the other: `parts[i]` up to `ends[i]`, the last one up to 1."""

    parts: tuple[Linear, ...]
    ends: tuple[Fraction, ...]

    def at(self, epsilon: Fraction) -> Fraction:
        return next((p for p, end in zip(self.parts, self.ends, strict=True) if epsilon <= end), self.parts[-1]).at(
            epsilon
        )

    def __str__(self) -> str:
        pieces = [f"{part} up to ε = {end}" for part, end in zip(self.parts, self.ends, strict=True)]
        return f"({'; '.join(pieces)})"


Exponent = Linear | Extremum | Piecewise


def constant(value: Fraction | int) -> Linear:
    """An exponent that does not depend on ε."""
    return Linear(Fraction(value))


def linear(value: Fraction | int, slope: Fraction | int) -> Linear:
    """value + slope·ε"""
    return Linear(Fraction(value), Fraction(slope))


def maximum(parts: Iterable[Linear]) -> Exponent:
    """The maximum of linear exponents.

    >>> str(maximum([linear(0, 1), linear(1, -1)])), maximum([linear(0, 1), linear(1, -1)]).at(Fraction(1, 2))
    ('max(ε, 1-ε)', Fraction(1, 2))
    """
    return _extremum("max", parts)


def minimum(parts: Iterable[Linear]) -> Exponent:
    """The minimum of linear exponents."""
    return _extremum("min", parts)


def _extremum(function: str, parts: Iterable[Linear]) -> Exponent:
    distinct = tuple(dict.fromkeys(parts))
    return distinct[0] if len(distinct) == 1 else Extremum(function, distinct)


def through(points: Iterable[tuple[Fraction, Fraction]]) -> Exponent:
    """The function that is linear between neighbouring points (ε, value), in the shortest form.

    >>> half = Fraction(1, 2)
    >>> str(through([(Fraction(0), Fraction(0)), (half, half), (Fraction(1), Fraction(0))]))
    'min(ε, 1-ε)'
    """
    parts: list[Linear] = []
    ends: list[Fraction] = []
    (x, y), *rest = points
    for right, value in rest:
        slope = (value - y) / (right - x)
        part = Linear(y - slope * x, slope)
        if parts and parts[-1] == part:
            ends[-1] = right
        else:
            parts.append(part)
            ends.append(right)
        x, y = right, value
    slopes = [part.slope for part in parts]
    if slopes == sorted(slopes):
        return maximum(parts)
    return minimum(parts) if slopes == sorted(slopes, reverse=True) else Piecewise(tuple(parts), tuple(ends))


@dataclass(frozen=True, slots=True)
class Bound:
    """O(N^exponent), amortised over a sequence of updates or for each one."""

    exponent: Exponent
    amortised: bool = False

    @property
    def depends_on_epsilon(self) -> bool:
        parts = (self.exponent,) if isinstance(self.exponent, Linear) else self.exponent.parts
        return any(part.slope != 0 for part in parts)

    def __str__(self) -> str:
        text = {"0": "O(1)", "1": "O(N)"}.get(str(self.exponent))
        if text is None:
            bare = str(self.exponent)
            simple = bare.isdigit() or bare == "ε" or bare.startswith(("max", "min"))
            text = f"O(N^{bare})" if simple else f"O(N^({bare}))"
        return f"{text} amortised" if self.amortised else text


def bound(exponent: Fraction | int | Exponent, *, amortised: bool = False) -> Bound:
    """A bound from a number or an exponent."""
    return Bound(exponent if isinstance(exponent, Linear | Extremum | Piecewise) else constant(exponent), amortised)
