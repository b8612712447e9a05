from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.domains import FIRST_CODE, NULL_CODE, Domain, Domains
from ivme.errors import DataError
from ivme.query.types import parse_type
from tests.example_counts import examples

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "float": st.floats(allow_nan=False).map(lambda number: number + 0.0),
    "decimal(18,4)": st.decimals(-(10**13), 10**13, places=4, allow_nan=False).map(lambda d: d if d else abs(d)),
    "decimal(30,4)": st.decimals(-(10**20), 10**20, places=4, allow_nan=False).map(lambda d: d if d else abs(d)),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes().map(lambda moment: moment.replace(fold=0)),
    "binary": st.binary(max_size=5),
}


def domain(text: str) -> Domain:
    return Domains().domain(parse_type(text))


def order(value: Any) -> Any:
    """Strings in the order of their UTF-8, NULL before everything."""
    return (value is not None, value.encode() if isinstance(value, str) else value)


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@pytest.mark.parametrize("text", VALUES)
@given(data=st.data())
def test_codes_stand_for_values_one_to_one_and_in_order(text: str, data: Any) -> None:
    values = data.draw(st.lists(st.one_of(VALUES[text], VALUES[text], st.none()), max_size=8))
    codes_of = domain(text)
    codes = codes_of.encode(pa.array(values, arrow_type(parse_type(text))))
    assert codes.dtype == np.int64
    assert codes_of.decode(codes).to_pylist() == values
    assert codes_of.decode(codes).type == codes_of.arrow_type
    for value, code in zip(values, codes.tolist(), strict=True):
        assert codes_of.encode_value(value) == codes_of.find_value(value) == code
        assert repr(codes_of.decode_value(code)) == repr(value)
    by_key = sorted(codes.tolist(), key=codes_of.sort_key)
    assert [codes_of.decode_value(code) for code in by_key] == [
        value for _, value in sorted((order(value), value) for value in values)
    ] or not values
    if codes_of.orders_by_code:
        assert by_key == sorted(codes.tolist())


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@pytest.mark.parametrize("text", VALUES)
@given(data=st.data())
def test_slices_and_chunks_have_the_codes_of_their_values(text: str, data: Any) -> None:
    values = data.draw(st.lists(st.one_of(VALUES[text], VALUES[text], st.none()), min_size=3, max_size=8))
    codes_of = domain(text)
    array = pa.array(values, codes_of.arrow_type)
    whole = codes_of.encode(array).tolist()
    assert codes_of.encode(array[1:]).tolist() == whole[1:]
    assert codes_of.encode(pa.chunked_array([array[1:], array[:1]])).tolist() == whole[1:] + whole[:1]
    assert codes_of.decode(codes_of.encode(array)[::2]).to_pylist() == values[::2]


@pytest.mark.parametrize("text", VALUES)
def test_nothing_has_no_codes(text: str) -> None:
    codes_of = domain(text)
    assert codes_of.encode(pa.array([], codes_of.arrow_type)).tolist() == []
    assert codes_of.encode(pa.chunked_array([], codes_of.arrow_type)).tolist() == []
    assert codes_of.encode(pa.array([None, None], codes_of.arrow_type)).tolist() == [NULL_CODE] * 2
    assert len(codes_of.decode(np.array([], dtype=np.int64))) == 0


def test_ints_without_nulls_are_not_copied() -> None:
    array = pa.array(np.arange(10))
    assert np.shares_memory(domain("int").encode(array), array.to_numpy())


def test_a_dictionary_gives_a_value_one_code() -> None:
    strings = domain("string")
    first = strings.encode(pa.array(["a", "b", "a"])).tolist()
    assert first == [FIRST_CODE, FIRST_CODE + 1, FIRST_CODE]
    assert strings.encode(pa.array(["c", "b"]).dictionary_encode()).tolist() == [FIRST_CODE + 2, first[1]]
    assert strings.find_value("d") is None
    assert strings.encode_value("d") == FIRST_CODE + 3


def test_a_type_has_one_domain() -> None:
    domains = Domains()
    assert domains.domain(parse_type("string")) is domains.domain(parse_type("text"))
    assert domains.domain(parse_type("decimal(20,2)")) is not domains.domain(parse_type("decimal(22,2)"))


def test_zero_has_one_code() -> None:
    floats = domain("float")
    assert floats.encode(pa.array([0.0, -0.0])).tolist() == [floats.encode_value(-0.0)] * 2
    assert math.copysign(1, floats.decode_value(floats.encode_value(-0.0))) == 1


