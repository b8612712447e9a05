"""A connection to a server of ivme over HTTP, by Python's own modules.

One request at a time goes over it; it is opened again if the server has closed it.
"""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from ssl import SSLContext
from typing import Self
from urllib.parse import urlsplit

from ivme.errors import DataError, IvmeError, PlanError, StorageError, UnknownNameError
from ivme.serve.asking import JSON
from ivme.serve.values import dumps

_SECONDS = 60.0
_ERRORS: dict[int, type[IvmeError]] = {404: UnknownNameError, 422: DataError, 503: StorageError}


class RemoteError(IvmeError):
    """A server that cannot be reached, or that refuses the client."""


class RemoteConnection:
    """Requests to a server. They raise the errors of ivme, with the server's message."""

    def __init__(self, url: str, *, token: str | None = None, context: SSLContext | None = None) -> None:
        if "//" not in url and Path(url).is_dir():
            raise RemoteError(f"{url!r} is a directory: open it by ivme.Database({url!r}), or serve it by ivme serve")
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

    def request(self, method: str, path: str, body: object = None, accept: str = JSON) -> tuple[str, bytes]:
        """The kind and the bytes of an answer; a connection that was closed meanwhile is opened once more for GET."""
        sent = None if body is None else _written(body)
        with self._lock:
            for again in (method == "GET" and self._connection is not None, False):
                try:
                    response = self._send(self._open(), method, path, sent, accept)
                    return response.headers.get_content_type(), self._whole(response)
                except (OSError, HTTPException) as error:
                    self._close()
                    if not again:
                        raise self._unreachable(error) from error
        raise AssertionError("unreachable")

    def _unreachable(self, error: Exception) -> RemoteError:
        """The error of a server that does not answer."""
        if isinstance(error, ConnectionRefusedError):
            return RemoteError(f"{self.url} cannot be reached: no server listens there; start one with `ivme serve`")
        return RemoteError(f"{self.url} cannot be reached: {error!r}")

    def _whole(self, response: HTTPResponse) -> bytes:
        data = response.read()
        if response.status < 400:
            return data
        try:
            message = json.loads(data)["error"]
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {response.status}"
        if response.status == 401:
            message = f"{self.url} requires a token; give it as ivme.connect(url, token=...): {message}"
        raise _ERRORS.get(response.status, RemoteError if response.status in (401, 403) else PlanError)(message)

    def _send(
        self, connection: HTTPConnection, method: str, path: str, body: bytes | None, accept: str
    ) -> HTTPResponse:
        headers = {"Accept": accept, **({"Content-Type": JSON} if body is not None else {})}
        headers |= {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def open_stream(self, path: str, accept: str = "text/event-stream") -> tuple[HTTPConnection, HTTPResponse]:
        """A connection of its own for an answer that goes on."""
        connection = self._connect(None)
        try:
            response = self._send(connection, "GET", path, None, accept)
            if response.status != 200:
                self._whole(response)
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError | HTTPException):
                raise self._unreachable(error) from error
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


def _written(body: object) -> bytes:
    try:
        return dumps(body)
    except TypeError as error:
        raise DataError(f"a value of the type {error} cannot be sent; columns hold none of it") from None
