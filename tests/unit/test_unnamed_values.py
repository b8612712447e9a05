"""Values that are passed by position are refused with the call to write, on every runtime."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import UnnamedValueError
from ivme.rings import Covariance
from tests.serve.running import serving
from tests.sharded_databases import local_database

_VIEWS = {
    "of_city": "SELECT id FROM orders WHERE city = :city",
    "of_cities": "SELECT id FROM orders WHERE city IN (:cities) AND id = :id",
    "total": "SELECT COUNT(*) AS n FROM orders",
}
_SAID = {
    "of_city": "view of_city takes values by name: write view(city='Bern')",
    "of_cities": "view of_cities takes values by name: write view(cities='Bern', id=...)",
    "total": "view total has no parameters: write view() or iterate over the view",
}


def _fill(database: Any) -> None:
    database.create_table("orders", {"id": "int", "city": "string"})
    for name, text in _VIEWS.items():
        database.create_view(name, text)


def _check(database: Any) -> None:
    for name, said in _SAID.items():
        with pytest.raises(UnnamedValueError) as told:
            database.view(name)("Bern")
        assert said == str(told.value)


def test_views_of_a_database_take_values_by_name() -> None:
    with ivme.Database() as database:
        _fill(database)
        _check(database)
        database.create_table("edge", {"a": "int", "b": "int"})
        reach: Any = database.create_view("reach", "Q(Y | X) = closure(edge)(X, Y)")
        with pytest.raises(TypeError, match=r"write view\(X=3\)"):
            reach(3)
        ring: Any = database.create_ring_view("moments", "Q() = edge(A, B)", Covariance("A", "B"))
        with pytest.raises(UnnamedValueError, match="moments has no parameters"):
            ring(3)


def test_views_over_shards_take_values_by_name(tmp_path: Path) -> None:
    database = local_database(tmp_path, 2)
    _fill(database)
    _check(database)
    database.close()


def test_statements_and_views_behind_a_server_take_values_by_name() -> None:
    async def ask(address: str) -> None:
        async with await ivme.connect_async(address) as remote:
            view: Any = await remote.view("of_city")
            with pytest.raises(UnnamedValueError, match="city='Bern'"):
                await view("Bern")
            with pytest.raises(UnnamedValueError, match="pass name=value"):
                await remote.sql("SELECT id FROM orders WHERE id = :id", 1)  # type: ignore[arg-type]

    with ivme.Database() as database, serving(database) as address, ivme.connect(address) as remote:
        _fill(remote)
        _check(remote)
        for each in (database, remote):
            with pytest.raises(UnnamedValueError, match=r'db\.sql\("SELECT \* FROM t WHERE id = :id", id=1\)'):
                each.sql("SELECT id FROM orders WHERE id = :id", 1)  # type: ignore[arg-type]
        asyncio.run(ask(address))
