"""Readers, subscribers and a writer at once: no error, and every subscriber's changes add up to the view."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from urllib.parse import urlparse

import pytest

from benchmarks import serve
from ivme.database import Database
from tests.serve.running import serving


@pytest.mark.parametrize(
    ("seconds", "readers", "subscribers"),
    [(1, 20, 5), pytest.param(60, 200, 20, marks=pytest.mark.long)],
)
def test_everybody_gets_what_the_view_is(tmp_path: Path, seconds: int, readers: int, subscribers: int) -> None:
    serve.make_database(tmp_path)
    options = argparse.Namespace(seconds=seconds, readers=readers, subscribers=subscribers, updates=10_000)
    with Database(tmp_path) as db:
        with serving(db) as address:
            port = urlparse(address).port
            assert port is not None
            figures = asyncio.run(serve.together(port, options))
        assert [] == figures.errors
        assert figures.updates > 0
        assert figures.requests >= readers
        assert figures.frames > 0
        for name in db.views:
            db.view(name).verify()
