from __future__ import annotations

import datetime
import math
from collections import namedtuple
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest import rows as ingest
from ivme.engine.ingest.row_check import row_check
from ivme.engine.ingest.rows import check_row, to_arrow
from ivme.errors import DataError, SchemaError
from ivme.query.model import Table, table

Row = namedtuple("Row", "a b")
R = table("R", {"a": "int", "B": "string"})
EVERY = table(
    "every",
    {
        "i": "int",
        "f": "float",
        "n": "decimal(6, 2)",
        "s": "string",
        "b": "bool",
        "d": "date",
        "z": "timestamp",
        "x": "binary",
    },
)
ROW = (
    *(1, 0.5, Decimal("1.50"), "é", True),
    *(datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 0, 7), b"\x00"),
)
NULLS = (None,) * len(EVERY.columns)

VALUES: list[st.SearchStrategy[Any]] = [
    *(st.integers(-(2**63) + 1, 2**63 - 1), st.floats(allow_nan=False)),
    st.decimals(-9999, 9999, places=2, allow_nan=False),
    *(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), st.booleans(), st.dates()),
    *(st.datetimes().map(lambda moment: moment.replace(fold=0)), st.binary(max_size=3)),
]
WRONG = st.sampled_from([True, 1.5, "x", b"y", Decimal("0.001"), math.nan, 2**64, datetime.date(2024, 1, 1), [1]])


def outcome(rows: list[Any]) -> Any:
    """The last row as it is kept, or the text of the error."""
    try:
        return to_arrow(rows, EVERY).to_pylist()[-1]
    except DataError as error:
        return str(error)


def many(rows: list[Any]) -> list[Any]:
    """The rows and enough valid ones before them to take the way of long lists."""
    return [NULLS] * (ingest._MOST_ROWS_BY_HAND + 1) + rows


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "x"), (None, None)],
        ((1, "x"), (None, None)),
        [[1, "x"], [None, None]],
        iter([(1, "x"), (None, None)]),
        [{"a": 1, "B": "x"}, {"b": None, "A": None}],
        [Row(1, "x"), {"b": None, "A": None}],
        pa.table({"b": ["x", None], "a": [1, None]}),
        pa.table({"b": pa.array(["x", None], pa.large_string()), "a": pa.array([1, None], pa.int8())}),
        pa.table({"b": pa.array(["x", None]).dictionary_encode(), "a": pa.array([1.0, None])}),
        pa.record_batch({"B": ["x", None], "A": [1, None]}),
        pa.table({"b": ["x", None], "a": [1, None]}).to_reader(),
        pd.DataFrame({"b": ["x", None], "a": [1, None]}),
        pd.DataFrame({"b": pd.Categorical(["x", None]), "a": pd.array([1, None], "Int64")}),
        pd.DataFrame({"b": ["x", math.nan], "a": [1, pd.NA]}, index=[7, 3], dtype=object),
        pl.DataFrame({"b": ["x", None], "a": [1, None]}),
        np.array([[1, "x"], [None, None]], dtype=object),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_come_in_many_forms(rows: Any) -> None:
    found = to_arrow(rows, R)
    assert found.schema == arrow_schema(R)
    assert found.to_pylist() == [{"a": 1, "B": "x"}, {"a": None, "B": None}]


def test_a_spark_dataframe_is_asked_for_arrow() -> None:
    class Frame:
        def toArrow(self) -> pa.Table:
            return pa.table({"a": [1], "b": ["x"]})

    assert to_arrow(Frame(), R).to_pylist() == [{"a": 1, "B": "x"}]


def test_numpy_arrays_have_columns_by_position_or_by_name() -> None:
    pairs = table("P", {"a": "int", "b": "float"})
    wanted = [{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}]
    assert to_arrow(np.array([[1, 2], [3, 4]]), pairs).to_pylist() == wanted
    assert to_arrow(np.array([[1, 2], [3, 4]], dtype=float), pairs).to_pylist() == wanted
    assert to_arrow(np.array([(2, 1), (4, 3)], dtype=[("b", ">i4"), ("a", "u1")]), pairs).to_pylist() == wanted
    days = np.array(["2024-01-02"], "datetime64[D]").reshape(1, 1)
    assert to_arrow(days, table("D", {"d": "timestamp"})).to_pylist() == [{"d": datetime.datetime(2024, 1, 2)}]
    with pytest.raises(DataError, match=r"has the shape \(2, 3\)"):
        to_arrow(np.zeros((2, 3)), pairs)


