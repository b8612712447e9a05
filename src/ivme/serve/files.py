"""The files of the page, and what a browser may do with them: nothing that does not come from this server.

They hold no data, so that they are given to anybody; what they show they ask for, with the token if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    content: bytes
    kind: str


@cache
def page_files() -> dict[str, File]:
    """The files by name, read once."""
    found = {}
    for entry in files("ivme.serve").joinpath("page").iterdir():
        ending = entry.name[entry.name.rfind(".") :]
        if ending in KINDS:
            found[entry.name] = File(entry.read_bytes(), KINDS[ending])
    return found
