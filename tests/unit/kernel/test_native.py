"""The compiled kernel behind the protocol: values of every type, and sums of every width."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ivme.engine.ingest.feed import float_code
from ivme.errors import IvmeError
from ivme.plan.assemble.assemble import Assembly, program_of
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.programs import NativeProgram


def test_float_codes_sort_like_floats() -> None:
    floats = [float("-inf"), -1e300, -1.5, -1e-300, 0.0, 1e-300, 2.0, 1e300, float("inf")]
    assert sorted(map(float_code, floats)) == [float_code(value) for value in floats]
    assert float_code(0.0) == float_code(-0.0)


def test_sums_of_floats_and_of_wide_integers() -> None:
    program = plan_with("view-tree", parse_rule("Q(A, SUM(X), SUM(Y)) = R(A, X, Y)")).program
    kinds: dict[tuple[str, ...], str] = {("sum", "X"): "f64", ("sum", "Y"): "d192"}
    kernel = NativeProgram(program, [kinds.get(slot, "i64") for slot in program.enumeration.slots])
    kernel.apply("R", {(1, 0.5, 2**80): 2, (1, None, -1): 1, (1, 0.25, None): 1})
    ((row, payload, _),) = kernel.items({})
    sums = dict(zip(program.enumeration.slots, payload[1:], strict=True))  # type: ignore[index]
    assert row == (1,)
    assert (sums["sum", "X"], sums["sum", "Y"]) == (1.25, 2**81 - 1)
    assert (sums["count", "X"], sums["count", "Y"]) == (3, 3)


def test_a_sum_over_what_is_no_integer_is_refused() -> None:
    kernel = NativeProgram(plan_with("view-tree", parse_rule("Q(A, SUM(X)) = R(A, X)")).program)
    for value in ("x", 0.5, 2**64):
        with pytest.raises(IvmeError, match="summed"):
            kernel.apply("R", {(1, value): 1})


def test_the_emitted_changes_of_a_view_add_up_to_it() -> None:
    plan = plan_with("classical", parse_rule("Q(A, C) = E(A, B), E(B, C)"))
    program = program_of(Assembly(catalog_of({"Q": plan.followed})), "Q")
    kernel = NativeProgram(program)
    total: Counter[Any] = Counter()
    rng = np.random.default_rng(2)
    for _ in range(20):
        columns = [rng.integers(0, 6, 10), rng.integers(0, 6, 10)]
        for delta in kernel.apply_columns("E", columns, rng.choice([1, 1, -1], 10)):
            rows = zip(*(column.tolist() for column in delta.columns), strict=True)
            for row, count in zip(rows, delta.counts.tolist(), strict=True):
                total[row] += count
    assert {row: n for row, n in total.items() if n} == {row: n for row, n, _ in kernel.items({})}