@pytest.mark.parametrize("rows", [[ROW, NULLS], many([ROW])], ids=["few", "many"])
def test_every_type_is_kept_as_given(rows: list[Any]) -> None:
    found = to_arrow(rows, EVERY)
    assert found.schema == arrow_schema(EVERY)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    for frame in (found.to_pandas(), pl.from_arrow(found), pa.table(found.to_pydict(), schema=found.schema)):
        assert to_arrow(frame, EVERY).equals(found)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*(st.one_of(values, st.none()) for values in VALUES)), max_size=5))
def test_long_and_short_lists_give_the_same(rows: list[Any]) -> None:
    few = to_arrow(rows, EVERY).to_pylist()
    assert to_arrow(many(rows), EVERY).to_pylist()[ingest._MOST_ROWS_BY_HAND + 1 :] == few
    assert [check_row(row, EVERY) for row in rows] == [tuple(row.values()) for row in few]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(ROW) - 1), WRONG)
def test_long_and_short_lists_refuse_the_same(position: int, wrong: Any) -> None:
    row = (*ROW[:position], wrong, *ROW[position + 1 :])
    place = f"table every, column {EVERY.column_names[position]}, rows"
    few, long = outcome([NULLS, row]), outcome(many([row]))
    if isinstance(few, str) and isinstance(long, str):
        assert few.startswith(f"{place}[1]: ")
        assert long.startswith(f"{place}[{ingest._MOST_ROWS_BY_HAND + 1}]: ")
        few, long = few.split(": ", 1)[1], long.split(": ", 1)[1]
    assert few == long


def test_an_arrow_table_that_fits_is_not_copied() -> None:
    data = pa.table({"a": [1, 2], "B": ["x", "y"]})
    found = to_arrow(data, R)
    for name in R.column_names:
        assert [b.address for b in found[name].chunk(0).buffers() if b] == [
            b.address for b in data[name].chunk(0).buffers() if b
        ]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((1, "x"), r"\(1, 'x'\) is one row; wrap it in a list"),
        ({"a": 1, "B": "x"}, "is one row; wrap it in a list"),
        (
            [1, "x"],
            r"rows\[0\] is 1, which is not a row; give each row as a tuple, a dict or a .*, as in \[\(a, B\)\]",
        ),
        ("ab", "'ab' holds no rows"),
        ("ab.cd", "ab.cd does not end in .parquet"),
        (7, "7 holds no rows"),
        ([(1, "x"), (1,)], r"rows\[1\] has 1 value, \(1,\); the table has 2 columns: a, B"),
        ([{"a": 1}], r"rows\[0\]: the column B is missing; give None \(null in JSON\) for NULL"),
        ([{"a": 1, "B": "x", "c": 2}], r"rows\[0\]: there is no column 'c'; the columns are a, B"),
        ([{"a": 1, "B": "x", "b": "y"}], "the column B is given twice"),
        (pd.DataFrame({"a": [1]}), "the column B is missing"),
        (pd.DataFrame([[1, "x"]]), "there is no column 0"),
        (pl.DataFrame({"a": [1], "B": ["x"], "c": [1]}), "there is no column 'c'"),
        (pl.DataFrame({"a": [1], "B": ["x"]}).lazy(), "give what its collect"),
        (pa.table({"a": ["1"], "B": ["x"]}), r"column a, rows\[0\]: '1' is a str, not an int"),
        (pa.table({"a": [True], "B": ["x"]}), r"column a, rows\[0\]: True is a bool, not an int"),
        (
            pa.table({"a": pa.array([1, 2**63], pa.uint64()), "B": ["x", "y"]}),
            r"column a, rows\[1\]: 9223372036854775808 is out of the range",
        ),
        (pa.table({"a": [1, -(2**63)], "B": ["x", "y"]}), r"column a, rows\[1\]: -9223372036854775808 is out of"),
        (pd.DataFrame({"a": [1, 2.5], "B": ["x", "y"]}), r"column a, rows\[1\]: 2.5 is not a whole number"),
        (pd.DataFrame({"a": [1, 2], "B": ["x", 3]}), r"column B, rows\[1\]: 3 is an int, not a string"),
    ],
    ids=range(20),
)
def test_what_does_not_fit_is_named(rows: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason) as caught:
        to_arrow(rows, R)
    assert str(caught.value).startswith("table R")


def refused(data: pa.Array, kind: str) -> str:
    with pytest.raises(DataError) as caught:
        to_arrow(pa.table({"v": data}), table("T", {"v": kind}))
    return str(caught.value).removeprefix("table T, column v, ")


