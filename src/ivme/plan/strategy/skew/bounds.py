"""The bounds of a plan over heavy and light parts, as exact functions of ε.

They are read off the joins that the program makes and the visits of its readers: each is bounded by the cheapest
chain of limits (plan.degree) for any ε, so that evaluating it at some ε between 0 and 1 gives the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.ir.exponent import Bound, bound, through
from ivme.plan.order.degree import Epsilons, degree_bound
from ivme.plan.strategy.skew.trees import SkewPlan, limits

GRID = tuple(Fraction(i, 12) for i in range(13))
"""Where exponents are evaluated; between these they are linear, or no greater than the line."""


def as_bound(cost: Callable[[Epsilons], Fraction], own: Mapping[str, Fraction]) -> Bound:
    """A cost as a function of one ε for all partitions; as a number, if each has its own."""
    if own:
        return bound(cost(own))
    return bound(through([(epsilon, cost(epsilon)) for epsilon in GRID]))


class Measure:
    """The exponents of a plan for given ε, read off the joins of its program and the visits of its readers."""

    def __init__(self, made: SkewPlan, assembly: Assembly) -> None:
        """`assembly` is that of the plan's blueprint, from which its program has been made."""
        self._storage = assembly.storage
        self._joins = {section: {*joins} for section, joins in assembly.joins.items()}
        self._maps = {(assembly.storage.edges(node), frozenset(node.schema)) for node in assembly.stored}
        self._visits = {(limits(made.blueprint.leaves, labels), visit) for visit, labels in {*made.visits}}

    def update(self, epsilons: Epsilons) -> Fraction:
        return self._dearest("update", epsilons)

    def preprocessing(self, epsilons: Epsilons) -> Fraction:
        return max(Fraction(1), self._dearest("build", epsilons))

    def space(self, epsilons: Epsilons) -> Fraction:
        sizes = (self._storage.exponent(edges, schema, (), epsilons) for edges, schema in self._maps)
        return max(Fraction(1), *sizes)

    def delay(self, epsilons: Epsilons) -> Fraction:
        steps = (degree_bound(mine, visit.given, visit.found, epsilons) for mine, visit in self._visits)
        return max(steps, default=Fraction(0))

    def _dearest(self, section: str, epsilons: Epsilons) -> Fraction:
        joins = self._joins.get(section, ())
        return max((self._storage.exponent(*join, epsilons) for join in joins), default=Fraction(0))
