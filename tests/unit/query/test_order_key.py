"""Keys of several values sort as the values do, and give the last one back."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme.query.order_key import last_part, order_key
from ivme.query.types import parse_type

_MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63) + 1, 2**63 - 1),
    "float": st.floats(),
    "decimal(38, 6)": st.decimals(-(10**32) + 1, 10**32 - 1, places=6),
    "string": st.text(st.characters(codec="utf-8")),
    "binary": st.binary(),
    "bool": st.booleans(),
    "date": st.dates(),
    "timestamp": _MOMENTS,
}


def key_of(form: str, *parts: Any) -> bytes:
    key = order_key(form, *parts)
    assert key is not None
    return key


def in_order(value: Any) -> Any:
    """What values sort by: NaN last, one zero."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0) if isinstance(value, float) else value


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_keys_sort_as_values_do_and_give_them_back(type_: str, data: st.DataObject) -> None:
    one, other = data.draw(VALUES[type_]), data.draw(VALUES[type_])
    up, down = ([key_of(form, value, 0) for value in (one, other)] for form in ("aa", "da"))
    expected = (in_order(one) > in_order(other)) - (in_order(one) < in_order(other))
    assert expected == (up[0] > up[1]) - (up[0] < up[1])
    assert -expected == (down[0] > down[1]) - (down[0] < down[1])
    for form in ("aa!", "Ad!", "dD"):
        found = last_part(key_of(form, other, one), form, parse_type(type_))
        assert type(one) is type(found)
        assert in_order(one) == in_order(found)


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_the_first_part_decides_whatever_follows(type_: str, data: st.DataObject) -> None:
    pairs = [(data.draw(VALUES[type_]), data.draw(st.text())) for _ in range(2)]
    keys = [key_of("aa", *pair) for pair in pairs]
    wanted = [(in_order(first), second.encode("utf-8", "surrogatepass")) for first, second in pairs]
    assert (wanted[0] > wanted[1]) == (keys[0] > keys[1])


def test_nulls_come_first_or_last_and_what_must_not_be_null_has_no_key() -> None:
    for letter, first in (("a", True), ("A", False), ("d", True), ("D", False)):
        null, value = key_of(letter, None), key_of(letter, 3)
        assert first == (null < value)
        assert last_part(null, letter, parse_type("int")) is None
    assert order_key("a!a", None, 1) is None
    assert order_key("a!a", 1, None) is not None


def test_integers_and_decimals_compare_with_each_other() -> None:
    assert order_key("a", 1) == order_key("a", Decimal("1.00"))
    assert key_of("a", 2) > key_of("a", Decimal("1.99"))
