"""What a view costs, in a sentence for people: before exponents and proofs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ivme.plan.ir.exponent import Bound
from ivme.query.names import CLOCK

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import Explanation


def verdict(explanation: Explanation) -> str:
    """What an update and a read cost; empty if nothing is promised.

    >>> from ivme.compile import compile_query
    >>> print(verdict(compile_query("Q(A, COUNT) = R(A, B), S(A, C)")))
    An update costs a few look-ups, whatever the size. Reading costs a few look-ups a row.
    """
    if explanation.update is None or explanation.delay is None:
        return ""
    if explanation.plan is not None and explanation.plan.blueprint.lazy:
        return "An update costs nothing. The first read after it computes everything again."
    return f"{_updates(explanation)}. {_reading(explanation)}.{_clock(explanation)}"


def _updates(explanation: Explanation) -> str:
    assert explanation.update is not None
    by_cost: dict[Bound, list[str]] = {}
    for cost in explanation.costs:
        if cost.table != CLOCK:
            by_cost.setdefault(cost.update, []).append(cost.table)
    steps = [cost.update for cost in explanation.costs if cost.table == CLOCK]
    if len(by_cost) + len(steps) < 2:
        return f"An update costs {_told(explanation, explanation.update)}"
    ranked = sorted(by_cost, key=lambda each: (each.exponent.at(_epsilon(explanation)), each.amortised))
    told = [f"of {_listed(by_cost[each])} costs {_told(explanation, each)}" for each in ranked]
    return "; ".join([f"A change {'; one '.join(told)}", *(_step(explanation, each) for each in steps)])


def _step(explanation: Explanation, cost: Bound) -> str:
    return f"a step of the clock costs {_told(explanation, cost)}, if all rows enter or leave at once"


def _clock(explanation: Explanation) -> str:
    """What a view that reads the clock makes of it: to its first reader NOW() is the time of day."""
    if all(cost.table != CLOCK for cost in explanation.costs):
        return ""
    return " NOW() is the time that `db.advance(now)` said last, and 1970 before it was called."


def shown_table(name: str) -> str:
    """A table as users know it: the clock is not one of their tables."""
    return "the clock" if name == CLOCK else name


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _told(explanation: Explanation, bound: Bound) -> str:
    exponent = bound.exponent.at(_epsilon(explanation))
    if exponent == 0:
        text = "a few look-ups, whatever the size" if not bound.logs else "look-ups whose number grows with log N"
    elif exponent == 1:
        text = "up to as many look-ups as there are rows"
    else:
        power = {Fraction(1, 2): "√N", Fraction(2): "N²", Fraction(3): "N³"}.get(exponent)
        if power is None:
            power = f"N^{exponent}" if exponent.denominator == 1 else f"N^({exponent})"
        text = f"up to {power} look-ups over N rows"
    return f"{text}, on average over many" if bound.amortised else text


def _reading(explanation: Explanation) -> str:
    assert explanation.delay is not None
    if explanation.delay.exponent.at(_epsilon(explanation)) == 0:
        return "Reading costs a few look-ups a row"
    if explanation.strategy == "request" and _is_pieced(explanation):
        return f"The first row of a request costs {_told(explanation, explanation.delay)}, and each further one a few"
    if explanation.strategy == "request":
        return f"A request costs {_told(explanation, explanation.delay)}, however many it finds"
    return f"Reading a row costs {_told(explanation, explanation.delay)}"


def _is_pieced(explanation: Explanation) -> bool:
    """Whether rows of requests come one by one."""
    return explanation.plan is not None and any(branch.pieces for branch in explanation.plan.blueprint.branches)


def _epsilon(explanation: Explanation) -> Fraction:
    return explanation.epsilon if isinstance(explanation.epsilon, Fraction) else Fraction(1, 2)
