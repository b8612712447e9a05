"""Record batches to codes in one call: the same codes as column by column, and nothing let through that is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme import Database, _kernel
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.ingest.row_batch import Layout, codes_of
from ivme.errors import DataError
from ivme.query.model import Table, table
from tests.databases import make_database

ALL = {
    "i": "int",
    "b": "bool",
    "d": "date",
    "t": "timestamp",
    "f": "float",
    "n": "decimal(15, 2)",
    "s": "string",
    "z": "binary",
}
T = table("T", ALL)

CENTS = st.integers(-(10**15) + 1, 10**15 - 1)
ROW = st.tuples(
    st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | st.dates(),
    st.none() | st.datetimes(),
    st.none() | st.floats(allow_nan=False).filter(lambda x: str(x) != "-0.0"),
    st.none() | CENTS.map(lambda cents: Decimal(cents).scaleb(-2)),
    st.none() | st.text(max_size=20),
    st.none() | st.binary(max_size=20),
)


def record_batch(rows: list[Any], of: Table = T) -> pa.RecordBatch:
    schema = arrow_schema(of)
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def whole(batch: pa.RecordBatch, layout: Layout) -> Any:
    assert layout.encoder is not None
    found = layout.encoder.encode(batch.__arrow_c_array__())
    return None if found is None else [codes.tolist() for codes in found]


@pytest.mark.slow
@given(st.lists(ROW, min_size=1, max_size=80), st.integers(0, 5), st.integers(0, 5))
def test_a_slice_of_a_batch_has_the_codes_that_its_columns_have(rows: list[Any], skipped: int, left_out: int) -> None:
    layout = Layout(T, native_domains())
    part = record_batch(rows).slice(skipped, max(1, len(rows) - skipped - left_out))
    if not part.num_rows:
        return
    expected = [domain.encode(column).tolist() for domain, column in zip(layout.domains, part.columns, strict=True)]
    assert expected == whole(part, layout)
    given_back = codes_of(pa.Table.from_batches([part]), layout)
    assert given_back is not None
    assert expected == [codes.tolist() for codes in given_back if codes is not None]


def test_nulls_have_the_code_of_null_in_every_column() -> None:
    assert [[NULL_CODE]] * len(ALL) == whole(record_batch([(None,) * len(ALL)]), Layout(T, native_domains()))


def test_codes_stay_when_the_batch_is_gone() -> None:
    layout = Layout(T, native_domains())
    batch = record_batch([(i, None, None, None, float(i), None, str(i), None) for i in range(5000)])
    codes = whole(batch, layout)
    del batch
    assert list(range(5000)) == codes[0]
    assert [str(i) for i in range(5000)] == layout.domains[6].values(codes[6])


def single(kind: str) -> tuple[Layout, pa.Schema]:
    of = table("One", {"x": kind})
    return Layout(of, native_domains()), arrow_schema(of)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("int", pa.array([1, -(2**63)])),
        ("date", pa.array([2**30], pa.int32()).cast(pa.date32())),
        ("timestamp", pa.array([2**62]).cast(pa.timestamp("us"))),
        ("float", pa.array([1.0, float("nan")])),
        ("float", pa.array([-0.0])),
    ],
)
def test_a_value_that_no_column_holds_is_left_to_the_long_way(kind: str, array: pa.Array) -> None:
    layout, schema = single(kind)
    batch = pa.RecordBatch.from_arrays([array], schema=schema)
    assert whole(batch, layout) is None


def test_a_number_under_a_null_is_not_looked_at() -> None:
    layout, schema = single("int")
    hidden = pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(np.array([-(2**63)]))])
    assert [[NULL_CODE]] == whole(pa.RecordBatch.from_arrays([hidden], schema=schema), layout)


BAD_UTF8 = [
    b"\x80",
    b"a\xc3",
    b"\xc0\xaf",
    b"\xe0\x9f\xbf",
    b"\xed\xa0\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xe2\x82",
    b"\xff",
]


@pytest.mark.parametrize("text", BAD_UTF8)
def test_bytes_that_are_no_utf8_are_left_to_the_long_way(text: bytes) -> None:
    layout, schema = single("string")
    array = pa.array([b"fine", text]).cast(pa.string(), safe=False)
    assert whole(pa.RecordBatch.from_arrays([array], schema=schema), layout) is None


@given(st.binary(max_size=12))
def test_utf8_is_what_python_takes_for_it(text: bytes) -> None:
    layout, schema = single("string")
    offsets = pa.py_buffer(np.array([0, len(text)], np.int32))
    array = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(text)])
    try:
        text.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert expected == (whole(pa.RecordBatch.from_arrays([array], schema=schema), layout) is not None)


def test_characters_that_two_strings_share_are_in_neither() -> None:
    """The bytes of all strings together are valid, those of each are not."""
    layout, schema = single("string")
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer("é".encode())])
    assert whole(pa.RecordBatch.from_arrays([array], schema=schema), layout) is None


@pytest.mark.parametrize("offsets", [[0, 3, 1, 4], [0, 9, 2, 4], [0, -1, 2, 4]])
def test_offsets_that_do_not_fit_their_text_are_refused_by_name(offsets: list[int]) -> None:
    layout, schema = single("string")
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"abcd")]
    batch = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.string(), 3, buffers)], schema=schema)
    assert codes_of(batch, layout) is None
    db = make_database("native")
    db.create_table("One", {"x": "string"})
    with pytest.raises(DataError):
        db.insert("One", batch)


ALIKE = [(b"xyzwzw", b"xyzw\0\0"), (b"xy\0\0y", b"xy\0\0\0"), (b"abcddef", b"abcdef\0"), (b"\1\2\1", b"\1\2\0")]
"""Strings of one length of which the second, where its buffer ends, must not be taken for the first."""


@pytest.mark.usefixtures("shared_encoding")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["string", "binary"])
@pytest.mark.parametrize(("often", "last"), ALIKE)
def test_a_short_string_at_the_end_of_its_buffer_is_no_other(
    often: bytes, last: bytes, kind: str, threads: int
) -> None:
    texts = [text.decode() if kind == "string" else text for text in [often] * 600 + [last]]
    with Database(threads=threads) as db:
        db.create_table("One", {"k": "int", "x": kind}, primary_key="k")
        view = db.create_view("v", "SELECT x, COUNT(*) AS n FROM One GROUP BY x")
        type_ = pa.string() if kind == "string" else pa.binary()
        db.insert("One", pa.record_batch({"k": pa.array(range(601)), "x": pa.array(texts, type_)}))
        assert {texts[0]: 600, texts[-1]: 1} == dict(view)


BAD_TEXTS: dict[str, tuple[int, int | None]] = {
    "an end before its start": (1, 0),
    "an end behind all": (1, 2**31 - 1),
    "a start before all": (0, -(2**31)),
    "no UTF-8": (0, None),
}
"""Which of a string's two offsets is wrong, and what it is; or none is, and its bytes are wrong."""


