"""Strings and bytes by code, from Python lists and from Arrow's buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivme._kernel import NULL, Dictionary


@given(st.lists(st.none() | st.text(st.characters(), max_size=20)))
def test_strings_come_back_and_equal_strings_have_one_code(values: list[str | None]) -> None:
    strings = Dictionary(7)
    codes = strings.encode(values)
    assert values == strings.decode(codes)
    assert codes.tolist() == strings.encode(values).tolist() == [strings.find(value) for value in values]
    assert len({value for value in values if value is not None}) == len(strings)


def test_codes_count_from_the_base() -> None:
    strings = Dictionary(7, 100)
    assert strings.encode(["a", "b", "a", None]).tolist() == [100, 101, 100, NULL]
    assert strings.find("c") is None
    assert strings.encode_one("c") == 102
    with pytest.raises(KeyError):
        strings.decode_one(103)


def test_bytes_are_kept_apart_from_strings() -> None:
    binary = Dictionary(7, binary=True)
    assert binary.decode(binary.encode([b"\x00\xff", b""])) == [b"\x00\xff", b""]
    with pytest.raises(TypeError):
        binary.encode(["text"])
    with pytest.raises(TypeError):
        Dictionary(7).encode([b"bytes"])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_arrow_buffers_give_the_same_codes_as_lists(kind: Any) -> None:
    values = ["x", None, "yy", "", "x", "zzz", None, "yy", "é", "x"]
    array = pa.array(values, kind)[2:]
    validity, offsets, data = array.buffers()
    wide = np.dtype(np.int64 if kind == pa.large_string() else np.int32)
    starts = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
    bits = np.frombuffer(validity, np.uint8)
    strings = Dictionary(3)
    codes = strings.encode_arrow(starts, np.frombuffer(data, np.uint8), bits, array.offset)
    assert values[2:] == strings.decode(codes)
    assert codes.tolist() == strings.encode(values[2:]).tolist()
    ends, text = strings.decode_arrow(codes)
    decoded = pa.LargeStringArray.from_buffers(len(codes), pa.py_buffer(ends), pa.py_buffer(text)).to_pylist()
    assert [value or "" for value in values[2:]] == decoded


def test_offsets_that_leave_their_data_are_refused() -> None:
    with pytest.raises(ValueError, match="offsets"):
        Dictionary(3).encode_arrow(np.array([0, 5], np.int32), np.zeros(3, np.uint8))
