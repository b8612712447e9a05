"""A table behind a server to read: its rows in Python, Arrow and pandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from ivme.client_values import read_table
from ivme.engine.codes.nested_values import python_values
from ivme.serve.asking import ARROW
from ivme.shown_table import SHOWN_ROWS, html_table, rows_shown

if TYPE_CHECKING:
    import pandas
    import polars

    from ivme.remote_connection import RemoteConnection

Row = tuple[Any, ...]


class RemoteTable:
    """The rows of a table. Each time it is read it has those of that moment.

    `described` is what is declared of it: types of columns, keys, promises and defaults.
    """

    def __init__(self, connection: RemoteConnection, described: Mapping[str, Any]) -> None:
        self._connection = connection
        self.described = described
        self.name: str = described["name"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.described["columns"])

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a row of multiplicity m comes m times."""
        path = f"/tables/{quote(self.name, safe='')}?_limit={2**62}"
        return read_table(self._connection.request("GET", path, None, ARROW)[1])

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        import polars

        return polars.DataFrame(self.to_arrow())

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

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.described["columns"].items())
        return f"<RemoteTable {self.name}: {columns}>"

    def _repr_html_(self) -> str:
        data = self.to_arrow()
        first = zip(*map(python_values, data.slice(0, SHOWN_ROWS).columns), strict=True)
        rows = html_table(self.columns, list(first), rows_shown(data.num_rows))
        return f"<p>table <b>{escape(self.name)}</b></p>{rows}"
