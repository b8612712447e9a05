"""A merged Iceberg table equals its view after every batch, with NULL in keys of one and several columns."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.pipeline.document import Place
from ivme.pipeline.model import WEIGHT, Sink

pytest.importorskip("pyiceberg", reason="Iceberg needs the extra ivme[iceberg]")
pytest.importorskip("pyspark")

from ivme.spark.pipeline.iceberg import snapshot_rows
from ivme.spark.pipeline.iceberg_sink import IcebergWriter

_SCHEMA = pa.schema([("city", pa.string()), ("amount", pa.int64()), ("n", pa.int64())])

Rows = dict[tuple[Any, ...], tuple[Any, ...]]


def _changes(there: Rows, width: int, chance: random.Random) -> pa.Table:
    """Some keys get other rows, or none; `there` is kept."""
    changed: list[tuple[tuple[Any, ...], int]] = []
    drawn = {(chance.choice(["a", "b", None]), chance.randrange(3))[:width] for _ in range(chance.randrange(1, 4))}
    for key in sorted(drawn, key=str):
        old = there.pop(key, None)
        if old is not None:
            changed.append(((*key, *old), -1))
        if old is None or chance.random() < 0.6:
            there[key] = tuple(chance.randrange(9) for _ in range(3 - width))
            changed.append(((*key, *there[key]), 1))
    columns = [pa.array([row[i] for row, _ in changed], field.type) for i, field in enumerate(_SCHEMA)]
    rows = pa.Table.from_arrays(columns, schema=_SCHEMA)
    return rows.append_column(WEIGHT, pa.array([weight for _, weight in changed], pa.int64()))


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize(
    ("width", "seed"),
    [(1, 0), (2, 0), *(pytest.param(width, seed, marks=pytest.mark.long) for width in (1, 2) for seed in range(1, 12))],
)
def test_a_merged_table_equals_its_view_after_every_batch(tmp_path: Path, width: int, seed: int) -> None:
    """pyiceberg's delete loses rows for which a condition is unknown, so that none may be."""
    options = (
        ("type", "sql"),
        ("uri", f"sqlite:///{tmp_path}/catalog.db"),
        ("warehouse", f"file://{tmp_path}"),
    )
    sink = Sink("s", "v", "merge", "iceberg", None, Place("p.yml", 1, 1), options, table="out.t")
    writer = IcebergWriter(sink, "app", lambda: tuple(_SCHEMA.names[:width]))
    writer.write(0, _SCHEMA.empty_table())
    there: Rows = {}
    chance = random.Random(seed)
    for batch in range(1, 9 if seed == 0 else 30):
        changes = _changes(there, width, chance)
        writer.write(batch, changes)
        writer.write(batch, changes)  # it has it
        found = [tuple(row.values()) for row in snapshot_rows(options, "out.t", None).to_pylist()]
        assert sorted(((*key, *rest) for key, rest in there.items()), key=str) == sorted(found, key=str)
    assert 29 == writer.last() if seed else 8 == writer.last()
