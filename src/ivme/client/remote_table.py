"""A table behind a server to read: its rows in Python, Arrow and pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from ivme.client.client_values import read_table
from ivme.definitions.readable_table import ReadableTable
from ivme.serve.asking import ARROW

if TYPE_CHECKING:
    from ivme.client.remote_connection import RemoteConnection


class RemoteTable(ReadableTable):
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
        """The rows as an Arrow table; a row of multiplicity m occurs m times."""
        path = f"/tables/{quote(self.name, safe='')}?_limit={2**62}"
        return read_table(self._connection.request("GET", path, None, ARROW)[1])

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.described["columns"].items())
        return f"<RemoteTable {self.name}: {columns}>"
