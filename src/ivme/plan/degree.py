"""How large a join can get when parts of relations are heavy or light (source 003, section 5.1).

A light part has at most N^ε tuples for each key; a heavy part has at most N^(1-ε) keys; any part has at most N tuples.
Each of these is a *limit*: knowing some variables, at most N^cost values of others go with them. The size of a join
given some variables is bounded by every chain of limits that reaches all others, so by the cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush

from ivme.plan.program import Side


@dataclass(frozen=True, slots=True)
class Limit:
    """Given the variables `given`, at most N^cost values of `reached`."""

    given: frozenset[str]
    reached: frozenset[str]
    cost: Fraction


def limits_of(schema: Iterable[str], sides: Iterable[Side], epsilons: Mapping[str, Fraction]) -> tuple[Limit, ...]:
    """The limits of a part of a relation with these variables."""
    return _limits(frozenset(schema), tuple((side.key, side.heavy, epsilons[side.partition]) for side in sides))


@lru_cache(maxsize=10_000)
def _limits(variables: frozenset[str], sides: tuple[tuple[tuple[str, ...], bool, Fraction], ...]) -> tuple[Limit, ...]:
    limits = [Limit(frozenset(), variables, Fraction(1))]
    for key, heavy, epsilon in sides:
        if heavy:
            limits.append(Limit(frozenset(), frozenset(key), 1 - epsilon))
        else:
            limits.append(Limit(frozenset(key), variables, epsilon))
    return tuple(limits)


def degree_bound(limits: Iterable[Limit], known: frozenset[str], wanted: frozenset[str]) -> Fraction:
    """The cheapest chain of limits from the known variables to all wanted ones; infinite chains do not occur.

    >>> light = limits_of("AB", [Side("A", ("A",), heavy=False)], {"A": Fraction(1, 3)})
    >>> degree_bound(light, frozenset("A"), frozenset("B")), degree_bound(light, frozenset("B"), frozenset("A"))
    (Fraction(1, 3), Fraction(1, 1))
    """
    return _cheapest(frozenset(limits), known, wanted)


@lru_cache(maxsize=100_000)
def _cheapest(limits: frozenset[Limit], known: frozenset[str], wanted: frozenset[str]) -> Fraction:
    best: dict[frozenset[str], Fraction] = {known: Fraction(0)}
    waiting: list[tuple[Fraction, list[str]]] = [(Fraction(0), sorted(known))]
    while waiting:
        cost, names = heappop(waiting)
        reached = frozenset(names)
        if wanted <= reached:
            return cost
        if cost > best[reached]:
            continue
        for limit in limits:
            if limit.given <= reached and not limit.reached <= reached:
                after, total = reached | limit.reached, cost + limit.cost
                if after not in best or total < best[after]:
                    best[after] = total
                    heappush(waiting, (total, sorted(after)))
    raise ValueError(f"no limit reaches {sorted(wanted)} from {sorted(known)}")
