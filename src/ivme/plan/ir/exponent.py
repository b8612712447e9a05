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
        return self.constant + self.slope * epsilon if self.slope else self.constant

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
class MaxMin:
    """The greatest of several minima: every continuous function that is linear in pieces has this form."""

    groups: tuple[tuple[Linear, ...], ...]

    @property
    def parts(self) -> tuple[Linear, ...]:
        return tuple(dict.fromkeys(part for group in self.groups for part in group))

    def at(self, epsilon: Fraction) -> Fraction:
        return max(min(part.at(epsilon) for part in group) for group in self.groups)

    def __str__(self) -> str:
        return f"max({', '.join(str(minimum(group)) for group in self.groups)})"


Exponent = Linear | Extremum | MaxMin


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
    """The function that is linear between neighbouring points (ε, value), in a short form.

    >>> half, one = Fraction(1, 2), Fraction(1)
    >>> str(through([(Fraction(0), Fraction(0)), (half, half), (one, Fraction(0))]))
    'min(ε, 1-ε)'
    >>> str(through([(Fraction(0), one), (Fraction(1, 3), Fraction(4, 3)), (half, one), (one, one)]))
    'max(min(1+ε, 2-2ε), 1)'
    """
    given = list(points)
    pieces: list[tuple[Linear, Fraction, Fraction]] = []
    (x, y), *rest = given
    for right, value in rest:
        slope = (value - y) / (right - x)
        part = Linear(y - slope * x, slope)
        begin = pieces.pop()[1] if pieces and pieces[-1][0] == part else x
        pieces.append((part, begin, right))
        x, y = right, value
    if len(pieces) == 1:
        return pieces[0][0]
    lines = tuple(dict.fromkeys(part for part, _, _ in pieces))
    above = [
        frozenset(line for line in lines if line.at(begin) >= part.at(begin) and line.at(end) >= part.at(end))
        for part, begin, end in pieces
    ]
    groups = [tuple(line for line in lines if line in group) for group in dict.fromkeys(above)]
    return _shortest(_without_excess(groups, given))


def _without_excess(groups: list[tuple[Linear, ...]], points: list[tuple[Fraction, Fraction]]) -> MaxMin:
    """The same function from as few lines as possible, leaving out one after the other."""

    def fits(candidate: list[tuple[Linear, ...]]) -> bool:
        return bool(candidate) and all(candidate) and all(MaxMin(tuple(candidate)).at(x) == y for x, y in points)

    for group in list(groups):
        fewer = [other for other in groups if other != group]
        groups = fewer if fits(fewer) else groups
    for i, group in enumerate(groups):
        for line in group:
            shorter = tuple(other for other in groups[i] if other != line)
            candidate = [*groups[:i], shorter, *groups[i + 1 :]]
            groups = candidate if fits(candidate) else groups
    return MaxMin(tuple(dict.fromkeys(groups)))


def _shortest(found: MaxMin) -> Exponent:
    groups = tuple(tuple(sorted(group, key=_rank)) for group in found.groups)
    if all(len(group) == 1 for group in groups):
        return maximum(sorted((line for group in groups for line in group), key=_rank))
    return minimum(groups[0]) if len(groups) == 1 else MaxMin(groups)


def _rank(line: Linear) -> tuple[Fraction, Fraction]:
    """Lines as the sources list them: ε before 1-ε."""
    return line.constant, -line.slope


@dataclass(frozen=True, slots=True)
class Bound:
    """O(N^exponent), amortised over a sequence of updates or for each one; `logs` is the power of a factor log N."""

    exponent: Exponent
    amortised: bool = False
    logs: int = 0

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
        if self.logs:
            factor = "log N" if self.logs == 1 else f"log^{self.logs} N"
            text = f"O({factor})" if text == "O(1)" else f"{text[:-1]} {factor})"
        return f"{text} amortised" if self.amortised else text

    def __repr__(self) -> str:
        return str(self)


def bound(exponent: Fraction | int | Exponent, *, amortised: bool = False, logs: int = 0) -> Bound:
    """A bound from a number or an exponent.

    >>> str(bound(0, amortised=True, logs=2)), str(bound(1, logs=1))
    ('O(log^2 N) amortised', 'O(N log N)')
    """
    return Bound(exponent if isinstance(exponent, Linear | Extremum | MaxMin) else constant(exponent), amortised, logs)
