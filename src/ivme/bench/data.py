"""Tables to measure a view on: the user's own files, or rows made with a few hubs and many leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ivme.errors import SchemaError
from ivme.query.model import Table
from ivme.query.parse import parse

READERS = {".csv": pyarrow.csv.read_csv, ".parquet": pyarrow.parquet.read_table}
KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_integer, "int"),
    (pa.types.is_floating, "float"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_binary, "binary"),
)
SKEW = 3
"""Values are the n-th part of u^3 for uniform u: the value of rank k has about k^(-2/3) of the rows."""


def read_folder(folder: Path) -> dict[str, pa.Table]:
    """A table for each CSV or Parquet file, under the file's name."""
    files = sorted(folder.glob("*")) if folder.is_dir() else []
    found = {path.stem: _read(path) for path in files if path.suffix.lower() in READERS}
    if not found:
        raise SchemaError(f"{folder} has no tables; put one .csv or .parquet file for each table of the query there")
    return found


def _read(path: Path) -> pa.Table:
    try:
        return READERS[path.suffix.lower()](str(path))
    except (OSError, pa.ArrowInvalid) as error:
        raise SchemaError(f"{path} cannot be read: {error}") from error


def made_for(query: str, rows: int, seed: int = 1) -> dict[str, pa.Table]:
    """Skewed integers for each table that the query's text names, `rows` in all."""
    tables = parse(query, ()).tables
    rng = np.random.default_rng(seed)
    return {table.name: _made(table, max(1, rows // len(tables)), rng) for table in tables}


def _made(table: Table, rows: int, rng: np.random.Generator) -> pa.Table:
    drawn = (rows * rng.random((rows, len(table.columns))) ** SKEW).astype(np.int64)
    distinct = np.unique(drawn, axis=0)
    return pa.table(dict(zip(table.column_names, distinct.T, strict=True)))


def ivme_types(schema: pa.Schema) -> dict[str, str]:
    """The columns of a file as a table declares them."""
    return {field.name: _type_name(field) for field in schema}


def _type_name(field: pa.Field) -> str:
    kind = field.type
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    for test, name in KINDS:
        if test(kind):
            return name
    raise SchemaError(f"column {field.name} has the type {kind}, which no table of ivme can hold; cast or drop it")
