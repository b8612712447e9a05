"""Where the texts and the data come from: DuckDB's extensions for TPC-H and TPC-DS, installed beside, used once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp

PACKAGES = ("duckdb==1.5.5", "duckdb-extension-tpch==1.5.5", "duckdb-extension-tpcds==1.5.5")
BUILD = Path(__file__).parents[2] / "build" / "corpora"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The queries of a benchmark by their numbers, and its tables in the types in which ivme keeps them."""

    name: str
    queries: dict[int, str]
    tables: dict[str, pa.Table]

    def read_by(self, number: int) -> set[str]:
        """The tables that a query names."""
        named = {table.name for table in sqlglot.parse_one(self.queries[number], read="duckdb").find_all(exp.Table)}
        return named.intersection(self.tables)


def corpus(name: str, scale: str) -> Corpus:
    """A corpus at a scale factor, generated if it is not there."""
    folder = BUILD / f"{name}-{scale}"
    if not (folder / "queries.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name("generate.py")
        subprocess.run([_python(), str(script), name, scale, str(folder)], check=True)
    texts = json.loads((folder / "queries.json").read_text())
    queries = {int(number): text.strip().rstrip(";") for number, text in texts.items()}
    return Corpus(name, queries, {path.stem: _read(path) for path in sorted(folder.glob("*.parquet"))})


def _python() -> str:
    """The Python that has the extensions; $IVME_CORPORA_PYTHON names one that is there already."""
    given = os.environ.get("IVME_CORPORA_PYTHON")
    if given:
        return given
    folder = BUILD / "environment"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (folder / "done").touch()
    return str(python)


def _read(path: Path) -> pa.Table:
    table = pq.read_table(path)
    fields = [(f.name, pa.int64() if pa.types.is_integer(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def column_type(type_: pa.DataType) -> str:
    """A column's type as `create_table` takes it."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    names = {"int64": "int", "double": "float", "date32[day]": "date", "string": "string", "bool": "bool"}
    return names[str(type_)]
