"""Databases on either backend, for tests that hold for both."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa

from ivme.database import Database
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime.delta import ArrowRows
from ivme.engine.runtime.distinct import added_up
from ivme.engine.runtime.runtime import Runtime

BACKENDS = ("native", "pure")


def make_database(backend: str) -> Database:
    """An empty database on the compiled kernel, or on the one in plain Python."""
    with patch("ivme.definitions.definitions.new_runtime", lambda: make_runtime(backend)):
        return Database()


def make_runtime(backend: str) -> Runtime:
    if backend == "native":
        return Runtime(NativeBackend(), native_domains())
    return Runtime(PureBackend(), Domains())


def weighted(data: pa.Table, weights: Codes) -> dict[Any, int]:
    """Rows as Python values with their net weights."""
    return dict(added_up(zip(ArrowRows(data, weights).rows(), weights.tolist(), strict=True)))


def rows_of(view: Any, **parameters: Any) -> list[Any]:
    return sorted(view(**parameters), key=repr)


def table_rows(db: Database, table: str) -> dict[Any, int]:
    """What a table holds, read from a view of all its columns that comes and goes."""
    names = db.relation(table).column_names
    view = db.create_view("everything", f"SELECT {', '.join(names)} FROM {table}")
    found = dict(view.items())
    db.drop_view("everything")
    return found


def in_one_batch(db: Database, *steps: tuple[str, str, Any]) -> None:
    with db.batch() as batch:
        for method, table, rows in steps:
            getattr(batch, method)(table, rows)


def failing(method: Any, times: int) -> Any:
    """The method, which fails at its n-th call only."""
    calls = []

    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == times:
            raise MemoryError
        return method(*arguments)

    return call


def state_of(db: Database) -> Any:
    """What a failure must not change: names, followers, groups, the kernel's maps and their sizes."""
    runtime, backend = db._runtime, db._runtime.backend
    maps = backend._maps if hasattr(backend, "_maps") else backend.kernel.maps  # type: ignore[attr-defined]
    followers = {name: state.followers for name, state in runtime.catalog.views.items()}
    groups = {group.name: set(group.blueprints) for group in runtime.catalog.shared.values()}
    return db.tables, db.views, followers, groups, {name: backend.size(name) for name in maps}
