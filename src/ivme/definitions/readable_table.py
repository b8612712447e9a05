"""The rows of a table in Python, pandas, polars and notebooks, given them in Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.nested_values import python_values
from ivme.extras import pandas_frame, polars_frame
from ivme.shown_table import SHOWN_ROWS, html_table, is_numeric, rows_shown, text_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

Row = tuple[Any, ...]


class ReadableTable(ABC):
    """The rows of a table, as they are at the moment of each read."""

    name: str

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a row of multiplicity m occurs m times."""

    def rows(self) -> list[Row]:
        """All rows, in no particular order."""
        return list(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as Arrow's C interface has them, for `pa.table(table)`, `pl.DataFrame(table)`, and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Row]:
        return zip(*map(python_values, self.to_arrow().columns), strict=True)

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def __bool__(self) -> bool:
        """A table is never false, also an empty one."""
        return True

    def __str__(self) -> str:
        """The first rows."""
        rows, summary = self._first_rows()
        right = [is_numeric([row[place] for row in rows]) for place in range(len(self.columns))]
        return text_table(self.columns, rows, right, summary)

    def _repr_html_(self) -> str:
        rows = html_table(self.columns, *self._first_rows())
        return f"<p>table <b>{escape(self.name)}</b></p>{rows}"

    def _first_rows(self) -> tuple[list[Row], str]:
        data = self.to_arrow()
        first = zip(*map(python_values, data.slice(0, SHOWN_ROWS).columns), strict=True)
        return list(first), rows_shown(data.num_rows)
