"""Weights, and the life of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.engine.runtime.weights import read_weights
from ivme.errors import DataError, PlanError, UnknownNameError
from tests.databases import make_database


@pytest.mark.parametrize(
    "weights", [[1, -2], (1, -2), np.array([1, -2], np.int8), pa.array([1, -2]), pa.chunked_array([[1], [-2]])]
)
def test_weights_are_taken_in_every_form(weights: Any) -> None:
    found = read_weights(weights, 2, "R")
    assert found.tolist() == [1, -2]
    assert found.dtype == np.dtype(np.int64)


def test_one_weight_stands_for_all_rows() -> None:
    assert read_weights(-3, 2, "R").tolist() == [-3, -3]
    assert read_weights(7, 0, "R").tolist() == []
    assert read_weights([], 0, "R").tolist() == []


@pytest.mark.parametrize(
    "weights",
    [
        [1],
        [1, 2, 3],
        [1.0, 2.0],
        [1, None],
        [1, "2"],
        [True, False],
        True,
        2**63,
        [2**63, 0],
        np.array([2**63, 0], np.uint64),
        np.array([-(2**63), 0]),
        object(),
        None,
    ],
)
def test_weights_that_are_no_64_bit_integers_one_for_each_row_are_refused(weights: Any) -> None:
    with pytest.raises(DataError, match=r"weights"):
        read_weights(weights, 2, "R")


def test_a_batch_is_applied_when_its_block_ends_and_once_only() -> None:
    db = make_database("pure")
    db.create_table("R", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM R")
    batch = db.batch()
    with batch:
        batch.insert("R", [(1,)])
        assert list(view) == []
    with batch:
        pass
    assert list(view) == [(1,)]
    with pytest.raises(PlanError, match="over"):
        batch.delete("R", [(1,)])


def test_a_table_that_is_dropped_while_a_batch_is_collected_is_named() -> None:
    db = make_database("pure")
    db.create_table("R", {"a": "int"})
    batch = db.batch().begin()
    batch.insert("R", [(1,)])
    db.drop_table("R")
    with pytest.raises(UnknownNameError, match="no table R"), batch:
        pass
