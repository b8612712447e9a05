"""Values and rows as a server takes them, and as it answers."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.engine.ingest.files import format_of, names_file, read_path
from ivme.errors import DataError, shown
from ivme.query.sql_text import DIALECT
from ivme.query.sql_types import type_node
from ivme.query.table import References
from ivme.query.types import parse_type
from ivme.serve.values import dumps


def listed_rows(rows: Any) -> list[Any]:
    """Rows as JSON has them: lists, or objects where columns have names."""
    if isinstance(rows, os.PathLike) or (isinstance(rows, str) and names_file(rows)):
        return _file_rows(Path(rows))
    if isinstance(rows, np.ndarray):
        return _objects(rows.dtype.names, rows.tolist()) if rows.dtype.names else rows.tolist()
    if hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    elif hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return _objects(rows.column_names, zip(*map(python_values, rows.columns), strict=True))
    is_one = isinstance(rows, tuple) and rows and not any(isinstance(row, tuple | list | Mapping) for row in rows)
    if isinstance(rows, Mapping) or is_one:
        raise DataError(f"{shown(rows)} is one row; wrap it in a list: [{shown(rows)}]")
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(f"rows are a list of tuples or dicts, or a table; it is {shown(rows)}")
    return [_plain_row(row) for row in rows]


def listed_keys(keys: Any) -> list[Any]:
    """Primary keys as JSON has them: values, lists or objects."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise DataError(f"{shown(keys)} is not a list of keys; wrap it in a list")
    return [_plain_row(key) for key in keys]


def _plain_row(row: Any) -> Any:
    if isinstance(row, Mapping):
        return dict(row)
    if is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in fields(row)}
    return list(row) if isinstance(row, tuple | list | np.ndarray) else row


def _objects(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[Any]:
    """Rows by the names of their columns, which go to the columns of these names."""
    listed = list(names)
    if len({name.lower() for name in listed}) < len(listed):
        raise DataError(f"the rows have a column twice: {', '.join(listed)}")
    return [dict(zip(listed, row, strict=True)) for row in rows]


def _file_rows(path: Path) -> list[Any]:
    """The rows of a file of this machine. Values of CSV are sent as texts, which the server reads by its types."""
    form = format_of(path)
    if form == "parquet":
        return listed_rows(read_path(path, None))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if form == "json":
                return [json.loads(line, parse_float=str) for line in file if line.strip()]
            listed = csv.DictReader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
            return [{name: None if text in ("", "NULL") else text for name, text in row.items()} for row in listed]
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as {form}: {error}") from error


def distinct_rows(data: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The distinct rows of a table in the order of their first copies, and how many copies each has."""
    columns = list(map(python_values, data.columns))
    rows = list(zip(*columns, strict=True)) if columns else [()] * data.num_rows
    first: dict[Any, int] = {}
    for place, row in enumerate(rows):
        first.setdefault(row, place)
    counts = Counter(rows)
    return data.take(list(first.values())), np.array([counts[row] for row in first], np.int64)


def plain_references(references: References | None) -> dict[str, str]:
    """Foreign keys as JSON has them: `{"shop, city": "shops (id, city)"}`."""
    if isinstance(references, Mapping):
        return {key if isinstance(key, str) else ", ".join(key): target for key, target in references.items()}
    return {
        ", ".join(each.columns): f"{each.table} ({', '.join(each.target)})" if each.target else each.table
        for each in references or ()
    }


def read_table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def query_text(parameters: Mapping[str, Any]) -> str:
    """The values of an access request, as the server reads them in a query."""
    pairs = []
    for name, value in parameters.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            plain = json.loads(dumps(each))
            pairs.append((name, plain if isinstance(plain, str) else json.dumps(plain)))
    return f"?{urlencode(pairs)}" if pairs else ""


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sql_type(type_: Any) -> str:
    """A type of a column as CREATE TABLE has it.

    >>> sql_type("int"), sql_type("decimal(8, 2)")
    ('BIGINT', 'DECIMAL(8, 2)')
    """
    return type_node(parse_type(type_)).sql(dialect=DIALECT)
