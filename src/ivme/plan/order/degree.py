"""How large a join can get when parts of relations are heavy or light (source 003, section 5.1).

A light part has at most N^ε tuples for each key; a heavy part has at most N^(1-ε) keys; any part has at most N tuples.
Each of these is a *limit*: knowing some variables, at most N^cost values of others go with them. The size of a join
given some variables is bounded by every chain of limits that reaches all others, so by the cheapest.

A cost is linear in ε, so it is known by its values at ε = 0 and ε = 1, its *ends*. The chains with the least ends are
sought once for all ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush

from ivme.budget import spend
from ivme.plan.ir.program import Side

Epsilons = Fraction | Mapping[str, Fraction]
"""One ε for all partitions, or one for each."""

Ends = tuple[Fraction | int, Fraction | int]
"""A cost at ε = 0 and at ε = 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Given the variables `given`, at most N^cost values of `reached`.

    The cost is 1, or that of a heavy or light side. `limits_of` makes equal ones once: they are told by identity.
    """

    given: frozenset[str]
    reached: frozenset[str]
    side: Side | None = None

    def ends(self, own: Mapping[str, Fraction] | None) -> Ends:
        """The cost; if partitions have their own ε, it is a number."""
        if self.side is None:
            return 1, 1
        low, high = (0, 1) if own is None else (own[self.side.partition],) * 2
        return (1 - low, 1 - high) if self.side.heavy else (low, high)


@lru_cache(maxsize=10_000)
def limits_of(variables: frozenset[str], sides: tuple[Side, ...]) -> tuple[Limit, ...]:
    """The limits of a part of a relation with these variables."""
    keys = [(frozenset(side.key), side) for side in sides]
    split = [Limit(frozenset(), key, side) if side.heavy else Limit(key, variables, side) for key, side in keys]
    return (Limit(frozenset(), variables), *split)


def degree_bound(
    limits: Iterable[Limit], known: frozenset[str], wanted: frozenset[str], epsilons: Epsilons
) -> Fraction:
    """The cost of the cheapest chain of limits from the known variables to all wanted ones; infinite chains do not
    occur.

    >>> light = limits_of(frozenset("AB"), (Side("A", ("A",), heavy=False),))
    >>> [str(degree_bound(light, frozenset(a), frozenset(b), Fraction(1, 3))) for a, b in ("AB", "BA")]
    ['1/3', '1']
    """
    spend(2)
    if isinstance(epsilons, Fraction):
        part, whole = epsilons.numerator, epsilons.denominator
        chains = _chains(frozenset(limits), known, wanted)
        return Fraction(min(low * (whole - part) + high * part for low, high in chains), whole)
    return Fraction(min(_chains(frozenset(limits), known, wanted, frozenset(epsilons.items())))[0])


def degree_curve(limits: Iterable[Limit], known: frozenset[str], wanted: frozenset[str], parts: int) -> list[int]:
    """`degree_bound` for ε = 0, 1/parts, ..., 1, in units of 1/parts."""
    spend(2 * (parts + 1))
    chains = _chains(frozenset(limits), known, wanted)
    lines = [[low * parts + (high - low) * at for at in range(parts + 1)] for low, high in chains]
    return [*map(int, map(min, zip(*lines, strict=True)))]


@lru_cache(maxsize=100_000)
def _chains(
    limits: frozenset[Limit],
    known: frozenset[str],
    wanted: frozenset[str],
    own: frozenset[tuple[str, Fraction]] | None = None,
) -> tuple[Ends, ...]:
    """The ends of all chains that no other is below at both; `own` has the partitions' own ε, if they have some.

    Dijkstra's algorithm on the sets of reached variables, as bitmasks, of which only those that are wanted or given to
    a limit tell sets apart.
    """
    needed = wanted.union(*(limit.given for limit in limits)) - known
    bits = {variable: 1 << position for position, variable in enumerate(needed)}

    masks: dict[frozenset[str], int] = {}

    def mask(variables: frozenset[str]) -> int:
        if variables not in masks:
            masks[variables] = sum([bits[variable] for variable in variables & needed])
        return masks[variables]

    epsilons = None if own is None else dict(own)
    steps = {(mask(limit.given), mask(limit.reached), *limit.ends(epsilons)) for limit in limits}
    goal = mask(wanted)
    begun, goal, spent = _forced([*steps], goal)
    best: dict[int, list[Ends]] = {0: [(0, 0)]}
    found: list[Ends] = []
    waiting: list[tuple[Fraction | int, Fraction | int, Fraction | int, int]] = [(0, 0, 0, 0)]
    while waiting:
        total, low, high, reached = heappop(waiting)
        if _is_above(low, high, found):
            continue
        if not goal & ~reached:
            found.append((low, high))
            continue
        for given, more, at_zero, at_one in begun:
            if not given & ~reached and more & ~reached:
                after, ends = reached | more, (low + at_zero, high + at_one)
                if not _is_above(*ends, best.setdefault(after, [])):
                    best[after].append(ends)
                    heappush(waiting, (total + at_zero + at_one, *ends, after))
    if not found:
        raise ValueError(f"no limit reaches {sorted(wanted)} from {sorted(known)}")
    return tuple([(low + spent[0], high + spent[1]) for low, high in found])


_Step = tuple[int, int, Fraction | int, Fraction | int]
"""A limit as bitmasks: what is given and reached, and its ends."""


def _forced(steps: list[_Step], goal: int) -> tuple[list[_Step], int, Ends]:
    """What is left of the limits and the goal when those are taken that every chain needs, and their ends.

    Of two limits, one that needs no more, reaches no less and costs no more makes the other superfluous. If a variable
    of the goal is reached by one limit alone, and that can be taken now, it is: nine relations around a light value
    have one chain then, in place of every set of the nine.
    """
    low: Fraction | int = 0
    high: Fraction | int = 0
    while True:
        steps = [each for number, each in enumerate(steps) if each[1] and not _is_superfluous(number, steps)]
        taken = None
        for bit in range(goal.bit_length()):
            if goal >> bit & 1:
                reaching = [each for each in steps if each[1] >> bit & 1]
                if len(reaching) == 1 and not reaching[0][0]:
                    taken = reaching[0]
                    break
        if taken is None:
            return steps, goal, (low, high)
        _, more, at_zero, at_one = taken
        low, high = low + at_zero, high + at_one
        goal &= ~more
        steps = [(given & ~more, reached & ~more, one, other) for given, reached, one, other in steps]


def _is_superfluous(number: int, steps: list[_Step]) -> bool:
    """Whether another limit makes this one superfluous; of equal ones the first stays."""
    given, reached, low, high = steps[number]
    for place, (needs, reaches, at_zero, at_one) in enumerate(steps):
        is_no_worse = not needs & ~given and not reached & ~reaches and at_zero <= low and at_one <= high
        if is_no_worse and place != number and (place < number or steps[place] != steps[number]):
            return True
    return False


def _is_above(low: Fraction | int, high: Fraction | int, others: list[Ends]) -> bool:
    return any(other_low <= low and other_high <= high for other_low, other_high in others)
