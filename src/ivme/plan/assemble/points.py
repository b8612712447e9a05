"""Plans as points: what a change of each table, a request and the build cost, and what a workload would take by each.

Of two plans the one is better that is cheaper for what the view is used for. Costs are the printed bounds, so that what
is compared is what is promised: N^exponent operations, N the rows of the largest table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import le

from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.tuning import CHOICES
from ivme.plan.assemble.update_costs import TableCost
from ivme.plan.ir.exponent import Bound


@dataclass(frozen=True, slots=True)
class Observation:
    """What a view was used for: the changed rows of each table, the requests, and the rows that were read for them.

    `sizes` are the rows that the tables have now. While a view is `followed`, its changes have to be known.
    """

    changes: tuple[tuple[str, int], ...]
    requests: int
    rows: int
    sizes: tuple[tuple[str, int], ...]
    is_followed: bool = False

    @property
    def size(self) -> int:
        """N."""
        return max([2, *(rows for _, rows in self.sizes)])

    def __str__(self) -> str:
        changes = ", ".join(f"{number:,} of {table}" for table, number in self.changes if number) or "none"
        told = f"changed rows: {changes}; {self.requests:,} requests of {self.rows:,} rows together"
        return f"{told}; its changes are followed" if self.is_followed else told


@dataclass(frozen=True, slots=True)
class Point:
    """The costs of a plan at one ε, as exponents of N.

    `per_request` is whether the delay is that of all rows of a request together. The rows of a table that is `shared`
    share the cost of their changes, as customers share the orders.
    """

    strategy: str
    epsilon: Fraction | None
    updates: tuple[tuple[str, Fraction], ...]
    delay: Fraction
    preprocessing: Fraction
    space: Fraction
    per_request: bool = False
    shared: frozenset[str] = frozenset()

    def work(self, observed: Observation) -> float:
        """The operations that the workload takes."""
        n, changes, sizes = float(observed.size), dict(observed.changes), dict(observed.sizes)
        total = 0.0
        for table, exponent in self.updates:
            one: float = n ** float(exponent)
            one = max(1.0, one / max(1, sizes.get(table, 1))) if table in self.shared else one
            total += changes.get(table, 0) * one
        read = observed.requests if self.per_request else observed.rows
        one_read: float = n ** float(self.delay)
        return total + read * one_read + observed.requests + observed.rows

    def build(self, observed: Observation) -> float:
        """The operations that it takes to begin with."""
        work: float = float(observed.size) ** float(self.preprocessing)
        return work

    def dominates(self, other: Point) -> bool:
        """Whether it is at least as good in every respect."""
        return all(map(le, self._costs, other._costs))

    @property
    def _costs(self) -> tuple[Fraction, ...]:
        return (*(exponent for _, exponent in self.updates), self.delay, self.preprocessing, self.space)

    def __str__(self) -> str:
        return self.strategy if self.epsilon is None else f"{self.strategy} with ε = {self.epsilon}"


@dataclass(frozen=True, slots=True)
class PlanCosts:
    """The bounds of a plan that was compared with others; see `Plan` and `Point`."""

    strategy: str
    epsilon: Fraction | None
    updates: tuple[TableCost, ...]
    delay: Bound
    preprocessing: Bound
    space: Bound
    is_split: bool = False
    shared: frozenset[str] = frozenset()

    def points(self, epsilon: Fraction | None = None) -> list[Point]:
        """One for each ε where the bounds depend on that, unless one ε was requested."""
        bounds = (*(cost.update for cost in self.updates), self.delay, self.preprocessing, self.space)
        if not self.is_split or epsilon is not None or not any(each.depends_on_epsilon for each in bounds):
            return [self.at(self.epsilon if epsilon is None else epsilon)]
        return [self.at(each) for each in CHOICES]

    def at(self, epsilon: Fraction | None) -> Point:
        """The point at an ε."""
        at = Fraction(1, 2) if epsilon is None else epsilon
        return Point(
            self.strategy,
            epsilon if self.is_split else None,
            tuple((cost.table, cost.update.exponent.at(at)) for cost in self.updates),
            self.delay.exponent.at(at),
            self.preprocessing.exponent.at(at),
            self.space.exponent.at(at),
            self.strategy == "request",
            self.shared,
        )


def costs_of(plan: Plan, shared: frozenset[str] = frozenset()) -> PlanCosts:
    """The bounds of a plan; rows of `shared` tables share what it takes to join them, unless relations are split."""
    is_split = bool(plan.blueprint.splits)
    bounds = plan.updates, plan.delay, plan.preprocessing, plan.space
    return PlanCosts(plan.strategy, plan.epsilon, *bounds, is_split, frozenset() if is_split else shared)


def undominated(points: Iterable[Point]) -> tuple[Point, ...]:
    """Those that no other is at least as good as in every respect; of equal ones the first."""
    found: list[Point] = []
    for point in points:
        if not any(other.dominates(point) for other in found):
            found = [other for other in found if not point.dominates(other)] + [point]
    return tuple(found)


MUCH_BETTER = 4
"""A plan is changed if the other one would have taken so many times less work."""

BUILDS = 2
"""What would have been saved has to be worth so many builds of the other plan."""

LEAST_WORK = 1_000_000
"""Up to so many operations no plan is changed for: planning takes longer."""


def is_much_better(other: Point, current: Point, observed: Observation) -> bool:
    """Whether by its bounds the other plan would have been worth it; see `is_worth_it`."""
    return is_worth_it(current.work(observed), other.work(observed), other.build(observed))


def is_worth_it(spent: float, instead: float, build: float) -> bool:
    """Whether it would have been better to build another plan, and use it, from the start of what was observed.

    The work that is lost before a plan is changed is thus at most a few builds of the better one, and each further
    change takes as much again: whatever a view is used for, plans cost a constant factor more than the best of them.
    """
    return spent > LEAST_WORK and spent > MUCH_BETTER * instead and spent - instead > BUILDS * build
