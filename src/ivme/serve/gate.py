"""What every request passes first: who asks, how much it sends, how long it takes; and the two ways that are quick.

Without a token only this machine can reach the server, and then only under its own names: so that no page in a browser
can have a name of its own point here (DNS rebinding), and none can send JSON without a permission that is never given.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect

from ivme.serve.access import Access, Receive, Scope, Send, header, respond
from ivme.serve.asking import JSON
from ivme.serve.connections import ADMITTED
from ivme.serve.following import Following
from ivme.serve.front import is_open
from ivme.serve.grants import GRANT, RefusedError
from ivme.serve.metrics import LEFT, Metrics
from ivme.serve.problem import Problem, problem_of
from ivme.serve.settings import Settings, is_loopback

_logger = logging.getLogger("ivme.serve")

_OPEN = ("/healthz",)
_READING = ("/sql", "/explain")
"""What is read by POST, with the requests to a view; statements that change something are refused later."""
_KNOWN = (
    "views",
    "tables",
    "batch",
    "stats",
    "metrics",
    "healthz",
    "openapi.json",
    "explain",
    "activity",
    "page",
    "sql",
    "clock",
    "token",
    "position",
    "promises",
    "checkpoint",
    "backup",
)
"""The first parts of paths that metrics name; there are endless others."""

_ENDLESS = ("changes", "backup")
"""Answers that may take as long as they need, while the client reads them."""

_UNREAD = "ivme.unread"
"""The key in the scope of a request that says that its body is being waited for."""

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """The outermost application."""

    def __init__(self, inner: App, access: Access, following: Following, metrics: Metrics, settings: Settings) -> None:
        self._inner = inner
        self._access = access
        self._following = following
        self.metrics = metrics
        self._settings = settings
        self._grants = [(f"Bearer {grant.token}".encode(), grant) for grant in settings.grants]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        answer = _Answer(send)
        started = time.perf_counter()
        endpoint = "other"
        try:
            self._admit(scope)
            scope[ADMITTED] = scope["path"] not in _OPEN and not (self._settings.token and is_open(scope["path"]))
            endpoint, run = self._chosen(scope, self._limited(receive, scope), answer.send)
            if endpoint in _ENDLESS:
                await run
            else:
                async with asyncio.timeout(self._settings.seconds):
                    await run
        except Problem as problem:
            await answer.refuse(problem)
        except RefusedError as error:
            await answer.refuse(problem_of(error))
        except ClientDisconnect:
            _logger.debug("a client left before its request was read: %s %s", scope["method"], scope["path"])
        except TimeoutError:
            seconds = self._settings.seconds
            if scope.get(_UNREAD):
                await answer.refuse(Problem(408, f"the body took longer than {seconds} seconds"))
            else:
                await answer.refuse(Problem(504, f"this took longer than {seconds} seconds"))
        except Exception:
            _logger.exception("a request failed: %s %s", scope["method"], scope["path"])
            await answer.refuse(Problem(500, "the server failed; its log says more"))
        finally:
            self.metrics.observe(endpoint, answer.status, time.perf_counter() - started)

    def end(self) -> None:
        """Tells the followers of views that the server stops."""
        self._following.end()

    def _chosen(self, scope: Scope, receive: Receive, send: Send) -> tuple[str, Awaitable[None]]:
        """The endpoint, and what runs it."""
        path: str = scope["path"]
        if path.startswith("/views/"):
            name, slash, rest = path[7:].partition("/")
            if name and not slash and scope["method"] == "DELETE":
                return "views", self._inner(scope, receive, send)
            if name and (not slash or rest == "changes") and scope["method"] != "GET":
                raise Problem(405, f"there is nothing at {scope['method']} {path}; it can be read with GET")
            if name and not slash:
                return "rows", self._access(scope, send, name)
            if name and rest == "changes":
                return "changes", self._following(scope, receive, send, name)
        first = path.removeprefix("/").partition("/")[0]
        return first if first in _KNOWN else "other", self._inner(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        if scope["path"] in _OPEN:
            return
        token = self._settings.token
        if token is not None and is_open(scope["path"]):
            return
        if token is None:
            if not is_loopback(_host(header(scope, b"host") or "")):
                raise Problem(403, "without a token, requests have to name this machine: localhost or 127.0.0.1")
            scope[GRANT] = self._grants[0][1]
            return
        given = (header(scope, b"authorization") or "").encode()
        grant = next((grant for wanted, grant in self._grants if hmac.compare_digest(given, wanted)), None)
        if grant is None:
            raise Problem(401, "send the token: Authorization: Bearer ...")
        if grant.only_reads and scope["method"] != "GET" and not _reads(scope["path"]):
            raise Problem(403, f"the token {grant.name!r} is for reading; changes need a scope write:NAME or define")
        scope[GRANT] = grant

    def _limited(self, receive: Receive, scope: Scope) -> Receive:
        """Reads no more of a body than is allowed."""
        most = self._settings.body_bytes
        length = header(scope, b"content-length") or "0"
        if not (length.isascii() and length.isdigit() and len(length) < 20):
            raise Problem(400, "Content-Length is not a number of bytes")
        if int(length) > most:
            raise Problem(413, f"the body has more than {most} bytes")
        if scope["method"] == "GET":
            return receive
        read = 0

        async def counted() -> MutableMapping[str, Any]:
            nonlocal read
            scope[_UNREAD] = True
            message = await receive()
            scope[_UNREAD] = message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > most:
                raise Problem(413, f"the body has more than {most} bytes")
            return message

        return counted


def _reads(path: str) -> bool:
    """Whether what is sent to a path by POST may be only a question."""
    return path in _READING or (path.startswith("/views/") and path.endswith("/requests") and path.count("/") == 3)


def _host(header: str) -> str:
    """The name in a header `Host`, without the port.

    >>> _host("localhost:80"), _host("[::1]:80"), _host("[::1]"), _host("127.0.0.1")
    ('localhost', '::1', '::1', '127.0.0.1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


_MORE = {401: [(b"www-authenticate", b"Bearer")], 405: [(b"allow", b"GET")]}
"""Headers that go with a refusal."""


class _Answer:
    """What has been sent so far: a refusal can replace nothing that has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = LEFT

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        if self.status != LEFT:
            _logger.warning("an answer was broken off: %s", problem.message)
            return
        await respond(self.send, problem.status, problem.body(), JSON, *_MORE.get(problem.status, ()))
