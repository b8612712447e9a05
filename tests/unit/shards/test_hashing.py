"""Hashes are the same in every process and at any time, and spread values evenly."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.shards.hashing import coordinates, hash_column

COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "int": ([1, -1, None, 2**62], pa.int64()),
    "float": ([0.5, -1e300, None, float("inf")], pa.float64()),
    "string": (["", "żółw", None, "x" * 1000], pa.string()),
    "bool": ([True, False, None, True], pa.bool_()),
    "date": ([datetime.date(1, 1, 1), None, datetime.date(9999, 1, 1), datetime.date(2020, 2, 2)], pa.date32()),
    "timestamp": ([datetime.datetime(2020, 1, 1), None], pa.timestamp("us")),
    "decimal": ([Decimal("1.50"), None, Decimal("-99.99")], pa.decimal128(10, 2)),
    "binary": ([b"", b"\0", None], pa.binary()),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_equal_values_have_equal_hashes_and_others_do_not(kind: str) -> None:
    values, type_ = COLUMNS[kind]
    twice = hash_column(pa.chunked_array([pa.array(values, type_), pa.array(values, type_)]))
    first, second = twice[: len(values)], twice[len(values) :]
    assert first.tolist() == second.tolist()
    assert len(set(values)) == len(set(first.tolist()))


@pytest.mark.slow
def test_another_process_gets_the_same_hashes() -> None:
    program = (
        "import pyarrow as pa; from ivme.shards.hashing import hash_column, coordinates\n"
        "h = hash_column(pa.array(['a', 'b', None])); print(h.tolist(), coordinates(h, 'X', 7).tolist())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    here = hash_column(pa.array(["a", "b", None]))
    assert f"{here.tolist()} {coordinates(here, 'X', 7).tolist()}" == other


def test_hashes_are_what_they_were_when_the_first_checkpoint_was_written() -> None:
    """Stored state depends on these numbers, the first that SplitMix64 gives for the seeds 1 and 2."""
    assert [0x910A2DEC89025CC1, 0x975835DE1C9756CE] == hash_column(pa.array([1, 2])).tolist()


def test_values_are_spread_evenly_in_each_dimension_and_independently() -> None:
    hashes = hash_column(pa.array(range(40_000)))
    a, b = coordinates(hashes, "A", 4), coordinates(hashes, "B", 4)
    cells = np.bincount(a * 4 + b, minlength=16)
    assert 40_000 / 16 * 0.9 < cells.min()
    assert cells.max() < 40_000 / 16 * 1.1
