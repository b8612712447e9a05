"""Wide decimals: their own codes, but for large ones (issue 15, 9)."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pytest

from ivme.engine.codes.decimal_domains import LARGE_DECIMALS
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import native_domains
from ivme.query.types import Type
from tests.databases import BACKENDS, make_database

MIXED = [
    0,
    5,
    -7,
    LARGE_DECIMALS - 1,
    LARGE_DECIMALS,
    -LARGE_DECIMALS,
    1 - LARGE_DECIMALS,
    10**37,
    -(10**37),
    2**64 + 3,
]


def _cents(number: int) -> Decimal:
    return Decimal(number).scaleb(-2, Context(prec=60))


@pytest.fixture(params=BACKENDS)
def domains(request: pytest.FixtureRequest) -> Domains:
    return native_domains() if request.param == "native" else Domains()


def test_only_large_numbers_are_in_the_dictionary(domains: Domains) -> None:
    domain = domains.domain(Type("decimal", 38, 2))
    values = [_cents(number) for number in MIXED]
    codes = [domain.encode_value(value) for value in values]
    assert 5 == len(domains.dictionaries()[domain.type])
    assert values == [domain.decode_value(code) for code in codes]
    assert [n for n in MIXED if abs(n) < LARGE_DECIMALS] == [c for c in codes if c < LARGE_DECIMALS]
    assert codes == [domain.find_value(value) for value in values]
    assert domain.find_value(Decimal(10**36)) is None


def test_arrays_have_the_codes_of_their_values(domains: Domains) -> None:
    domain = domains.domain(Type("decimal", 38, 2))
    values = [None, *(_cents(number) for number in MIXED), None]
    array = pa.array([Decimal(1), *values], type=pa.decimal128(38, 2))[1:]
    codes = domain.encode(array)
    assert [domain.encode_value(value) for value in values] == codes.tolist()
    assert NULL_CODE == codes[0]
    assert array == domain.decode(codes)
    assert codes.tolist() == domain.encode(array.dictionary_encode()).tolist()
    assert array[1:6] == domain.decode(codes[1:6])


@pytest.mark.parametrize("backend", BACKENDS)
def test_large_and_small_decimals_are_compared_by_their_values(backend: str) -> None:
    db = make_database(backend)
    db.create_table("t", {"g": "int", "d": "decimal(38, 2)"})
    view = db.create_view("v", "SELECT g, MIN(d) AS least, MAX(d) AS most, SUM(d) AS s FROM t GROUP BY g")
    there: list[int] = []

    def expected() -> list[tuple[int, Decimal, Decimal, Decimal]]:
        least, most, total = (_cents(each) for each in (min(there), max(there), sum(there)))
        return [(1, least, most, total)]

    for number in MIXED:
        there.append(number)
        db.insert("t", [(1, _cents(number))])
        assert expected() == list(view)
    db.insert("t", [(1, None)])
    while len(there) > 1:
        db.delete("t", [(1, _cents(there.pop(0)))])
        assert expected() == list(view)
    view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_that_pass_from_view_to_view_are_kept_nowhere(backend: str) -> None:
    """20,001 values for 2 map entries, before."""
    db = make_database(backend)
    db.create_table("t", {"g": "int", "d": "decimal(18, 2)"})
    db.create_view("sums", "SELECT g, SUM(d) AS s FROM t GROUP BY g")
    last = db.create_view("last", "SELECT s, COUNT(*) AS n FROM sums GROUP BY s")
    for i in range(200):
        db.insert("t", [(1, Decimal(i))])
    assert [(Decimal(sum(range(200))), 1)] == list(last)
    assert 0 == sum(len(each) for each in db._runtime.domains.dictionaries().values())
