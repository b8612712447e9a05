"""Questions and answers go over the wire and come back as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ivme.errors import SparkError
from ivme.shards.message import Message, as_stream, from_stream, pack, unpack

TABLES = (pa.table({"a": [1, None], "b": ["x", "y"]}), pa.table({"#": [7]}), pa.table({"c": pa.array([], pa.int64())}))


@pytest.mark.parametrize("count", range(4))
def test_an_answer_with_any_number_of_tables_arrives_as_it_was(count: int) -> None:
    sent = Message({"op": "parts", "partial": ["v", "w"]}, TABLES[:count])
    assert sent == from_stream(as_stream(sent))


@pytest.mark.parametrize("count", range(4))
def test_a_question_with_any_number_of_tables_arrives_as_it_was(count: int) -> None:
    sent = Message({"op": "rows", "step": 3}, TABLES[:count])
    assert sent == unpack(pack(sent))


def test_bytes_that_are_no_question_are_refused() -> None:
    with pytest.raises(SparkError, match="not one of ours"):
        unpack(b"hello")
