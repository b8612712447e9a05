"""Records of the log: framing, checksums, and what a record that cannot be read means."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from ivme.store.files import digest
from ivme.store.record import framed, last_committed, read_record

OWNER = "the identity of a directory"

CONTENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def joined(*records: list[bytes]) -> bytes:
    return b"".join(part for record in records for part in record)


@given(CONTENTS, st.lists(st.binary(max_size=40), max_size=3))
def test_a_record_is_read_as_it_was_written(content: object, bodies: list[bytes]) -> None:
    data = b"before" + joined(framed(OWNER, 7, 5, content, bodies))
    record = read_record(OWNER, memoryview(data), 6)
    assert record is not None
    assert (7, 5, content, b"".join(bodies), len(data)) == (
        record.number,
        record.durable,
        record.content,
        bytes(record.body),
        record.end,
    )


@given(st.data())
def test_a_record_of_which_a_bit_is_wrong_cannot_be_read(data: st.DataObject) -> None:
    whole = joined(framed(OWNER, 7, 5, {"batch": [1, 2]}, [b"rows"]))
    place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    wrong = bytearray(whole)
    wrong[place] ^= 1 << bit
    assert read_record(OWNER, memoryview(bytes(wrong)), 0) is None


def test_a_record_of_an_older_version_has_a_checksum_of_its_bytes() -> None:
    header = struct.pack("<4sIQQQ", b"ivmR", 2, 4, 7, 5)
    older = header + digest(header, b"{}", b"rows") + b"{}rows"
    record = read_record(None, memoryview(older), 0)
    assert record is not None
    assert (7, 5, {}, b"rows") == (record.number, record.durable, record.content, bytes(record.body))
    for place in range(len(older)):
        wrong = bytearray(older)
        wrong[place] ^= 1
        assert read_record(None, memoryview(bytes(wrong)), 0) is None
    assert 7 == last_committed(None, b"torn" + older, 0, 3)


@given(st.integers(0, 66))
def test_a_record_that_ends_early_cannot_be_read(size: int) -> None:
    whole = joined(framed(OWNER, 7, 5, {"batch": [1, 2]}, [b"rows"]))
    assert 67 == len(whole)
    assert read_record(OWNER, memoryview(whole[:size]), 0) is None


def test_only_a_later_record_tells_that_one_was_durable() -> None:
    torn = b"ivmS" + b"\0" * 60
    assert 0 == last_committed(OWNER, torn, 0, 3)
    assert 0 == last_committed(OWNER, torn + joined(framed(OWNER, 4, 2, {})), 0, 3)
    assert 5 == last_committed(OWNER, torn + joined(framed(OWNER, 4, 2, {}), framed(OWNER, 5, 3, {})), 0, 3)


def test_records_of_another_directory_or_version_inside_of_rows_say_nothing() -> None:
    """A binary column may hold a record of any number; its owner is not the directory that it is stored in."""
    header = struct.pack("<4sIQQQ", b"ivmR", 2, 0, 7, 5)
    older = header + digest(header, b"{}") + b"{}"
    others = joined(framed("another directory", 9, 8, {}), framed("", 9, 8, {})) + older
    assert 0 == last_committed(OWNER, b"torn" + others, 0, 3)
    assert read_record(OWNER, memoryview(older), 0) is None


def test_records_inside_of_rows_say_nothing_about_an_earlier_record() -> None:
    """A batch may hold anything as bytes: here a record with a smaller number than the one that is missing."""
    assert 0 == last_committed(OWNER, b"torn" + joined(framed(OWNER, 2, 1, {}, [b"x"])), 0, 3)
