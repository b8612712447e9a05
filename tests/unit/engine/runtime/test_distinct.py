"""Rows that look the same are one, with all their multiplicity: in Arrow as among Python's values."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.runtime.distinct import added_up, one_each

SCHEMA = pa.schema([("f", pa.float64()), ("d", pa.decimal128(38, 2)), ("s", pa.string()), ("b", pa.bool_())])
rows = st.tuples(
    st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, None]),
    st.sampled_from([Decimal("0.00"), Decimal("1.50"), None]),
    st.sampled_from(["", "a", None]),
    st.sampled_from([True, False, None]),
)


def batch(items: list[tuple[Any, int]]) -> tuple[pa.RecordBatch, Any]:
    columns = [pa.array([row[i] for row, _ in items], field.type) for i, field in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), np.array([count for _, count in items], np.int64)


def comparable(row: Any) -> Any:
    """NaN equals itself here, as it does in a view."""
    return tuple("NaN" if value != value else value for value in row)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(rows, st.integers(-2, 3)), max_size=12), max_size=3))
def test_arrow_adds_up_what_python_does(parts: list[list[tuple[Any, int]]]) -> None:
    found, counts = one_each([batch(part) for part in parts], SCHEMA)
    expected = added_up((comparable(row), count) for part in parts for row, count in part)
    assert found.schema == SCHEMA
    shown = [comparable(row.values()) for row in found.to_pylist()]
    assert len(shown) == len(set(shown))
    assert Counter(expected) == Counter(dict(zip(shown, counts.tolist(), strict=True)))
