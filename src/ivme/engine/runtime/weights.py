"""The weights of rows as users give them: one number for all, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ivme.engine.backend import Codes
from ivme.errors import DataError


def read_weights(weights: Any, rows: int, table: str) -> Codes:
    """The weights of a batch's rows as 64-bit integers; one number stands for all."""
    if type(weights) is int:
        if abs(weights) < 2**63:
            return np.full(rows, weights, dtype=np.int64)
        weights = np.full(rows, weights)
    given = np.asarray(weights if isinstance(weights, np.ndarray) else _sequence(weights))
    if given.shape != (rows,):
        raise DataError(
            f"{rows} rows for table {table} come with weights of shape {given.shape}; give one for each row"
        )
    if rows and any(isinstance(weight, bool) or not isinstance(weight, int) for weight in _odd(given)):
        raise DataError(f"the weights for table {table} are not all integers")
    if rows and any(not -(2**63) < weight < 2**63 for weight in _odd(given)):
        raise DataError(f"the weights for table {table} do not fit 64 bits")
    return given.astype(np.int64)


def _odd(weights: np.ndarray[Any, Any]) -> list[Any]:
    """The weights as Python values, unless they are 64-bit integers or fewer anyway."""
    return [] if weights.dtype.kind == "i" and weights.min() > -(2**63) else list(weights.tolist())


def _sequence(weights: Any) -> Sequence[Any]:
    try:
        return list(weights.to_pylist() if hasattr(weights, "to_pylist") else weights)
    except TypeError:
        raise DataError(f"weights are a list of integers, not {type(weights).__name__}") from None
