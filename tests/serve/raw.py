"""Clients that speak HTTP byte by byte, as well or as badly as a test wants."""

from __future__ import annotations

import socket
from typing import BinaryIO
from urllib.parse import urlparse


def connect(address: str, source: str = "127.0.0.1", *, receive_buffer: int | None = None) -> socket.socket:
    """A connection to a server, from an address of this machine."""
    made = socket.socket(socket.AF_INET)
    if receive_buffer is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    made.settimeout(30)
    made.bind((source, 0))
    made.connect(("127.0.0.1", urlparse(address).port))
    return made


def request(line: str, *headers: str, body: bytes = b"", host: str = "localhost") -> bytes:
    """A whole request; the length of its body is given, unless a header says how it is sent."""
    given = list(headers)
    if body and not any(header.lower().startswith(("content-length", "transfer-encoding")) for header in given):
        given.append(f"Content-Length: {len(body)}")
    return "\r\n".join([line, f"Host: {host}", *given, "", ""]).encode("latin-1") + body


def read_to_end(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


Answer = tuple[int, dict[str, str], bytes]


def read_answer(connection: socket.socket, method: str = "GET") -> Answer:
    """One answer, with a Content-Length or in chunks, and nothing behind it: status, headers, body."""
    with connection.makefile("rb") as stream:
        return read_from(stream, method)


def read_from(stream: BinaryIO, method: str = "GET") -> Answer:
    """One answer of a stream of them; a ValueError if it is not well formed, a ConnectionError if there is none."""
    first = stream.readline()
    if not first:
        raise ConnectionError("closed")
    version, status, _ = first.decode("ascii").split(" ", 2)
    if version != "HTTP/1.1":
        raise ValueError(version)
    headers: dict[str, str] = {}
    while (line := stream.readline()) != b"\r\n":
        name, _, value = line.decode("ascii").removesuffix("\r\n").partition(": ")
        headers[name.lower()] = value
    if method == "HEAD":
        return int(status), headers, b""
    if headers.get("transfer-encoding") != "chunked":
        return int(status), headers, _exactly(stream, int(headers["content-length"]))
    body = b""
    while size := int(stream.readline(), 16):
        body += _exactly(stream, size + 2)[:-2]
    _exactly(stream, 2)
    return int(status), headers, body


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise ConnectionError("closed within a body")
    return found
