"""Numbers of options, however they come."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ivme
from ivme.errors import IvmeError, PlanError
from ivme.plan.assemble.tuning import Workload
from ivme.plan.strategy.numbers import LARGEST_DENOMINATOR, read_count, read_unit
from ivme.plan.strategy.options import read_options

TINY = [Decimal("1e-16000000"), "1e-16000000", "0." + "0" * 90 + "1", Fraction(1, 10**100_000), 5e-324, Decimal("-0")]
OUTSIDE = [
    Decimal("1e16000000"),
    Decimal("-1e-16000000"),
    Decimal("1e999999999999999999"),
    Decimal("1.0000000000000000000000000000000000001"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    "1e16000000",
    "1e-" + "9" * 50,
    "9" * 1_000_000,
    "1/0",
    "1/3e5",
    "١/٣",
    "1_0/2_0",
    "nan",
    "",
    Fraction(10**100_000 + 1, 10**100_000),
    10**100_000,
    -1,
    True,
    float("nan"),
    float("inf"),
    [0.5],
    None,
]


@pytest.mark.parametrize("value", TINY, ids=lambda value: type(value).__name__)
def test_a_number_of_a_million_digits_is_read_without_writing_them_out(value: object) -> None:
    assert 0 == read_unit(value)


@pytest.mark.parametrize("value", OUTSIDE, ids=range(len(OUTSIDE)))
def test_what_is_not_from_0_to_1_is_refused_before_it_is_computed_with(value: object) -> None:
    assert read_unit(value) is None
    if value is not None:
        with pytest.raises(PlanError, match="epsilon must be a number from 0 to 1"):
            read_options({"epsilon": value})
        with pytest.raises(PlanError, match="epsilon must be a number from 0 to 1"):
            read_options({"epsilon": {"R": value}})


@pytest.mark.parametrize(
    "value",
    [
        "1/3",
        " 1/3 ",
        Fraction(1, 3),
        1 / 3,
        Decimal(1) / Decimal(3),
        "0.3333333333333333",
        json.loads("0.333333333333"),
    ],
)
def test_a_third_stays_a_third(value: object) -> None:
    assert Fraction(1, 3) == read_unit(value)


@given(st.fractions(0, 1))
def test_the_number_that_is_read_is_the_nearest_with_such_a_denominator(value: Fraction) -> None:
    found = read_unit(value)
    assert found is not None
    assert found.denominator <= LARGEST_DENOMINATOR
    assert found == value.limit_denominator(LARGEST_DENOMINATOR)


@given(st.decimals(0, 1, allow_nan=False) | st.floats(0, 1))
def test_decimals_and_floats_are_rounded_by_less_than_a_millionth(value: Decimal | float) -> None:
    found = read_unit(value)
    assert found is not None
    assert abs(found - Fraction(value)) <= Fraction(1, LARGEST_DENOMINATOR)


@pytest.mark.parametrize(
    "value",
    [10**5000, 10**309, 1e19, -1, float("nan"), Decimal("1e16000000"), Decimal("NaN"), "1", True],
    ids=lambda value: type(value).__name__,
)
def test_a_workload_has_numbers_that_can_be_multiplied(value: object) -> None:
    assert read_count(value) is None
    with pytest.raises(PlanError, match=r"workload has .* updates; give a number from 0 to 10\^18"):
        read_options({"workload": {"updates": value}})


def test_a_workload_of_decimals_and_one_that_is_made_already_are_read() -> None:
    assert Workload(0.5, 2.0) == read_options({"workload": {"updates": Decimal("0.5"), "requests": 2}}).workload
    assert Workload(3.0) == read_options({"workload": Workload(3)}).workload
    with pytest.raises(PlanError, match="give a number"):
        read_options({"workload": Workload(10**400)})


def test_a_mapping_is_no_list_of_tables() -> None:
    with pytest.raises(PlanError, match="static must be a table's name or several"):
        read_options({"static": {"R": False}})


@pytest.mark.parametrize("position", [10**50_000, Decimal("1e16000000"), -1], ids=lambda value: type(value).__name__)
def test_a_position_that_is_none_is_refused_in_words(position: object) -> None:
    with ivme.Database() as db, pytest.raises(IvmeError, match="the position of source s is an integer from 0"):
        db.batch("s", position)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", ["decimal(" + "9" * 5000 + ", 2)", "decimal" + " " * 100_000 + "x", "x" * 1_000_000], ids=range(3)
)
def test_a_type_that_is_none_is_refused_in_no_time(kind: str) -> None:
    with ivme.Database() as db, pytest.raises(IvmeError, match="cannot read the type"):
        db.create_table("R", {"a": kind})


def test_statistics_have_a_bound() -> None:
    with pytest.raises(IvmeError, match=r"up to 10\^18"):
        ivme.explain("Q(A) = R(A)", {"R": {"columns": {"a": "int"}, "rows": 10**5000}})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("a", 10**50_000),
        ("b", 10**1_000_000),
        ("c", 10**50_000),
        ("a", Decimal("1e16000000")),
        ("b", Decimal("1e-16000000")),
    ],
    ids=range(5),
)
def test_a_value_of_a_million_digits_is_refused_in_words(column: str, value: object) -> None:
    with ivme.Database() as db:
        db.create_table("R", {"a": "int", "b": "decimal(10, 2)", "c": "float"})
        row = {"a": 1, "b": Decimal(1), "c": 1.0, column: value}
        with pytest.raises(IvmeError, match=f"table R, column {column}") as refused:
            db.insert("R", [row])
        assert "limit" not in str(refused.value)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM R WHERE a = 1e16000000",
        f"SELECT a FROM R WHERE a = {'9' * 100_000}",
        "SELECT a FROM R WHERE b = CAST('1e99999' AS DECIMAL(10, 2))",
        f"SELECT a FROM R WHERE b = CAST(1 AS DECIMAL({'9' * 5000}, 2))",
        f"SELECT a FROM R WHERE {'(' * 2000}a = 1{')' * 2000}",
        f"SELECT a FROM R WHERE {'NOT ' * 2000}a = 1",
        f"Q(A) = R(A, {'9' * 100_000}, C)",
        "Q(A) = R(1e16000000, A, C)",
        "/**/" * 40 + "nothing",
        "SELECT a FROM R WHERE a IN (" + "1, " * 400_000 + "1)",
    ],
    ids=range(10),
)
def test_a_query_that_is_too_large_is_refused_in_words(text: str) -> None:
    with ivme.Database() as db:
        db.create_table("R", {"a": "int", "b": "decimal(10, 2)", "c": "float"})
        with pytest.raises(IvmeError) as refused:
            db.create_view("v", text)
        assert len(str(refused.value)) < 1500


def test_a_fraction_of_thousands_of_digits_is_rounded_to_a_short_one_beside_it() -> None:
    found = read_unit(Fraction(10**5000 // 3, 10**5000))
    assert found is not None
    assert Fraction(1, 3) - Fraction(1, 10**9) < found <= Fraction(1, 3)
    assert found.denominator < 10**100
