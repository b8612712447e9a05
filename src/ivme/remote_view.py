"""A view behind a server: its rows by access requests, and its changes as they come."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import pyarrow as pa

from ivme.client_values import query_text, read_table
from ivme.engine.codes.nested_values import python_values
from ivme.serve.asking import ARROW

if TYPE_CHECKING:
    import pandas
    import polars

    from ivme.client import RemoteDatabase

Row = tuple[Any, ...]


class RemoteView:
    """A view behind a server: its rows, access requests and changes."""

    def __init__(self, database: RemoteDatabase, described: Mapping[str, Any]) -> None:
        self._database = database
        self.name: str = described["name"]
        self.described = described
        self.columns: tuple[str, ...] = tuple(described.get("columns", ()))
        self.parameters: tuple[str, ...] = tuple(described.get("parameters", ()))

    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows of an access request, in Arrow."""
        path = f"/views/{quote(self.name, safe='')}{query_text(parameters)}"
        return read_table(self._database.request("GET", path, None, ARROW)[1])

    def __iter__(self) -> Iterator[Row]:
        return self()

    def __call__(self, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""
        data = self.to_arrow(**parameters)
        return zip(*map(python_values, data.columns), strict=True) if data.num_columns else iter([()] * data.num_rows)

    def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        return self.to_arrow(**parameters).to_pandas()

    def to_polars(self, **parameters: Any) -> polars.DataFrame:
        import polars

        return polars.DataFrame(self.to_arrow(**parameters))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def explain(self) -> dict[str, Any]:
        """How the view is maintained and what that costs, as plain values."""
        return self._asked("explain")

    def stats(self) -> dict[str, Any]:
        """The view's sizes, and its heavy and light parts."""
        return self._asked("stats")

    def _asked(self, what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self._database.request("GET", f"/views/{quote(self.name, safe='')}/{what}")[1]
        )
        return found

    def read_by(self, database: RemoteDatabase) -> RemoteView:
        """The same view over another connection."""
        return RemoteView(database, self.described)

    def changes(self) -> RemoteChanges:
        """The changes of the view's rows from now on, waited for: mappings from rows to the change of their
        multiplicity, in JSON's types. It ends when the view is dropped or the server stops.
        """
        connection, response = self._database.open_stream(f"/views/{quote(self.name, safe='')}/changes?_rows=false")
        return RemoteChanges(connection, response)

    def __repr__(self) -> str:
        return f"<RemoteView {self.name} of {self._database.url}>"


class RemoteChanges:
    """The changes of a view behind a server, as they come; `close` ends it, also while another thread waits for one."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._line = socket.socket(fileno=os.dup(response.fileno()))  # is there also when the response is over
        self._events = self._read()

    def _read(self) -> Generator[dict[Row, int], None, None]:
        event = ""
        try:
            for line in iter(self._response.readline, b""):
                name, _, value = line.rstrip(b"\n").partition(b": ")
                if name == b"event":
                    event = value.decode()
                elif name == b"data" and event == "change":
                    yield {tuple(row): weight for row, weight in json.loads(value)["changes"]}
                elif name == b"data" and event == "end":
                    return
        finally:
            self._end()

    def _end(self) -> None:
        for each in (self._response, self._connection, self._line):
            each.close()

    def __iter__(self) -> Iterator[dict[Row, int]]:
        return self

    def __next__(self) -> dict[Row, int]:
        return next(self._events)

    def close(self) -> None:
        """Ends it; a thread that waits for a change gets none."""
        with suppress(OSError):  # it has ended already
            self._line.shutdown(socket.SHUT_RDWR)
        with suppress(ValueError):  # a thread that waits ends it
            self._events.close()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
