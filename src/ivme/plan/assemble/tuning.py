"""Choosing ε from what a view is used for (source 003, section 5.5).

Of updates·N^update(ε) + requests·rows·N^delay(ε), the work for a mix of updates and access requests with some rows read
for each, the least is sought. Example 5.29 is the check: updates alone want ε = 0, requests alone ε = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ivme.plan.ir.exponent import Bound, Exponent

CHOICES = tuple(Fraction(i, 12) for i in range(13))
"""The ε that are compared: where exponents have their breakpoints."""

UNKNOWN_SIZE = 1_000_000
"""What N is taken to be where no table says how large it is."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How many updates go with how many access requests, and how many rows each of these reads."""

    updates: float = 1.0
    requests: float = 1.0
    rows: float = 1.0

    def __str__(self) -> str:
        return f"{self.updates:g} updates to {self.requests:g} requests of {self.rows:g} rows"


@dataclass(frozen=True, slots=True)
class Tuning:
    """What is needed to choose ε again: the plan's exponents, and the workload if it was stated."""

    update: Exponent
    delay: Exponent
    stated: Workload | None

    def epsilon(self, size: int, observed: Workload) -> Fraction:
        """The best ε for a database of this size; the stated workload goes before the observed one."""
        return best_epsilon(self.update, self.delay, size, self.stated or observed)


def best_epsilon(update: Exponent, delay: Exponent, size: int, workload: Workload) -> Fraction:
    """The ε with the least work; of equal ones that next to 1/2.

    >>> from ivme.plan.ir.exponent import linear
    >>> hierarchical = linear(0, 1), linear(1, -1)
    >>> [str(best_epsilon(*hierarchical, 10**6, Workload(*mix))) for mix in ((1, 0, 1), (1, 1, 1), (0, 1, 1))]
    ['0', '1/2', '1']
    """
    n = float(max(size, 2))

    def work(epsilon: Fraction) -> tuple[float, Fraction]:
        updating = workload.updates * n ** float(update.at(epsilon))
        reading = workload.requests * workload.rows * n ** float(delay.at(epsilon))
        return updating + reading, abs(epsilon - Fraction(1, 2))

    return min(CHOICES, key=work)


def expected_work(bounds: tuple[Bound, Bound], size: int, workload: Workload, epsilon: Fraction) -> str:
    """The estimate behind a choice, for people."""
    update, delay = (float(size) ** float(bound.exponent.at(epsilon)) for bound in bounds)
    return f"about {update:,.0f} steps an update and {delay:,.0f} a row at N = {size:,}, for {workload}"
