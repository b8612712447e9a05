"""A database behind a server, with the methods of `Database`: `ivme.connect("http://localhost:8321", token=...)`.

Statements, rows and changes go over HTTP, rows as Arrow; nothing but Python's own modules is needed. One request at a
time goes over a connection, which is opened again if the server has closed it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import Any, Self
from urllib.parse import quote, urlsplit

import pyarrow as pa

from ivme.client_values import listed_rows, plain_parameter, quoted, read_table, sql_type
from ivme.errors import DataError, IvmeError, PlanError, StorageError, UnknownNameError
from ivme.remote_view import RemoteView, Row
from ivme.schemas import columns_of
from ivme.serve.asking import ARROW, JSON
from ivme.serve.values import dumps
from ivme.statements.result import Result

_SECONDS = 60.0
_ERRORS: dict[int, type[IvmeError]] = {404: UnknownNameError, 422: DataError, 503: StorageError}

__all__ = ["RemoteDatabase", "RemoteError", "RemoteView", "Row", "connect"]


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
            self.request("GET", "/tables")
        except BaseException:
            self.close()
            raise

    # Statements

    def sql(self, text: str, /, **parameters: Any) -> Result:
        """Runs SQL statements on the server; the result of the last. BEGIN needs its COMMIT in the same text."""
        body = {"sql": text, "parameters": {name: plain_parameter(value) for name, value in parameters.items()}}
        kind, answer = self.request("POST", "/sql", body, ARROW)
        if kind == ARROW:
            return Result(read_table(answer))
        told = json.loads(answer)
        return Result(count=told["count"], message=told["message"])

    def create_view(self, name: str, query: str, **options: object) -> RemoteView:
        """Makes a view of a query."""
        self.request("POST", "/views", {"name": name, "query": query, "options": options})
        return self.view(name)

    def drop_view(self, name: str) -> None:
        """Forgets a view."""
        self.request("DELETE", f"/views/{quote(name, safe='')}")

    def drop_table(self, name: str) -> None:
        """Forgets a table and its rows."""
        self.request("DELETE", f"/tables/{quote(name, safe='')}")

    # Reading

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(each["name"] for each in json.loads(self.request("GET", "/tables")[1]))

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read."""
        listed = json.loads(self.request("GET", "/views")[1])
        return tuple(each["name"] for each in listed if "broken" not in each)

    @property
    def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the server opened its directory, and why."""
        listed = json.loads(self.request("GET", "/views")[1])
        return {each["name"]: each["broken"] for each in listed if "broken" in each}

    @property
    def scopes(self) -> tuple[str, ...]:
        """What the token allows, as in `read:revenue`, `write:sales` and `define`."""
        return tuple(json.loads(self.request("GET", "/token")[1])["scopes"])

    def view(self, name: str) -> RemoteView:
        """The view of that name."""
        listed = json.loads(self.request("GET", "/views")[1])
        for each in listed:
            if each["name"].lower() == name.lower():
                return RemoteView(self, each)
        raise UnknownNameError(f"there is no view {name}; there are: {', '.join(each['name'] for each in listed)}")

    def contents(self, table: str) -> pa.Table:
        """The rows of a table, in Arrow."""
        return self.sql(f"SELECT * FROM {quoted(table)}").to_arrow()

    # Definitions

    def create_table(self, name: str, schema: Any, *, primary_key: str | Iterable[str] = (), **options: bool) -> None:
        """Declares an empty table, as `Database.create_table` does; the options are `append_only` and `static`."""
        columns = [f"{quoted(column)} {sql_type(type_)}" for column, type_ in columns_of(name, schema).items()]
        key = [primary_key] if isinstance(primary_key, str) else [*primary_key]
        columns += [f"PRIMARY KEY ({', '.join(map(quoted, key))})"] if key else []
        said = ", ".join(f"{option} = {str(value).lower()}" for option, value in options.items())
        self.sql(f"CREATE TABLE {quoted(name)} ({', '.join(columns)}){f' WITH ({said})' if said else ''}")

    def add_column(self, table: str, name: str, type: str, default: object = None) -> None:
        """Gives a table a further column, behind the others."""
        told = "" if default is None else " DEFAULT :default"
        given = {} if default is None else {"default": default}
        kind = sql_type(type)
        self.sql(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} {kind}{told}", **given)

    def drop_column(self, table: str, name: str) -> None:
        """Takes a column and its values away."""
        self.sql(f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(name)}")

    def rename_column(self, table: str, name: str, to: str) -> None:
        """Gives a column another name."""
        self.sql(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(name)} TO {quoted(to)}")

    def rename_table(self, name: str, to: str) -> None:
        """Gives a table another name."""
        self.sql(f"ALTER TABLE {quoted(name)} RENAME TO {quoted(to)}")

    def advance(self, now: datetime) -> None:
        """Moves the clock of the database on; see `Database.advance`."""
        moment = now if now.tzinfo is None else now.astimezone(UTC).replace(tzinfo=None)
        self.request("POST", "/clock", {"now": moment.isoformat()})

    @property
    def now(self) -> datetime | None:
        """What the clock of the database says; None if it was never advanced, and no view reads it."""
        told = json.loads(self.request("GET", "/clock")[1])["now"]
        return None if told is None else datetime.fromisoformat(told)

    # Changes

    def insert(self, table: str, rows: Any) -> None:
        """Adds rows: tuples, dicts, or what has an Arrow stream, such as a DataFrame."""
        self._change(table, insert=rows)

    def delete(self, table: str, rows: Any) -> None:
        """Takes rows away; one that is not there is an error, and nothing is changed."""
        self._change(table, delete=rows)

    def upsert(self, table: str, rows: Any) -> None:
        """Adds rows, each in place of the one that has its primary key."""
        self._change(table, upsert=rows)

    def replace(self, table: str, rows: Any) -> None:
        """Makes these rows all that the table holds; views and followers are told the difference."""
        self._change(table, replace=rows)

    def _change(self, table: str, **changes: Any) -> None:
        body = {kind: listed_rows(rows) for kind, rows in changes.items()}
        self.request("POST", f"/tables/{quote(table, safe='')}/changes", body)

    def batch(
        self, changes: Mapping[str, Mapping[str, Any]], source: str | None = None, position: int | None = None
    ) -> None:
        """Changes of several tables, all or nothing: `{"sales": {"insert": rows, "delete": rows}}`."""
        listed = {table: {kind: listed_rows(rows) for kind, rows in each.items()} for table, each in changes.items()}
        progress = {} if source is None else {"source": source, "position": position}
        self.request("POST", "/batch", {"changes": listed, **progress})

    def update(self, table: str, /, *, set: Mapping[str, str], where: str = "TRUE", **parameters: Any) -> int | None:
        """Gives columns the values of expressions in the rows for which a condition holds; how many rows that were."""
        values = ", ".join(f"{quoted(column)} = {value}" for column, value in set.items())
        return self.sql(f"UPDATE {quoted(table)} SET {values} WHERE {where}", **parameters).count

    def delete_where(self, table: str, where: str, /, **parameters: Any) -> int | None:
        """Takes away the rows for which a condition holds; how many they were."""
        return self.sql(f"DELETE FROM {quoted(table)} WHERE {where}", **parameters).count

    def truncate(self, table: str) -> None:
        """Takes all rows of a table away."""
        self.sql(f"TRUNCATE TABLE {quoted(table)}")

    # The connection

    def request(self, method: str, path: str, body: object = None, accept: str = JSON) -> tuple[str, bytes]:
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


def connect(url: str, *, token: str | None = None, context: SSLContext | None = None) -> RemoteDatabase:
    """The database that a server (`ivme serve`) has; `context` is for certificates that the system does not know."""
    return RemoteDatabase(url, token=token, context=context)