@pytest.mark.usefixtures("shared_encoding")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", [1, 31, 32, 33, 64, 255, 511, 512, 598])
@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_new_strings_that_nobody_compares_are_refused_as_all_others_are(bad: str, at: int, threads: int) -> None:
    """Some of them are looked up before all are known to be strings."""
    check_bad_text(bad, at, threads, "SELECT k, COUNT(*) AS n FROM One GROUP BY k")


@pytest.mark.usefixtures("shared_encoding")
@pytest.mark.parametrize("at", [510, 511, 512])
@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_strings_at_the_end_of_a_thread_s_part_are_refused_as_all_others_are(bad: str, at: int) -> None:
    check_bad_text(bad, at, 2, "SELECT k, COUNT(x) AS n FROM One WHERE x <> '' GROUP BY k")


def check_bad_text(bad: str, at: int, threads: int, view: str) -> None:
    """A batch with one bad string is refused, and nothing is left of it."""
    texts = [f"comment {row}".encode() for row in range(600)]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    place, offset = BAD_TEXTS[bad]
    if offset is None:
        texts[at] = b"\xff" * len(texts[at])
    else:
        ends[at + place] = offset
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    array = pa.Array.from_buffers(pa.string(), len(texts), buffers)
    with Database(threads=threads) as db:
        db.create_table("One", {"k": "int", "x": "string"})
        db.create_view("v", view)
        good = pa.table({"k": range(600), "x": [f"first {row}" for row in range(600)]})
        db.insert("One", good)
        with pytest.raises(DataError):
            db.insert("One", pa.RecordBatch.from_arrays([pa.array(range(600)), array], ["k", "x"]))
        db.insert("One", good)
        assert [(1200,)] == list(db.sql("SELECT COUNT(x) AS n FROM One"))
        assert [2] * 600 == [count for _, count in db.view("v")]


def test_a_column_with_a_dictionary_of_its_own_is_left_to_the_long_way() -> None:
    layout, _ = single("int")
    batch = pa.RecordBatch.from_pydict({"x": pa.array([1, 1]).dictionary_encode()})
    assert whole(batch, layout) is None


@pytest.mark.parametrize(
    "other",
    [
        pa.schema([("y", pa.int64())]),
        pa.schema([("x", pa.int32())]),
        pa.schema([("x", pa.int64()), ("y", pa.int64())]),
        pa.schema([("x", pa.timestamp("us", "UTC"))]),
    ],
)
def test_other_columns_are_left_to_the_long_way(other: pa.Schema) -> None:
    layout, _ = single("int")
    arrays = [pa.array([1]).cast(field.type) for field in other]
    assert whole(pa.RecordBatch.from_arrays(arrays, schema=other), layout) is None


def test_a_wide_decimal_leaves_its_table_to_the_long_way() -> None:
    assert Layout(table("W", {"a": "int", "w": "decimal(30, 2)"}), native_domains()).encoder is None


def test_what_is_no_column_of_codes_is_refused() -> None:
    with pytest.raises(ValueError, match="format n"):
        _kernel.ArrowColumns([("x", "n", 0, 0, None)])
    with pytest.raises(ValueError, match="dictionary"):
        _kernel.ArrowColumns([("x", "u", 0, 0, None)])


def test_capsules_of_another_kind_are_refused() -> None:
    layout, _ = single("int")
    schema, array = pa.RecordBatch.from_pydict({"x": [1]}).__arrow_c_array__()
    with pytest.raises(ValueError, match="PyCapsule"):
        layout.encoder.encode((array, schema))  # type: ignore[union-attr]


def test_dates_and_times_at_the_ends_of_the_calendar_pass() -> None:
    of = table("Ends", {"d": "date", "t": "timestamp"})
    rows = [(datetime.date.min, datetime.datetime.min), (datetime.date.max, datetime.datetime.max)]
    assert whole(record_batch(rows, of), Layout(of, native_domains())) is not None
