"""Rows of a view: columns in order, aggregates finished, as SQL has them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from tests.counting import COUNTING
from tests.programs import rows

EVERY = pytest.mark.parametrize("strategy", COUNTING)


def answer(query: Query | str, strategy: str, database: dict[str, dict[Any, int]], **parameters: Any) -> list[Any]:
    query = parse_rule(query) if isinstance(query, str) else query
    kernel = Interpreter(plan_with(strategy, query).program)
    kernel.build(database)
    return sorted(rows(query, kernel, parameters), key=repr)


@EVERY
def test_columns_come_in_the_order_of_the_head_inputs_among_them(strategy: str) -> None:
    tables = [table("r", {"a": "int", "b": "int", "c": "int"})]
    query = parse_sql("SELECT r.c, r.a, r.b FROM r WHERE r.a = :key", tables)
    assert answer(query, strategy, {"r": {(1, 2, 3): 4, (9, 2, 3): 1}}, key=1) == [((3, 1, 2), 4)]


@EVERY
def test_a_row_has_its_multiplicity_and_with_distinct_one(strategy: str) -> None:
    database = {"R": {(1, 2): 2, (1, 3): 1}}
    assert answer("Q(A) = R(A, B)", strategy, database) == [((1,), 3)]
    assert answer("Q(DISTINCT A) = R(A, B)", strategy, database) == [((1,), 1)]


@EVERY
def test_all_aggregates_of_a_group(strategy: str) -> None:
    """X is 5 twice, 2 and NULL: sum 12, three values, average 4, two distinct."""
    text = "Q(A, COUNT, COUNT(X), SUM(X), AVG(X), MIN(X), MAX(X), COUNT(DISTINCT X)) = R(A, X)"
    found = answer(text, strategy, {"R": {(1, 5): 2, (1, 2): 1, (1, None): 1}})
    assert found == [((1, 4, 3, 12, 4, 2, 5, 2), 1)]


@EVERY
def test_a_group_whose_sum_is_zero_is_there(strategy: str) -> None:
    assert answer("Q(A, SUM(X)) = R(A, X)", strategy, {"R": {(1, 5): 1, (1, -5): 1}}) == [((1, 0), 1)]


@EVERY
def test_a_sum_of_nulls_is_null(strategy: str) -> None:
    text = "Q(A, SUM(X), AVG(X), COUNT(X), MIN(X)) = R(A, X)"
    assert answer(text, strategy, {"R": {(1, None): 2}}) == [((1, None, None, 0, None), 1)]


@EVERY
def test_a_global_aggregate_over_nothing_is_one_row(strategy: str) -> None:
    text = "Q(COUNT, SUM(X), MIN(X), COUNT(DISTINCT X)) = R(A, X), S(A)"
    assert answer(text, strategy, {}) == [((0, None, None, 0), 1)]
    assert answer(text, strategy, {"R": {(1, 5): 1}}) == [((0, None, None, 0), 1)]


@EVERY
def test_an_aggregate_of_an_access_request_over_nothing_is_one_row(strategy: str) -> None:
    assert answer("Q(COUNT | A) = R(A, X)", strategy, {"R": {(1, 5): 1}}, A=2) == [((0,), 1)]
    assert answer("Q(COUNT | A) = R(A, X)", strategy, {"R": {(1, 5): 1}}, A=1) == [((1,), 1)]


@EVERY
def test_a_grouped_aggregate_over_nothing_has_no_rows(strategy: str) -> None:
    assert answer("Q(A, COUNT) = R(A, X)", strategy, {}) == []


@EVERY
def test_groups_that_the_head_does_not_show_have_no_row_over_nothing(strategy: str) -> None:
    query = parse_sql("SELECT COUNT(*) AS n FROM r GROUP BY r.a", [table("r", {"a": "int"})])
    assert answer(query, strategy, {}) == []
    assert answer(query, strategy, {"r": {(1,): 2, (2,): 3}}) == [((2,), 1), ((3,), 1)]


@EVERY
def test_the_extremes_of_a_free_variable_are_its_value(strategy: str) -> None:
    text = "Q(A, MIN(A), MAX(A), COUNT(DISTINCT A)) = R(A, X)"
    assert answer(text, strategy, {"R": {(3, 1): 2, (None, 1): 1}}) == [((3, 3, 3, 1), 1), ((None, None, None, 0), 1)]


@EVERY
def test_sums_of_several_sides_scale_with_each_other(strategy: str) -> None:
    """Pairs of X in {5, 7} and Y in {10}, Y twice: SUM(X) = 2·12, SUM(Y) = 4·10."""
    database = {"R": {(1, 5): 1, (1, 7): 1}, "S": {(1, 10): 2}}
    assert answer("Q(A, SUM(X), SUM(Y)) = R(A, X), S(A, Y)", strategy, database) == [((1, 24, 40), 1)]


@EVERY
def test_an_average_of_exact_numbers_is_exact(strategy: str) -> None:
    database = {"R": {(1, Fraction(1)): 1, (1, Fraction(2)): 2}}
    assert [((1, Fraction(5, 3)), 1)] == answer("Q(A, AVG(X)) = R(A, X)", strategy, database)
