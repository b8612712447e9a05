"""Found once: changes that fail, and whose traces stay."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.engine.reference.interpreter import Interpreter, PureKernel
from ivme.errors import DataError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from tests.invariants import check_indexes


def contents(kernel: Interpreter) -> dict[str, dict[Any, Any]]:
    return {declared.name: dict(kernel.map(declared.name).items()) for declared in kernel.program.maps}


def test_a_value_that_no_ordered_index_can_compare_leaves_the_map_as_it_was() -> None:
    """`add_all` raises between the entry and its ordered index; only whole `Add` steps are rolled back."""
    kernel = Interpreter(plan_with("view-tree", parse_rule("Q(A, MIN(X)) = R(A, X)")).program)
    kernel.apply("R", {(1, 5): 1})
    before = contents(kernel)
    with pytest.raises((DataError, TypeError)):
        kernel.apply("R", {(1, "five"): 1})
    assert before == contents(kernel)
    for declared in kernel.program.maps:
        check_indexes(kernel.map(declared.name))


def test_a_sum_of_floats_is_what_it_was_after_a_change_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolling back subtracts what was added, which floats do not undo: 0.1 + 1e20 - 1e20 is 0.0."""
    kernel = Interpreter(plan_with("view-tree", parse_rule("Q(A, SUM(X)) = R(A, B, X), S(B)")).program)
    kernel.build({"R": {(1, 1, 0.1): 1}, "S": {(1,): 1}})
    before = contents(kernel)
    last = kernel.program.trigger("R").steps[-1]
    real = PureKernel._delta

    def failing(self: PureKernel, step: Any, *rest: Any) -> Any:
        if step is kernel.program.trigger("R").steps[-2] and step is not last:
            raise DataError("injected")
        return real(self, step, *rest)

    monkeypatch.setattr(PureKernel, "_delta", failing)
    with pytest.raises(DataError):
        kernel.apply("R", {(1, 1, 1e20): 1})
    assert before == contents(kernel)


def dividing() -> Query:
    tables = [table("r", {"a": "int", "b": "int"}), table("s", {"a": "int", "c": "int"})]
    return parse_sql("SELECT r.a, r.b FROM r JOIN s ON r.a = s.a WHERE 10 / s.c > 1", tables)


def test_a_bulk_build_of_a_lazy_program_is_all_or_nothing() -> None:
    """`Interpreter.build` of a lazy program applies one table after the other."""
    kernel = Interpreter(plan_with("recompute", dividing()).program)
    before = contents(kernel)
    with pytest.raises(DataError):
        kernel.build({"r": {(1, 1): 1}, "s": {(1, 0): 1}})
    assert before == contents(kernel)
