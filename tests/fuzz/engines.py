"""The databases that a case runs on: both backends, in memory and in a directory, and shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ivme.database import Database
from ivme.definitions import definitions
from ivme.engine.codes import domains
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression import by_code
from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime import batch, open_read, reader, rebalance, runtime
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.single_row import MOST_SINGLE_ROWS
from tests.fuzz.oracle import arrow_rows
from tests.fuzz.steps import Op
from tests.fuzz.values import Column


def _native() -> Runtime:
    return Runtime(NativeBackend(), native_domains())


def _pure() -> Runtime:
    return Runtime(PureBackend(), Domains())


class Engine:
    """A database on one of the backends, and the feeds of its views with what their changes add up to."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._make = _pure if name.startswith("pure") else _native
        self._path = folder / name.replace(" ", "-") if name.endswith("on disk") else None
        self.database = self._opened()
        self.feeds: dict[str, tuple[Any, dict[Any, int]]] = {}

    @property
    def is_kept(self) -> bool:
        return self._path is not None

    def _opened(self) -> Database:
        with patch.object(definitions, "new_runtime", self._make):
            return Database() if self._path is None else Database(self._path, durability="async")

    def reopen(self, *, checkpoint: bool) -> None:
        """Closes the database and opens it from its directory."""
        if checkpoint:
            self.database.checkpoint()
        self.database.close()
        self.feeds.clear()
        self.database = self._opened()

    def view(self, name: str) -> Any:
        """A view with all ways of reading it."""
        return self.database.definitions.map_view(name)

    def contents(self, name: str) -> Any:
        """The distinct rows of a table or view, and how often each is there."""
        return self.database.contents(name)

    def weighted(self, made: Any, inputs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """The rows of a request as Arrow, piece by piece, and how often each is there."""
        return iter(made.weighted(**inputs))

    def close(self) -> None:
        self.database.close()


def run(target: Any, op: Op, columns: tuple[Column, ...]) -> None:
    """A change, on a database or on a batch."""
    rows = formed(op, columns)
    if op.method == "insert":
        target.insert(op.table, rows)
    elif op.method == "apply":
        target.apply(op.table, rows, list(op.weights))
    else:
        target.delete(op.table, rows, strict=op.method == "delete")


def formed(op: Op, columns: tuple[Column, ...]) -> Any:
    """The rows in the form that the change asks for."""
    if op.form == "dicts" and all(len(row) == len(columns) for row in op.rows):
        return [{c.name: value for c, value in zip(columns, row, strict=True)} for row in op.rows]
    return arrow_rows(columns, op.rows) if op.form == "arrow" else list(op.rows)


_LIMITS: tuple[tuple[Any, str], ...] = (
    (batch, "MOST_SINGLE_ROWS"),
    (runtime, "MOST_SINGLE_ROWS"),
    (domains, "_MOST_CODES_BY_HAND"),
)
_SMALL: tuple[tuple[Any, str, int], ...] = (
    (rebalance, "SMALLEST_PIECE", 3),
    (open_read, "FIRST_ROWS", 2),
    (open_read, "BLOCK", 5),
    (reader, "MANY", 7),
    (by_code, "_MANY", 2),
)


@contextmanager
def limits(few: int) -> Iterator[None]:
    """Limits the single-row path, so that also short batches take the other one.

    Where it is limited at all, batches are cut and rows are read in small pieces, too.
    """
    with ExitStack() as stack:
        for module, name in _LIMITS:
            stack.enter_context(patch.object(module, name, few))
        for module, name, size in _SMALL if few != MOST_SINGLE_ROWS else ():
            stack.enter_context(patch.object(module, name, size))
        yield
