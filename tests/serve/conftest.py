"""A server with some flights."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any

import certifi
import httpx
import pytest

from ivme.database import Database
from tests.serve.running import flights, serving


@pytest.fixture(autouse=True, scope="session")
def certificates_are_read_once() -> Iterator[None]:
    """Each client of httpx reads those of all authorities, which takes 18 ms, also for a server without encryption."""
    made, place = ssl.create_default_context, certifi.where()
    usual = cache(lambda: made(cafile=place))

    def create(*given: Any, **options: Any) -> ssl.SSLContext:
        return usual() if not given and options == {"cafile": place} else made(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create)
        yield


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        yield flights(made)


@pytest.fixture
def client(db: Database) -> Iterator[httpx.Client]:
    with serving(db) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


@pytest.fixture(scope="module")
def steady_db() -> Iterator[Database]:
    """A database for tests that change nothing."""
    with Database() as made:
        yield flights(made)


@pytest.fixture(scope="module")
def steady(steady_db: Database) -> Iterator[httpx.Client]:
    """A client of a server that all tests of a module share."""
    with serving(steady_db) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made
