"""Options are checked once, with messages that say what to write."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from ivme.errors import PlanError
from ivme.plan.strategy.options import CHOICES, read_options


@pytest.mark.parametrize("value", [0.5, Decimal("0.5"), Fraction(1, 2)])
def test_epsilon_is_exact_whatever_kind_of_number_it_is(value: object) -> None:
    assert Fraction(1, 2) == read_options({"epsilon": value}).epsilon


def test_a_float_counts_as_the_decimal_it_is_printed_as() -> None:
    assert Fraction(1, 10) == read_options({"epsilon": 0.1}).epsilon


@pytest.mark.parametrize("value", [-0.1, 1.5, "half", True, float("nan"), float("inf"), {}, {1: 0.5}, {"R": 2}, [0.5]])
def test_an_epsilon_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(PlanError, match="epsilon"):
        read_options({"epsilon": value})


def test_one_epsilon_for_all_relations_has_a_value_and_several_have_none() -> None:
    assert Fraction(1, 2) == read_options({"epsilon": {"R": 0.5, "S": 0.5}}).epsilon_value
    assert read_options({"epsilon": {"R": 0.5, "S": 1}}).epsilon_value is None
    assert read_options({"epsilon": "auto"}).epsilon_value is None


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match="there is no option 'epsilom'; the options are strategy, epsilon, "):
        read_options({"epsilom": 0.5})


@pytest.mark.parametrize("option", ["semantics", "space", "rebalance"])
def test_a_choice_that_is_not_offered_is_refused_with_those_that_are(option: str) -> None:
    with pytest.raises(PlanError, match=f"{option} must be one of '{CHOICES[option][0]}', "):
        read_options({option: "other"})


@pytest.mark.parametrize("value", [7, [7], [""], None])
def test_names_of_tables_must_be_names(value: object) -> None:
    with pytest.raises(PlanError, match="static must be a table's name or several"):
        read_options({"static": value})


def test_a_single_name_may_stand_for_a_list() -> None:
    assert ("R",) == read_options({"static": "R"}).static == read_options({"static": ["R", "R"]}).static


def test_a_strategy_must_be_a_name() -> None:
    with pytest.raises(PlanError, match="strategy must be the name"):
        read_options({"strategy": 3})
