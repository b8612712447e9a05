"""The bounds of a plan over heavy and light parts, as exact functions of ε.

They are read off the joins that the program makes and the visits of its readers: each is bounded by the cheapest
chain of limits (plan.degree) for any ε, so that evaluating it at some ε between 0 and 1 gives the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.ir.exponent import Bound, Linear, bound, through
from ivme.plan.order.degree import degree_bound, degree_curve
from ivme.plan.strategy.skew.trees import SkewPlan, limits
from ivme.structure.hypergraph import Edge

PARTS = 12
GRID = tuple(Fraction(i, PARTS) for i in range(PARTS + 1))
"""Where exponents are evaluated; between these they are linear, or no greater than the line."""

_Curve = Sequence[int | Fraction]
"""An exponent at each point of the grid, in twelfths."""


class Measure:
    """The exponents of a plan as functions of one ε, or as numbers if each partition has its `own`.

    They are read off the joins of its program and the visits of its readers. `assembly` is that of the plan's
    blueprint, from which its program has been made.
    """

    def __init__(self, made: SkewPlan, assembly: Assembly, own: Mapping[str, Fraction]) -> None:
        self._own = own
        self._storage = assembly.storage
        self._joins = {section: {*joins} for section, joins in assembly.joins.items()}
        self._maps = {(self._storage.edges(node), frozenset(node.schema), _NOTHING) for node in assembly.stored}
        self._visits = {(limits(made.blueprint.leaves, labels), visit) for visit, labels in {*made.visits}}
        self._update: _Curve = () if own else self._curve(self._joins.get("update", ()), 0)
        self._delay: _Curve = () if own else _highest(self._steps(), 0)

    def update(self) -> Bound:
        return self._largest(self._joins.get("update", ()), 0) if self._own else _curved(self._update)

    def preprocessing(self) -> Bound:
        return self._largest(self._joins.get("build", ()), 1)

    def space(self) -> Bound:
        return self._largest(self._maps, 1)

    def delay(self) -> Bound:
        if self._own:
            steps = (degree_bound(mine, visit.given, visit.found, self._own) for mine, visit in self._visits)
            return bound(max(steps, default=Fraction(0)))
        return _curved(self._delay)

    def balanced(self, usual: Fraction) -> Fraction:
        """The ε with the cheapest updates of those whose delay is no longer than at the usual one, which wins ties."""
        if self._own:
            return usual
        at = int(usual * PARTS)
        open_to = [each for each in (at, *range(PARTS + 1)) if self._delay[each] <= self._delay[at]]
        return GRID[min(open_to, key=self._update.__getitem__)]

    def _steps(self) -> list[_Curve]:
        return [degree_curve(mine, visit.given, visit.found, PARTS) for mine, visit in self._visits]

    def _curve(self, sizes: Iterable[_Size], least: int) -> _Curve:
        return _highest([self._storage.sizes.exponents(*size, PARTS) for size in sizes], least)

    def _largest(self, sizes: Iterable[_Size], least: int) -> Bound:
        """The largest of some joins or maps, and at least this."""
        if self._own:
            return bound(max([Fraction(least), *(self._storage.sizes.exponent(*size, self._own) for size in sizes)]))
        return _curved(self._curve(sizes, least))


_NOTHING: frozenset[str] = frozenset()
_Size = tuple[frozenset[Edge], frozenset[str], frozenset[str]]


def _highest(curves: Sequence[_Curve], least: int) -> _Curve:
    """The maximum of some curves."""
    return [*map(max, [least * PARTS] * (PARTS + 1), *curves)] if curves else [least * PARTS] * (PARTS + 1)


def _curved(highest: _Curve) -> Bound:
    """A curve as a function of ε."""
    slope = highest[-1] - highest[0]
    if all(PARTS * (value - highest[0]) == at * slope for at, value in enumerate(highest)):
        return bound(Linear(Fraction(highest[0]) / PARTS, Fraction(slope) / PARTS))
    return bound(through([(epsilon, Fraction(value) / PARTS) for epsilon, value in zip(GRID, highest, strict=True)]))