def test_arrow_columns_are_not_coerced() -> None:
    assert refused(pa.array([1.0, math.nan]), "float").startswith("rows[1]: NaN cannot be a value")
    assert refused(pa.array([2**53 + 1]), "float") == "rows[0]: 9007199254740993 is an int that no float holds exactly"
    assert refused(pa.array([0.5]), "decimal(4, 2)").endswith(
        "write it as a decimal.Decimal, or let round_floats=True round it"
    )
    assert (
        refused(pa.array([1, 100]), "decimal(4, 2)")
        == "rows[1]: Decimal('100') has more digits than decimal(4,2) holds"
    )
    assert "rows[0]: Decimal('1.005') has more digits" in refused(pa.array([Decimal("1.005")]), "decimal(4, 2)")
    assert "has a time of day" in refused(pa.array([datetime.datetime(2024, 1, 2, 3)]), "date")
    assert "fractions of a microsecond" in refused(pa.array([1], pa.timestamp("ns")), "timestamp")
    assert "rows[0]" in refused(pa.array([[1]]), "int")
    assert "v" in refused(pa.array([3_000_000], pa.int32()).cast(pa.date32()), "date")


def kept(data: pa.Array, kind: str) -> Any:
    return to_arrow(pa.table({"v": data}), table("T", {"v": kind})).column(0).to_pylist()


def test_arrow_columns_are_widened() -> None:
    midnight = datetime.datetime(2024, 1, 2)
    assert kept(pa.array([1, None], pa.uint8()), "float") == [1.0, None]
    assert kept(pa.array([1, 99]), "decimal(4, 2)") == [Decimal("1.00"), Decimal("99.00")]
    assert kept(pa.array([Decimal("1.500")]), "decimal(4, 2)") == [Decimal("1.50")]
    assert kept(pa.array([Decimal("3")], pa.decimal128(38, 0)), "int") == [3]
    assert kept(pa.array([midnight.date()]), "timestamp") == [midnight]
    assert kept(pa.array([midnight], pa.timestamp("ns")), "date") == [midnight.date()]
    assert kept(pa.array([midnight], pa.timestamp("s", "Europe/Berlin")), "timestamp") == [midnight]
    assert kept(pa.nulls(2), "decimal(4, 2)") == [None, None]
    assert kept(pa.array([2**62]), "float") == [2.0**62]
    assert kept(pa.array([b"ab"], pa.binary(2)), "binary") == [b"ab"]


def test_instants_with_a_time_zone_become_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2024, 1, 1, 2, tzinfo=zone)
    clock = table("T", {"v": "timestamp"})
    for rows in ([(moment,)], [(moment,)] * 50, pd.DataFrame({"v": [moment]})):
        assert to_arrow(rows, clock).column(0)[0].as_py() == datetime.datetime(2024, 1, 1)


def test_pandas_missing_values_are_null() -> None:
    frame = pd.DataFrame({"f": [0.5, math.nan], "z": [pd.Timestamp(2024, 1, 1), pd.NaT], "o": [pd.NaT, None]})
    schema = table("T", {"f": "float", "z": "timestamp", "o": "date"})
    assert to_arrow(frame, schema).to_pylist()[1] == {"f": None, "z": None, "o": None}


@pytest.mark.parametrize("rows", [[(-0.0,)], [(-0.0,)] * 50, pa.table({"f": [-0.0, 1.0]})])
def test_zero_has_one_sign(rows: Any) -> None:
    assert math.copysign(1, to_arrow(rows, table("T", {"f": "float"})).column(0)[0].as_py()) == 1


def test_no_rows_are_a_table_of_none() -> None:
    nothing: list[Any] = []
    for rows in (nothing, (), iter(nothing), pa.table({"a": [], "b": []}), pd.DataFrame({"a": [], "b": []})):
        assert to_arrow(rows, R).equals(arrow_schema(R).empty_table())


def test_a_single_row_is_checked_without_arrow() -> None:
    check = row_check(EVERY)
    assert check(ROW) == ROW
    assert check(list(ROW)) == ROW
    assert check_row({"B": None, "a": 1}, R) == (1, None)
    with pytest.raises(DataError, match=r"table R, column a, rows\[0\]: 'x' is a str, not an int"):
        check_row(("x", "x"), R)
    with pytest.raises(DataError, match=r"rows\[0\] has 3 values"):
        check_row((1, "x", 2), R)


def test_a_table_without_types_takes_no_rows() -> None:
    untyped: Table = table("U", ["a"])
    with pytest.raises(SchemaError, match="column a of table U has no type"):
        to_arrow([(1,)], untyped)


def test_rows_with_a_key_alone_are_told_how_to_delete_by_it() -> None:
    keyed = table("o", {"id": "int", "customer": "int"}, primary_key="id")
    with pytest.raises(DataError, match=r"customer is missing; .*; to delete rows by their primary key, use delete_k"):
        to_arrow([{"id": 1}], keyed)
