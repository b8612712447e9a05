"""Found once: a pending read of a whole map, with nothing known, asks for an index that nobody declared."""

from __future__ import annotations

import pytest

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.counting import COUNTING


@pytest.mark.parametrize("strategy", COUNTING)
def test_three_occurrences_that_share_no_variable_count_the_cube(strategy: str) -> None:
    """δE joins (E + δE)(A) with no variable known: the KeyError comes from `Overlay.matches`."""
    kernel = Interpreter(plan_with(strategy, parse_rule("Q(.|.) = E(A), E(B), E(C)")).program)
    kernel.apply("E", {(1,): 1})
    kernel.apply("E", {(2,): 1})
    assert list(kernel.items({})) == [((), 2**3, ())]
