"""A database behind a server, with the methods of `Database`: `ivme.connect("http://localhost:8321", token=...)`.

Statements, rows and changes go over HTTP, rows as Arrow; nothing but Python's own modules is needed. One request at a
time goes over a connection, which is opened again if the server has closed it.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError, IvmeError, PlanError, StorageError, UnknownNameError, shown
from ivme.serve.asking import ARROW, JSON
from ivme.serve.values import dumps
from ivme.statements.result import Result

if TYPE_CHECKING:
    import pandas
    import polars

_SECONDS = 60.0
_ERRORS: dict[int, type[IvmeError]] = {404: UnknownNameError, 422: DataError, 503: StorageError}

Row = tuple[Any, ...]


class RemoteError(IvmeError):
    """A server that cannot be reached, or that refuses who asks."""


class RemoteDatabase:
    """A database behind a server. Its methods raise the errors of ivme, with the server's message."""

    def __init__(self, url: str, *, token: str | None = None, context: SSLContext | None = None) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RemoteError(f"{url!r} is not the address of a server; write http://localhost:8321")
        self.url = url
        self._parts = parts
        self._token = token
        self._context = context
        self._lock = threading.Lock()
        self._connection: HTTPConnection | None = None
        try:
            self._request("GET", "/tables")
        except BaseException:
            self.close()
            raise

    # Statements

    def sql(self, text: str, /, **parameters: Any) -> Result:
        """Runs SQL statements on the server; the result of the last. BEGIN needs its COMMIT in the same text."""
        body = {"sql": text, "parameters": {name: plain_parameter(value) for name, value in parameters.items()}}
        kind, answer = self._request("POST", "/sql", body, ARROW)
        if kind == ARROW:
            return Result(_table(answer))
        told = json.loads(answer)
        return Result(count=told["count"], message=told["message"])

    def create_view(self, name: str, query: str, **options: object) -> RemoteView:
        """Makes a view of a query."""
        self._request("POST", "/views", {"name": name, "query": query, "options": options})
        return self.view(name)

    def drop_view(self, name: str) -> None:
        """Forgets a view."""
        self._request("DELETE", f"/views/{quote(name, safe='')}")

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows."""
        self._request("DELETE", f"/tables/{quote(name, safe='')}")

    # Reading

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(each["name"] for each in json.loads(self._request("GET", "/tables")[1]))

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read."""
        listed = json.loads(self._request("GET", "/views")[1])
        return tuple(each["name"] for each in listed if "broken" not in each)

    @property
    def scopes(self) -> tuple[str, ...]:
        """What the token allows, as in `read:revenue`, `write:sales` and `define`."""
        return tuple(json.loads(self._request("GET", "/token")[1])["scopes"])

    def view(self, name: str) -> RemoteView:
        """The view of that name."""
        listed = json.loads(self._request("GET", "/views")[1])
        for each in listed:
            if each["name"].lower() == name.lower():
                return RemoteView(self, each)
        raise UnknownNameError(f"there is no view {name}; there are: {', '.join(each['name'] for each in listed)}")

    def contents(self, table: str) -> pa.Table:
        """The rows of a table, in Arrow."""
        return self.sql(f"SELECT * FROM {_quoted(table)}").to_arrow()

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        """Adds rows: tuples, dicts, or what has an Arrow stream, such as a DataFrame."""
        self._change(table, insert=rows)

    def delete(self, table: str, rows: Any) -> None:
        """Takes rows away; one that is not there is an error, and nothing is changed."""
        self._change(table, delete=rows)

    def _change(self, table: str, **changes: Any) -> None:
        body = {kind: listed_rows(rows) for kind, rows in changes.items()}
        self._request("POST", f"/tables/{quote(table, safe='')}/changes", body)

    def batch(
        self, changes: Mapping[str, Mapping[str, Any]], source: str | None = None, position: int | None = None
    ) -> None:
        """Changes of several tables, all or nothing: `{"sales": {"insert": rows, "delete": rows}}`."""
        listed = {table: {kind: listed_rows(rows) for kind, rows in each.items()} for table, each in changes.items()}
        progress = {} if source is None else {"source": source, "position": position}
        self._request("POST", "/batch", {"changes": listed, **progress})

    def update(self, table: str, /, *, set: Mapping[str, str], where: str = "TRUE", **parameters: Any) -> int | None:
        """Gives columns the values of expressions in the rows for which a condition holds; how many rows that were."""
        values = ", ".join(f"{_quoted(column)} = {value}" for column, value in set.items())
        return self.sql(f"UPDATE {_quoted(table)} SET {values} WHERE {where}", **parameters).count

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> int | None:
        """Takes away the rows for which a condition holds; how many they were."""
        return self.sql(f"DELETE FROM {_quoted(table)} WHERE {where}", **parameters).count

    def truncate(self, table: str) -> None:
        """Takes all rows of a table away."""
        self.sql(f"TRUNCATE TABLE {_quoted(table)}")

    # The connection

    def _request(self, method: str, path: str, body: object = None, accept: str = JSON) -> tuple[str, bytes]:
        """The kind and the bytes of an answer; a connection that was closed meanwhile is opened once more for GET."""
        with self._lock:
            for again in (method == "GET" and self._connection is not None, False):
                try:
                    response = self._send(self._open(), method, path, body, accept)
                    return response.headers.get_content_type(), self._whole(response)
                except (OSError, HTTPException) as error:
                    self._close()
                    if not again:
                        raise RemoteError(f"{self.url} cannot be reached: {error!r}") from error
        raise AssertionError("unreachable")

    def _whole(self, response: HTTPResponse) -> bytes:
        data = response.read()
        if response.status < 400:
            return data
        try:
            message = json.loads(data)["error"]
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {response.status}"
        raise _ERRORS.get(response.status, RemoteError if response.status in (401, 403) else PlanError)(message)

    def _send(self, connection: HTTPConnection, method: str, path: str, body: object, accept: str) -> HTTPResponse:
        headers = {"Accept": accept, **({"Content-Type": JSON} if body is not None else {})}
        headers |= {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        connection.request(method, path, None if body is None else dumps(body), headers)
        return connection.getresponse()

    def open_stream(self, path: str) -> tuple[HTTPConnection, HTTPResponse]:
        """A connection of its own for an answer that goes on."""
        connection = self._connect(None)
        try:
            response = self._send(connection, "GET", path, None, "text/event-stream")
            if response.status != 200:
                self._whole(response)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | HTTPException):
                raise RemoteError(f"{self.url} cannot be reached: {error!r}") from error
            raise
        return connection, response

    def _connect(self, seconds: float | None) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=seconds)
        return HTTPSConnection(host, port, timeout=seconds, context=self._context)

    def _open(self) -> HTTPConnection:
        self._connection = self._connection or self._connect(_SECONDS)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Ends the connection; the server goes on."""
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteDatabase {self.url}>"


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
        path = f"/views/{quote(self.name, safe='')}{_query(parameters)}"
        return _table(self._database._request("GET", path, None, ARROW)[1])

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
        found: dict[str, Any] = json.loads(
            self._database._request("GET", f"/views/{quote(self.name, safe='')}/explain")[1]
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


def connect(url: str, *, token: str | None = None, context: SSLContext | None = None) -> RemoteDatabase:
    """The database that a server (`ivme serve`) has; `context` is for certificates that the system does not know."""
    return RemoteDatabase(url, token=token, context=context)


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


def plain_parameter(value: Any) -> Any:
    """A value as `POST /sql` takes it: with its type, where JSON has none for it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [plain_parameter(each) for each in value]
    if isinstance(value, float):
        return {"type": "float", "value": _float_text(value)}
    for kind, name in ((datetime, "timestamp"), (date, "date"), (bytes, "binary")):
        if isinstance(value, kind):
            return {"type": name, "value": json.loads(dumps(value))}
    if isinstance(value, Decimal) and value.is_finite():
        return {"type": f"decimal(38, {min(max(-int(value.as_tuple().exponent), 0), 38)})", "value": format(value, "f")}
    raise DataError(f"a parameter is a number, a text, a date, bytes, or a list of these; it is {shown(value)}")


def _float_text(value: float) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def listed_rows(rows: Any) -> list[Any]:
    """Rows as JSON has them: lists or objects."""
    if hasattr(rows, "__arrow_c_stream__"):
        rows = pa.table(rows)
    elif hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.Table):
        return [list(row) for row in zip(*map(python_values, rows.columns), strict=True)]
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(f"rows are a list of tuples or dicts, or a table; it is {shown(rows)}")
    return [dict(row) if isinstance(row, Mapping) else list(row) if isinstance(row, Sequence) else row for row in rows]


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def _query(parameters: Mapping[str, Any]) -> str:
    """The values of an access request, as the server reads them in a query."""
    pairs = []
    for name, value in parameters.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            plain = json.loads(dumps(each))
            pairs.append((name, plain if isinstance(plain, str) else json.dumps(plain)))
    return f"?{urlencode(pairs)}" if pairs else ""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
