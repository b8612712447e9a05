"""A server with some flights."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ivme.database import Database
from tests.serve.running import flights, serving


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
