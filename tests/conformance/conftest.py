"""What holds for a database holds on both backends, and for one that is kept in a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from tests.databases import BACKENDS, make_database
from tests.durability.directories import bag
from tests.sharded_databases import local_database
from tests.sharded_face import DIFFERENT, ShardedFace


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves the plain engine and shards to `make test-long`: the default run has them in properties and fuzzers."""
    here = Path(__file__).parent
    for item in items:
        chosen = getattr(item, "callspec", None)
        if (
            chosen is not None
            and item.path.is_relative_to(here)
            and {"pure", "sharded"} & set(map(str, chosen.params.values()))
        ):
            item.add_marker(pytest.mark.long)
            name = getattr(item, "originalname", "")
            if "sharded" in map(str, chosen.params.values()) and name in DIFFERENT:
                item.add_marker(pytest.mark.skip(reason=f"over shards: {DIFFERENT[name]}"))


@pytest.fixture(params=[*BACKENDS, "durable", "sharded"])
def db(request: Any, tmp_path: Path) -> Iterator[Any]:
    """An empty database. What a durable one holds at the end of the test is there when it is opened again."""
    if request.param == "sharded":
        with local_database(tmp_path / "shards", 2) as sharded:
            yield ShardedFace(sharded)
        return
    if request.param != "durable":
        yield make_database(request.param)
        return
    database = Database(tmp_path / "db", durability="async")
    yield database
    if database.definitions.is_closed:
        return
    expected = {table: bag(database, table) for table in database.tables}, database.views
    database.close()
    with Database(tmp_path / "db") as again:
        assert expected == ({table: bag(again, table) for table in again.tables}, again.views)
