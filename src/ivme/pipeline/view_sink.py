"""A sink of changes as the followers of a view read it: its batches, one after the other, Parquet or Delta."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ivme.pipeline.journal import numbered
from ivme.pipeline.model import BATCH


class ViewSink:
    """The folder that a pipeline writes the changes of a view to."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def batches(self) -> list[int]:
        """The batches that are there whole. A Delta table has one batch a version, so the newest is all that counts."""
        if self._is_delta():
            from deltalake import DeltaTable

            found = DeltaTable(str(self._path)).to_pyarrow_dataset().to_table([BATCH]).column(BATCH)
            return sorted(pc.unique(found).to_pylist())
        names = [path.name for path in self._path.iterdir()] if self._path.is_dir() else []
        return sorted(numbered(names, f"{BATCH}="))

    def read(self, first: int, last: int) -> pa.Table:
        """The changes of some batches, with their weights and the numbers of the batches."""
        return self._dataset().to_table(filter=(pc.field(BATCH) >= first) & (pc.field(BATCH) <= last))

    def schema(self) -> pa.Schema:
        """The columns of the view, the weight and the batch."""
        return self._dataset().schema.remove_metadata()

    def _is_delta(self) -> bool:
        return (self._path / "_delta_log").is_dir()

    def _dataset(self) -> ds.Dataset:
        if self._is_delta():
            from deltalake import DeltaTable

            return DeltaTable(str(self._path)).to_pyarrow_dataset()
        partitioning = ds.partitioning(pa.schema([(BATCH, pa.int64())]), flavor="hive")
        return ds.dataset(self._path, format="parquet", partitioning=partitioning)
