"""What the sources say that a query's class admits with heavy and light parts.

Theorem 3.5 and chapters 6 and 9 of source 003, section 5 of source 000, and our own plans of paths and cycles. All
update times are amortised, and all exponents exact functions of ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ivme.plan.ir.exponent import Bound, Exponent, bound, constant, linear, maximum, minimum
from ivme.plan.order.widths import Widths
from ivme.query.model import ORDER_AGGREGATES, Query
from ivme.structure.classify import Classification

EITHER = maximum([linear(0, 1), linear(1, -1)])
"""max(ε, 1-ε)"""

_TRIANGLE_DELAY: dict[str, Exponent] = {
    "C_count": constant(0),
    "C1": minimum([linear(0, 2), linear(2, -2)]),
    "C2": minimum([linear(0, 1), linear(1, -1)]),
    "C3": constant(0),
}
"""Propositions 6.1 to 6.5; the table of Theorem 3.10 has C1 and C2 swapped (erratum 1)."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The trade-off of a class; `preprocessing` is None where no source states it."""

    preprocessing: Bound | None
    update: Bound
    delay: Bound
    source: str


def admitted(query: Query, classification: Classification, widths: Widths) -> Admitted | None:
    """What the query admits, or None where the sources have nothing better than a view tree for it."""
    free = query.free
    ordered = any(a.function in ORDER_AGGREGATES and a.variable not in free for a in query.aggregates)
    if classification.cqap0 or ordered or query.has_closures:
        return None
    if classification.triangle is not None:
        delay = _TRIANGLE_DELAY[classification.triangle]
        source = "003, Theorem 3.10 with the delays of Propositions 6.1 to 6.5 (erratum 1)"
        return _tradeoff(constant(Fraction(3, 2)), EITHER, delay, source)
    if classification.hierarchical_fracture:
        preprocessing = linear(1, widths.static - 1)
        return _tradeoff(preprocessing, linear(0, widths.dynamic), linear(1, -1), "003, Theorem 3.5")
    if classification.loomis_whitney is not None and not query.input:
        return _loomis_whitney(classification.loomis_whitney, len(query.output))
    return None if free else _count(query, classification)


def _tradeoff(preprocessing: Exponent | None, update: Exponent, delay: Exponent, source: str) -> Admitted:
    built = None if preprocessing is None else bound(preprocessing)
    return Admitted(built, bound(update, amortised=True), bound(delay), source)


def _loomis_whitney(degree: int, arity: int) -> Admitted:
    source = "003, chapter 9, stated without proof"
    delay: Exponent = constant(0)
    if 0 < arity < degree:
        gap = degree - arity
        delay = minimum([constant(1), linear(gap, -gap)])
        source += "; the delay is an upper bound (erratum 14)"
    return _tradeoff(constant(Fraction(3, 2)), EITHER, delay, source)


def _count(query: Query, classification: Classification) -> Admitted | None:
    """Counts: only the answer is read, with constant delay."""
    if len(query.atoms) == 3:
        return _tradeoff(None, EITHER, constant(0), "000, section 5: any three relations, counted; sketch")
    if classification.four_path:
        return _tradeoff(None, EITHER, constant(0), "000, section 5: the path of four relations, counted; sketch")
    if classification.four_cycle:
        update = maximum([linear(0, 1), linear(2, -2)])
        return _tradeoff(None, update, constant(0), "001: the 4-cycle, counted; sketch, best at ε = 2/3")
    return None
