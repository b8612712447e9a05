"""TPC-H's tables as streams of changes: all rows interleaved, or orders that go and come again with their lines.

A stream is a list of batches, each a list of `Part`s: runs of rows of one table that are inserted or deleted. The first
`loaded` batches are not timed. What a system is given is made of the parts before the clock starts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class Part(NamedTuple):
    """Rows of a table that are inserted (sign 1) or deleted (-1)."""

    table: str
    sign: int
    start: int
    rows: int


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches of changes, of which the first `loaded` are not timed."""

    batches: list[list[Part]]
    loaded: int = 0

    @property
    def timed(self) -> list[list[Part]]:
        return self.batches[self.loaded :]

    @property
    def changes(self) -> int:
        """The rows that are timed."""
        return sum(part.rows for batch in self.timed for part in batch)


def generated(scale: str, directory: Path) -> Path:
    """The directory with the tables as Parquet files, made if they are not there."""
    made = directory / f"sf{scale}"
    if not (made / "lineitem.parquet").exists():
        beside = Path(sys.executable).parent / "tpchgen-cli"
        program = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
        if program is None:
            raise SystemExit("tpchgen-cli is missing; install it with: pip install tpchgen-cli")
        made.mkdir(parents=True, exist_ok=True)
        command = [program, "parquet", "--scale-factor", scale, "--output-dir", str(made)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return made


def read(directory: Path, declared: Mapping[str, Mapping[str, str]]) -> dict[str, pa.Table]:
    """The tables with the columns that are declared, in the types in which they are kept."""
    tables = {}
    for name, columns in declared.items():
        table = pq.read_table(directory / f"{name}.parquet", columns=list(columns))
        fields = [
            (c, pa.string() if pa.types.is_string_view(t) or pa.types.is_large_string(t) else t)
            for c, t in zip(table.schema.names, table.schema.types, strict=True)
        ]
        fields = [(c, pa.int64() if pa.types.is_integer(t) else t) for c, t in fields]
        tables[name] = table.cast(pa.schema(fields)).combine_chunks()
    return tables


def stream(tables: dict[str, pa.Table], size: int) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
    """The rows of all tables, interleaved in proportion, in batches of `size` rows."""
    columns = {name: table.to_batches()[0] for name, table in tables.items()}
    for batch in interleaved({name: (0, table.num_rows) for name, table in tables.items()}, size):
        yield [(part.table, columns[part.table].slice(part.start, part.rows)) for part in batch]


def interleaved(ranges: Mapping[str, tuple[int, int]], size: int) -> list[list[Part]]:
    """The rows of these ranges in batches of `size`: each comes when its share has come, so that all end together.

    So a batch may have a row more or less; one of a single row has just one.
    """
    counts = {name: end - start for name, (start, end) in ranges.items()}
    total = sum(counts.values())
    edges = np.arange(0, total + size, size).clip(max=total)
    cuts = {name: (edges * count) // total + ranges[name][0] for name, count in counts.items()}
    batches = [
        [Part(name, 1, int(cut[i]), int(cut[i + 1] - cut[i])) for name, cut in cuts.items() if cut[i + 1] > cut[i]]
        for i in range(len(edges) - 1)
    ]
    return [[part] for batch in batches for part in batch] if size == 1 else batches


def inserts(tables: Mapping[str, pa.Table], size: int, most: int | None = None) -> Stream:
    """All rows; with `most`, the stream's last so many are timed, and those before them are one batch."""
    rows = {name: table.num_rows for name, table in tables.items()}
    total = sum(rows.values())
    if most is None or most >= total:
        return Stream(interleaved({name: (0, count) for name, count in rows.items()}, size))
    cut = {name: count - max(1, count * most // total) for name, count in rows.items()}
    first = [Part(name, 1, 0, count) for name, count in cut.items() if count]
    return Stream([first, *interleaved({name: (cut[name], rows[name]) for name in rows}, size)], 1)


def refreshes(tables: Mapping[str, pa.Table], size: int, most: int) -> Stream:
    """Over all rows, batches of orders that go with their lines (RF2) and others in which they come again (RF1)."""
    whole = [Part(name, 1, 0, table.num_rows) for name, table in tables.items()]
    changing = {name: tables[name].num_rows for name in ("orders", "lineitem") if name in tables}
    total = sum(changing.values())
    ranges = {name: (0, max(1, min(count, count * (most // 2) // total))) for name, count in changing.items()}
    batches = [whole]
    for batch in interleaved(ranges, size):
        batches += [[part._replace(sign=sign) for part in batch] for sign in (-1, 1)]
    return Stream(batches, 1)
