"""Rows in files: Parquet, CSV and JSON (one object a line), by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest.text_columns import decimals, timestamps, with_decimals, with_rounded, with_timestamps
from ivme.errors import DataError
from ivme.query.model import Table

_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json"}
_ENDINGS |= {".ndjson": "json"}


def names_file(text: str) -> bool:
    """Whether a text ends as the name of a file of rows does."""
    return Path(text).suffix.lower() in _ENDINGS


KINDS = ".parquet, .csv, .tsv, .json or .jsonl"
"""The endings of files of rows, as messages have them."""


def format_of(path: Any, form: str | None = None) -> str:
    """The format of a file, by its name unless it is said."""
    found = form or _ENDINGS.get(Path(path).suffix.lower())
    if found not in ("parquet", "csv", "json"):
        raise DataError(other_file(path))
    return found


def other_file(path: Any) -> str:
    """What to do about a path that does not end as a file of rows does."""
    if Path(path).is_dir():
        return f"{path} is a folder; give pyarrow.dataset.dataset({str(path)!r}), or its files one by one"
    return (
        f"{path} does not end in {KINDS}, so its format is not known: in COPY say (FORMAT csv); or read it by pandas, "
        "polars or pyarrow, and give what they return"
    )


def read_path(
    path: Any,
    table: Table | None,
    form: str | None = None,
    options: Mapping[str, object] | None = None,
    *,
    round_floats: bool = False,
) -> pa.Table:
    """The rows of a file, by the columns of a table if one is given: in its order, and in CSV and JSON in its types.

    With `round_floats`, numbers with more digits than a column of decimals has are rounded.
    """
    form = format_of(path, form)
    schema = None if table is None else arrow_schema(table)
    try:
        data = _read(path, schema, form, options or {}, round_floats)
    except FileNotFoundError:
        several = "" if "*" not in str(path) else "; for several files, give pyarrow.dataset.dataset([file, ...])"
        raise DataError(f"there is no file {path}{several}") from None
    except (OSError, pa.ArrowException) as error:
        fault = None if table is None or form != "csv" else _first_fault(path, table, options or {}, round_floats)
        raise DataError(f"{path} cannot be read as {form}: {fault or error}") from error
    return data if table is None else _arranged(path, data, table)


def _read(
    path: Any, schema: pa.Schema | None, form: str, options: Mapping[str, object], round_floats: bool
) -> pa.Table:
    if form == "parquet":
        import pyarrow.parquet as pq

        data = pq.read_table(path)
        return data if schema is None or not round_floats else with_rounded(data, schema)
    if schema is None:
        return _read_texts(path, None, form, options)
    texts = _as_texts(schema, pa.types.is_decimal)
    try:
        data = _read_texts(path, texts, form, options)
    except pa.ArrowException:
        zoned = _as_texts(texts, pa.types.is_timestamp)
        if zoned == texts:
            raise
        data = with_timestamps(_read_texts(path, zoned, form, options), schema)
    return with_rounded(data, schema) if round_floats else with_decimals(data, schema)


def _as_texts(schema: pa.Schema, is_text: Callable[[pa.DataType], bool]) -> pa.Schema:
    """The schema with texts in the place of some types."""
    return pa.schema([pa.field(f.name, pa.string()) if is_text(f.type) else f for f in schema])


def _read_texts(path: Any, schema: pa.Schema | None, form: str, options: Mapping[str, object]) -> pa.Table:
    """The rows of CSV or JSON, by a schema if one is given."""
    if form == "csv":
        return _csv(path, schema, options)
    from pyarrow import json

    told = None if schema is None else json.ParseOptions(explicit_schema=_written(schema))
    data = json.read_json(path, parse_options=told)
    if schema is None:
        return data
    names, data = data.column_names, with_decimals(data, schema)
    return data.cast(pa.schema([(schema if n in schema.names else data.schema).field(n) for n in names]))


def _written(schema: pa.Schema) -> pa.Schema:
    """What JSON has for columns: dates and decimals are texts in it."""
    texts = (pa.types.is_date, pa.types.is_decimal)
    return _as_texts(schema, lambda type_: any(is_text(type_) for is_text in texts))


def _csv(path: Any, schema: pa.Schema | None, options: Mapping[str, object]) -> pa.Table:
    from pyarrow import csv

    header = str(options.get("header", True)).lower() == "true"
    names = None if header else None if schema is None else schema.names
    delimiter = str(options.get("delimiter", options.get("delim", options.get("sep", ""))))
    delimiter = delimiter or ("\t" if str(path).lower().endswith(".tsv") else ",")
    null = options.get("nullstr", options.get("null"))
    nulls = ["", "NULL"] if null is None else [str(null)]
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=names, autogenerate_column_names=names is None and not header),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            column_types=schema, null_values=nulls, strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _first_fault(path: Any, table: Table, options: Mapping[str, object], round_floats: bool) -> str | None:
    """The first value of a CSV file that is not of its column's type, and what to do; None if none is found.

    Arrow's own message has neither the row nor, in a file of many columns, a column that one can find.
    """
    types = arrow_schema(table)
    try:
        texts = _csv(path, pa.schema([pa.field(name, pa.string()) for name in types.names]), options)
    except (OSError, pa.ArrowException):
        return None
    for name in (name for name in types.names if name in texts.column_names):
        wanted = types.field(name).type
        may_round = pa.types.is_decimal(wanted)
        if may_round and round_floats:
            wanted = pa.float64()
        if _casts(texts[name], wanted):
            continue
        place = _first_bad(texts[name], wanted)
        may_round &= _casts(texts[name].slice(place, 1), pa.float64())
        rounds = "; round_floats=True (in COPY, ROUND_FLOATS true) rounds it" if may_round else ""
        column = table.column(name)
        assert column is not None
        text = texts[name][place].as_py()
        return (
            f"in row {place + 1}, {text!r} in column {name} is not of type {column.type}{rounds}; "
            "or load the file into a table of strings, and convert them with CAST, TRY_CAST or TO_DATE"
        )
    return None


def _first_bad(texts: pa.ChunkedArray, wanted: pa.DataType) -> int:
    """The place of the first text that is not of a type; there is one."""
    first, size = 0, len(texts)
    while size > 1:
        half = size // 2
        if _casts(texts.slice(first, half), wanted):
            first, size = first + half, size - half
        else:
            size = half
    return first


def _casts(texts: pa.ChunkedArray, wanted: pa.DataType) -> bool:
    try:
        if pa.types.is_timestamp(wanted):
            timestamps(texts)
        elif pa.types.is_decimal(wanted):
            decimals(texts, wanted)
        else:
            texts.cast(wanted)
    except pa.ArrowException:
        return False
    return True


def _arranged(path: Any, data: pa.Table, table: Table) -> pa.Table:
    """The columns of a file in the order of the table's; the names have to be the same, case aside."""
    names = [name.lower() for name in data.column_names]
    wanted = [name.lower() for name in table.column_names]
    if sorted(names) != sorted(wanted):
        raise DataError(
            f"{path} has the columns {', '.join(data.column_names)}, and table {table.name} has "
            f"{', '.join(table.column_names)}; they must be the same: {_other_columns(path, names, table)}"
        )
    return data.select([names.index(name) for name in wanted])


def _other_columns(path: Any, names: list[str], table: Table) -> str:
    """What to do about a file that lacks columns of a table, or has more."""
    between = [mark for mark in ";|\t" if mark in names[0]] if len(names) == 1 else []
    if between:
        return f"if {between[0]!r} separates them, write COPY {table.name} FROM '{path}' (DELIMITER {between[0]!r})"
    shared = ", ".join(name for name in table.column_names if name.lower() in names)
    if set(names) <= {name.lower() for name in table.column_names}:
        return f"COPY {table.name} ({shared}) FROM '{path}' leaves the others to their defaults"
    return (
        f"CREATE TABLE loaded AS SELECT * FROM '{path}', then INSERT INTO {table.name}"
        f"{f' ({shared}) SELECT {shared}' if shared else ' SELECT ...'} FROM loaded"
    )
