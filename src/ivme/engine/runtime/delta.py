"""The change of a view's rows in one batch, as those who follow the view get it: decoded when it is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import Changed

Row = tuple[Any, ...]


class Delta(Mapping[Row, int]):
    """By how much the multiplicity of each row changed: a mapping, which is also there as columns.

    The columns are those of a row, behind the values of parameters. Whoever takes them by `to_arrow` and `weights` is
    spared a Python object for each value.
    """

    __slots__ = ("_changed", "_rows")

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self._rows: dict[Row, int] | None = None

    @property
    def weights(self) -> Codes:
        """The changes of multiplicities, in the order of the rows."""
        return self._changed.weights

    def to_arrow(self) -> pa.Table:
        """The rows that changed, each once, in the order of `weights`."""
        return self._changed.data

    def __len__(self) -> int:
        return len(self._changed.weights)

    def __getitem__(self, row: Row) -> int:
        return self._decoded()[row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._decoded())

    def __repr__(self) -> str:
        return repr(self._decoded())

    def _decoded(self) -> dict[Row, int]:
        if self._rows is None:
            self._rows = dict(zip(self._changed.rows(), self._changed.weights.tolist(), strict=True))
        return self._rows
