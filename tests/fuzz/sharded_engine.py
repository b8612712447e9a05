"""A database over shards as an engine of the fuzzers: the same cases, oracles and comparisons as for embedded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ivme.shards.merge import WEIGHT, consolidated
from tests.fuzz.engines import Engine
from tests.sharded_databases import local_database

ENDING = " shards"
"""What the names of such engines end with; before it stands how many there are."""


class ShardedEngine(Engine):
    """Shards in this process. Reopening is another driver, whose shards recover from the checkpoint."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder / name.replace(" ", "-")
        self.database: Any = local_database(self._folder, int(name.removesuffix(ENDING)))
        self.feeds: dict[str, tuple[Any, dict[Any, int]]] = {}

    @property
    def is_kept(self) -> bool:
        return True

    def reopen(self, *, checkpoint: bool) -> None:
        """Opens the checkpoint anew, from snapshots if asked for; feeds end with their driver."""
        if checkpoint:
            self.database._coordinator.compact(self.database._oldest_wanted, now=True)
        self.database.close()
        self.feeds.clear()
        self.database = local_database(self._folder, None)

    def view(self, name: str) -> Any:
        return self.database.view(name)

    def contents(self, name: str) -> Any:
        views = {view.lower() for view in self.database.views}
        is_view = name.lower() in views
        rows = consolidated(self.database.view(name).weighted()) if is_view else self.database.table_rows(name)
        return rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()

    def weighted(self, made: Any, inputs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        rows = made.weighted(**inputs)
        yield rows.drop_columns([WEIGHT]), rows.column(WEIGHT).to_numpy()


def open_engine(name: str, folder: Path) -> Engine:
    """The engine of a name."""
    return ShardedEngine(name, folder) if name.endswith(ENDING) else Engine(name, folder)
