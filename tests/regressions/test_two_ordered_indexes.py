"""Found once: a value that the second ordered index of a map refuses stays behind in the first."""

from __future__ import annotations

import pytest

from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import DataError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.programs import rows


def test_a_value_that_one_ordered_index_refuses_is_in_no_other() -> None:
    """Both atoms read R alike, so that one leaf has X by B and Y by A; 'x' is refused by Y's group A = 0."""
    query = parse_rule("Q(A, B, MIN(X), MIN(Y)) = R(X, B), R(A, Y)")
    kernel = Interpreter(plan_with("view-tree", query).program)
    kernel.apply("R", {(0, 1): 1})
    with pytest.raises(DataError):
        kernel.apply("R", {(0, "x"): 1})
    kernel.apply("R", {(5, "x"): 1})
    least = {row[1]: row[2] for row, _ in rows(query, kernel, {})}
    assert least == {1: 0, "x": 5}