def test_columns_that_join_are_encoded_in_the_common_type() -> None:
    narrow = pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2))
    for text in ("decimal(12,4)", "decimal(30,4)"):
        decimals = domain(text)
        assert decimals.encode(narrow).tolist() == [decimals.find_value(Decimal("1.5")), decimals.find_value(2)]
    ints = pa.array([2, None])
    assert domain("float").encode(ints).tolist() == [domain("float").encode_value(2.0), NULL_CODE]
    assert domain("decimal(18,2)").encode(ints).tolist() == [200, NULL_CODE]
    assert domain("timestamp").encode(pa.array([datetime.date(1970, 1, 2)])).tolist() == [86_400_000_000]
    with pytest.raises(DataError, match="has no codes of type int"):
        domain("int").encode(pa.array(["x"]))


def test_instants_with_a_time_zone_are_their_utc_time() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = domain("timestamp")
    assert moments.encode_value(datetime.datetime(1970, 1, 1, 2, tzinfo=zone)) == 0
    assert moments.encode_value(datetime.datetime(1970, 1, 1, 2)) == 7_200_000_000


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("int", True, "True is a bool, not an int"),
        ("int", "1", "'1' is a str, not an int"),
        ("int", 1.5, "1.5 is not a whole number"),
        ("int", -(2**63), "out of the range of int"),
        ("float", math.nan, "NaN cannot be a value"),
        ("float", 2**53 + 1, "no float holds exactly"),
        ("float", Decimal(1), "is a Decimal, not a float"),
        ("decimal(4,2)", Decimal("1.005"), "has more digits than"),
        ("decimal(4,2)", Decimal("100"), "has more digits than"),
        ("decimal(4,2)", Decimal("NaN"), "not a number that decimal"),
        ("decimal(4,2)", Decimal("1E+999"), "has more digits than"),
        ("decimal(4,2)", 0.5, "write it as a decimal.Decimal, or let round_floats=True round it"),
        ("string", b"x", "is a bytes, not a string"),
        ("string", "\ud800", "lone surrogate"),
        ("bool", 1, "1 is an int, not a bool"),
        ("date", datetime.datetime(2024, 1, 1, 1), "has a time of day"),
        ("date", "2024-01-01", "is a str, not a date; write it as a datetime.date"),
        ("timestamp", "2024-01-01", "is a str, not a timestamp; write it as a datetime.datetime"),
        ("timestamp", 0, "is an int, not a timestamp"),
        ("timestamp", np.datetime64("2024-01-01T00:00:00.000000001"), "fractions of a microsecond"),
        ("binary", "x", "is a str, not bytes"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, value: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason) as caught:
        domain(text).encode_value(value)
    assert text in str(caught.value)


def test_a_value_that_the_type_does_not_hold_is_not_found() -> None:
    assert domain("int").find_value(2**70) is None
    assert domain("decimal(4,2)").find_value(Decimal("1.005")) is None
    assert domain("float").find_value(math.nan) is None
    with pytest.raises(DataError, match="'x' is a str, not an int"):
        domain("int").find_value("x")


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("int", np.int32(3), 3),
        ("int", 3.0, 3),
        ("int", Decimal("3.00"), 3),
        ("float", np.float32(0.5), 0.5),
        ("float", 3, 3.0),
        ("decimal(4,2)", 3, Decimal("3.00")),
        ("decimal(4,2)", Decimal("3.0000"), Decimal("3.00")),
        ("string", np.str_("x"), "x"),
        ("bool", np.bool_(True), True),
        ("date", np.datetime64("2024-01-02"), datetime.date(2024, 1, 2)),
        ("date", datetime.datetime(2024, 1, 2), datetime.date(2024, 1, 2)),
        ("timestamp", np.datetime64("2024-01-02T03", "h"), datetime.datetime(2024, 1, 2, 3)),
        ("timestamp", datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2)),
        ("binary", bytearray(b"x"), b"x"),
    ],
)
def test_a_value_that_is_the_same_has_the_same_code(text: str, value: Any, same: Any) -> None:
    codes_of = domain(text)
    assert codes_of.encode_value(value) == codes_of.encode_value(same)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([-(2**63)]),
        pa.array([3_000_000], pa.int32()).cast(pa.date32()),
        pa.array([2**62]).cast(pa.timestamp("us")),
        pa.array([1.0, math.nan]),
        pa.array([b"\xff"]).cast(pa.string(), safe=False),
    ],
)
def test_what_no_column_holds_has_no_code(array: pa.Array) -> None:
    kinds = {pa.int64(): "int", pa.date32(): "date", pa.timestamp("us"): "timestamp", pa.float64(): "float"}
    with pytest.raises(DataError):
        domain(kinds.get(array.type, "string")).encode(array)
