"""What a statement gives: rows with named columns, or how many rows it changed."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError
from ivme.extras import pandas_frame, polars_frame
from ivme.shown_table import SHOWN_ROWS, html_table, is_number, rows_shown, text_table

if TYPE_CHECKING:
    import pandas
    import polars

Row = tuple[Any, ...]


class Result:
    """The rows of a query, as they were when it was run; of another statement, what it did.

    `count` is the number of rows that were read, or changed; None where that is not known (in a transaction) or means
    nothing. `message` says what was done, in a sentence.
    """

    def __init__(self, data: pa.Table | None = None, *, count: int | None = None, message: str = "") -> None:
        self._data = pa.table({}) if data is None else data
        self.is_query = data is not None
        self.count = self._data.num_rows if self.is_query else count
        self.message = message

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._data.column_names)

    @property
    def schema(self) -> pa.Schema:
        """The names and Arrow types of the columns."""
        return self._data.schema

    def rows(self) -> list[Row]:
        """All rows."""
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        columns = [python_values(column) for column in self._data.columns]
        return zip(*columns, strict=True) if columns else iter([()] * self._data.num_rows)

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __bool__(self) -> bool:
        """A result is never false, also one without rows."""
        return True

    def scalar(self) -> Any:
        """The only value of the only row."""
        if self._data.shape != (1, 1):
            raise DataError(f"this is not a single value: it has {len(self)} rows of {len(self.columns)} columns")
        return next(iter(self))[0]

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._data

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self._data)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return polars_frame(self._data)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.message or text_table(self.columns, self._first(), self._right, rows_shown(len(self)))

    def _repr_html_(self) -> str:
        if self.message:
            return f"<pre>{escape(self.message)}</pre>"
        return html_table(self.columns, self._first(), rows_shown(len(self)))

    def _first(self) -> list[Row]:
        columns = [python_values(column) for column in self._data.slice(0, SHOWN_ROWS).columns]
        return list(zip(*columns, strict=True))

    @property
    def _right(self) -> list[bool]:
        return [is_number(field.type) for field in self._data.schema]
