"""Limits against an oracle that tries every chain at one ε."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from ivme.plan.ir.program import Side
from ivme.plan.order.degree import Limit, degree_bound, limits_of

VARIABLES = "ABCDE"
EPSILONS = st.sampled_from([Fraction(i, 6) for i in range(7)])


@st.composite
def parts(draw: st.DrawFn) -> list[Limit]:
    """The limits of up to four parts that have all variables together, each split on up to two keys."""
    found = [*limits_of(frozenset(VARIABLES[:2]), ()), *limits_of(frozenset(VARIABLES[2:]), ())]
    for _ in range(draw(st.integers(0, 4))):
        schema = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=3, unique=True))
        keys = draw(st.lists(st.sampled_from(schema), max_size=2, unique=True))
        found += limits_of(frozenset(schema), tuple(Side(key, (key,), draw(st.booleans())) for key in keys))
    return found


def cheapest(
    limits: list[Limit], reached: frozenset[str], wanted: frozenset[str], epsilons: dict[str, Fraction]
) -> Fraction:
    """The least sum over the chains that begin with each limit."""
    if wanted <= reached:
        return Fraction(0)
    costs = []
    for limit in limits:
        if limit.given <= reached and not limit.reached <= reached:
            epsilon = Fraction(1) if limit.side is None else epsilons[limit.side.partition]
            cost = 1 - epsilon if limit.side is not None and limit.side.heavy else epsilon
            costs.append(cost + cheapest(limits, reached | limit.reached, wanted, epsilons))
    return min(costs)


@given(parts(), st.sets(st.sampled_from(VARIABLES)), st.sets(st.sampled_from(VARIABLES)), EPSILONS)
def test_the_bound_is_the_cheapest_chain_at_every_epsilon(
    limits: list[Limit], known: set[str], wanted: set[str], epsilon: Fraction
) -> None:
    expected = cheapest(limits, frozenset(known), frozenset(wanted), dict.fromkeys(VARIABLES, epsilon))
    assert expected == degree_bound(limits, frozenset(known), frozenset(wanted), epsilon)


@given(parts(), st.sets(st.sampled_from(VARIABLES)), st.lists(EPSILONS, min_size=5, max_size=5))
def test_the_bound_is_the_cheapest_chain_if_each_partition_has_its_own_epsilon(
    limits: list[Limit], wanted: set[str], values: list[Fraction]
) -> None:
    own = dict(zip(VARIABLES, values, strict=True))
    expected = cheapest(limits, frozenset(), frozenset(wanted), own)
    assert expected == degree_bound(limits, frozenset(), frozenset(wanted), own)
