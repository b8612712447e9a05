"""Found once: a bulk build of a lazy program that was read before does not make its views stale."""

from __future__ import annotations

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule


def test_a_bulk_build_after_a_read_of_nothing_is_seen() -> None:
    """`build` runs the triggers' steps itself and leaves `_stale` False."""
    kernel = Interpreter(plan_with("recompute", parse_rule("Q(A, C) = R(A, B), S(B, C)")).program)
    assert list(kernel.items({})) == []
    kernel.build({"R": {(1, 2): 1}, "S": {(2, 3): 1}})
    assert list(kernel.items({})) == [((1, 3), 1, ())]
