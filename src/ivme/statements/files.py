"""The files that COPY and SELECT * FROM 'file' name."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from ivme.engine.ingest.files import format_of, read_path
from ivme.query.model import Table
from ivme.query.sql_text import SqlText
from ivme.query.table_expression import Parameters
from ivme.statements.constants import given
from ivme.statements.model import File

_OPTIONS = {
    "parquet": ("round_floats",),
    "csv": ("header", "delimiter", "delim", "sep", "nullstr", "null", "round_floats"),
    "json": ("round_floats",),
}


def read_file(source: SqlText, file: File, values: Parameters, table: Table | None) -> pa.Table:
    """The rows of the file that a statement names; in the columns of a table if one is given."""
    path = given(source, file.path, values) if isinstance(file.path, exp.Placeholder) else file.path.name
    options = dict(file.options or {})
    form = format_of(path, file.format)
    unknown = [name for name in options if name not in _OPTIONS.get(form, ())]
    if unknown:
        known = ", ".join(_OPTIONS.get(form, ()))
        raise source.unsupported(f"{unknown[0]} is not an option of {form}", None, f"there are: {known}")
    round_floats = str(options.pop("round_floats", False)).lower() == "true"
    return read_path(path, table, form, options, round_floats=round_floats)
