"""The bounds of a plan over heavy and light parts, as exact functions of ε.

They are read off the joins that the program makes and the visits of its readers: each is bounded by the cheapest
chain of limits (plan.degree) for any ε, so that evaluating it at some ε between 0 and 1 gives the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from ivme.plan.assemble import Assembly
from ivme.plan.catalog import catalog_of
from ivme.plan.degree import degree_bound
from ivme.plan.exponent import Bound, bound, through
from ivme.plan.skew_trees import SkewPlan, limits

GRID = tuple(Fraction(i, 12) for i in range(13))
"""Where exponents are evaluated; between these they are linear, or no greater than the line."""


def as_bound(
    cost: Callable[[Mapping[str, Fraction]], Fraction], partitions: Iterable[str], own: Mapping[str, Fraction]
) -> Bound:
    """A cost as a function of one ε for all partitions; as a number, if each has its own."""
    if own:
        return bound(cost(own))
    return bound(through([(epsilon, cost(dict.fromkeys(partitions, epsilon))) for epsilon in GRID]))


class Measure:
    """The exponents of a plan for given ε, read off the joins of its program and the visits of its readers."""

    def __init__(self, made: SkewPlan) -> None:
        self._made = made
        self._assembly = assembly = Assembly(catalog_of({"": made.blueprint}))
        for relation in assembly.relations:
            assembly.trigger(relation)
        assembly.fill(frozenset())
        assembly.build("")
        assembly.enumeration("")
        self._maps = [(assembly.storage.edges(node), frozenset(node.schema)) for node in assembly.stored]

    def update(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        return self._dearest("update", epsilons)

    def preprocessing(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        return max(Fraction(1), self._dearest("build", epsilons))

    def space(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        sizes = (self._assembly.storage.exponent(edges, schema, (), epsilons) for edges, schema in set(self._maps))
        return max(Fraction(1), *sizes)

    def delay(self, epsilons: Mapping[str, Fraction]) -> Fraction:
        leaves = self._made.blueprint.leaves
        steps = (
            degree_bound(limits(leaves, labels, epsilons), visit.given, visit.found)
            for visit, labels in set(self._made.visits)
        )
        return max(steps, default=Fraction(0))

    def _dearest(self, section: str, epsilons: Mapping[str, Fraction]) -> Fraction:
        joins = set(self._assembly.joins.get(section, []))
        return max((self._assembly.storage.exponent(*join, epsilons) for join in joins), default=Fraction(0))
