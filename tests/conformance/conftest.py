"""What holds for a database holds on both backends."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from tests.databases import BACKENDS, make_database


@pytest.fixture(params=BACKENDS)
def db(request: Any) -> Database:
    """An empty database."""
    return make_database(request.param)
