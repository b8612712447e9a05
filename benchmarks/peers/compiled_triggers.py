"""Triggers in C++ for seven queries of TPC-H: compiled here, and run over a stream.

They take rows one by one, each with all of its columns as they were parsed before the clock starts, and keep what a
query needs in flat hash maps and doubles: no tables, no transactions, no undo, and strings stay where they were read.
There are two sets. Those by hand ("q3") are an expert's, who knows the keys of the tables. Those that are derived
("derived-q3") have the maps that a compiler of triggers derives by taking deltas of deltas (the viewlet transform of
DBToaster), which knows no keys: tables are multisets. Both know that what is deleted was there.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.peers.missing import MissingError
from benchmarks.tpch_stream import Stream

SOURCES = Path(__file__).with_name("compiled")
FLAGS = ("-O3", "-march=native", "-std=c++20")
TABLES = ("region", "nation", "supplier", "customer", "orders", "lineitem")

ANSWERS: Mapping[str, str] = {
    "q1": "ssnnnnnnni",
    "q3": "indi",
    "q4": "si",
    "q5": "sn",
    "q10": "isnnssss",
    "q12": "sii",
    "q18": "siidnn",
}
"""The columns of each answer: strings, integers, dates (as days) and numbers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run took, and its answer."""

    cpu: float
    wall: float
    changes: int
    rows: list[tuple[Any, ...]]


class CompiledTriggers:
    """The program, and the folder that has its input; a context, as both go at the end."""

    def __init__(self) -> None:
        compiler = shutil.which("g++")
        if compiler is None:
            raise MissingError("C++ triggers", "there is no g++")
        self._folder = tempfile.TemporaryDirectory(prefix="triggers")
        self.folder = Path(self._folder.name)
        self.program = self.folder / "triggers"
        command = [compiler, *FLAGS, "-o", str(self.program), str(SOURCES / "main.cpp")]
        subprocess.run(command, check=True)

    def __enter__(self) -> CompiledTriggers:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def write_tables(self, tables: Mapping[str, pa.Table]) -> None:
        """The columns as the program reads them, which is before its clock starts."""
        lines = []
        for name in TABLES:
            for column, values in zip(tables[name].column_names, tables[name].columns, strict=True):
                lines.append(f"{name} {column} {_write(self.folder / column, values.combine_chunks())}")
        (self.folder / "layout").write_text("\n".join(lines))

    def run(self, query: str, stream: Stream) -> Outcome:
        """Takes a stream through the triggers of a query, such as "q3" or "derived-q3"."""
        runs = [
            record
            for batch in stream.batches
            for record in (
                *((TABLES.index(part.table), part.sign, part.start, part.rows) for part in batch),
                (-1, 0, 0, 0),
            )
        ]
        np.array(runs, dtype=np.int64).tofile(self.folder / "runs")
        answer = self.folder / "answer"
        command = [str(self.program), query, str(self.folder), str(answer), str(stream.loaded)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        cpu, wall, changes = done.stdout.split()
        kinds = ANSWERS[query.removeprefix("derived-")]
        rows = [_row(line, kinds) for line in answer.read_text("utf-8").splitlines()]
        return Outcome(float(cpu), float(wall), int(changes), rows)


def _write(path: Path, values: pa.Array) -> str:
    """Writes a column; its kind, as the program knows it."""
    if pa.types.is_string(values.type):
        np.cumsum(pc.binary_length(values).to_numpy(), dtype=np.int64).tofile(path.with_name(f"{path.name}.ends"))
        path.write_bytes("".join(values.to_pylist()).encode())
        return "s"
    if pa.types.is_decimal(values.type):
        values.cast(pa.float64()).to_numpy().tofile(path)
        return "n"
    numbers = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    numbers.to_numpy().astype(np.int64).tofile(path)
    return "i"


def _row(line: str, kinds: str) -> tuple[Any, ...]:
    return tuple(_value(text, kind) for kind, text in zip(kinds, line.split("|"), strict=True))


def _value(text: str, kind: str) -> Any:
    if kind == "d":
        return date(1970, 1, 1) + timedelta(days=int(text))
    return {"s": str, "i": int, "n": float}[kind](text)
