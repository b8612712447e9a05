"""A shard: its engines, brought from step to step of the log, or rebuilt from a snapshot and the steps since.

A shard knows how far it is. A caller that asks it to go on says where it should be: if it is there, the new steps are
applied; if it has applied them already (Spark repeats a task that failed), the answer is repeated; and otherwise
everything is rebuilt. So a shard may die at any moment, and what it holds is never trusted beyond what the checkpoint
says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ivme.errors import DataError, IvmeError, SparkError, StaleCursor
from ivme.query.failures import with_failing_rows
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.change_files import PARTIAL, merged_path
from ivme.shards.degrees import local_degrees
from ivme.shards.distribute import Placed, place_in_view, write_placed
from ivme.shards.engine import Engine
from ivme.shards.journal import Step, StepJournal
from ivme.shards.parts import EngineKey, Part, PartFile, read_parts, write_parts
from ivme.shards.sharding import needs_merging, sharding

Position = tuple[int, str]
"""A step's number and digest; (0, "") is the beginning."""

REQUEST = "?"
"""The column with the number of the request that a row answers."""

_CATALOG = EngineKey("")


@dataclass(frozen=True, slots=True)
class Base:
    """Where a shard should be: a snapshot, and the steps since then. This is what the state store holds.

    `size` is how many entries the shard had at its last step.
    """

    snapshot: int = 0
    file: PartFile | None = None
    log: tuple[Position, ...] = ()
    start: Position = (0, "")
    size: int = 0

    @property
    def position(self) -> Position:
        return self.log[-1] if self.log else self.start

    def to_json(self) -> dict[str, Any]:
        file = None if self.file is None else self.file.to_json()
        return {"snapshot": self.snapshot, "file": file, "log": self.log, "start": self.start, "size": self.size}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Base:
        file = None if found["file"] is None else PartFile(*found["file"])
        log = tuple((number, digest) for number, digest in found["log"])
        return Base(found["snapshot"], file, log, (found["start"][0], found["start"][1]), found["size"])


class Shard:
    """The engines of one shard. One thread at a time."""

    def __init__(self, journal: StepJournal, number: int) -> None:
        self.journal = journal
        self.number = number
        self.position: Position | None = (0, "")
        self.rebuilds = 0
        self.catalog = ShardCatalog()
        self.engines: dict[EngineKey, Engine] = {}
        self._applied: list[EngineKey] = []
        self._failed_in_table = False
        self._reports: dict[int, dict[str, Any]] = {}
        self._base = Base()

    # Steps

    def advance(self, base: Base, steps: Sequence[Position]) -> list[dict[str, Any]]:
        """Applies the steps after a base, or what is missing for it; a report for each."""
        if steps and self.position == steps[-1] and all(number in self._reports for number, _ in steps):
            return [self._reports[number] for number, _ in steps]
        if self.position != base.position:
            self.rebuild(base)
        self._base = base
        self._reports = {}
        for position in steps:
            self._reports[position[0]] = self._step(position)
        return list(self._reports.values())

    def ensure_at(self, base: Base) -> None:
        """Is where a base says, to be read from. A shard that is further never goes back for a reader."""
        if self.position == base.position:
            return
        if self.position is not None and self.position[0] >= base.position[0] > 0:
            raise StaleCursor(
                f"the database is at step {self.position[0]} and no longer at {base.position[0]}: it changed while it "
                "was being read; read it again"
            )
        self.rebuild(base)
        self._base = base

    def _step(self, position: Position) -> dict[str, Any]:
        step = self.journal.read_step(*position)
        self.position = None
        if step.undo is not None:
            self._take_back(step.undo)
        error = self._apply(step)
        self._base = replace(self._base, log=(*self._base.log, position))
        self.position = position
        return {
            "shard": self.number,
            "step": step.number,
            "error": None if error is None else [type(error).__name__, str(error)],
            "where": None if error is None else ("table" if self._failed_in_table else "view"),
            "entries": {_label(key): engine.entries for key, engine in self.engines.items()},
        }

    def _apply(self, step: Step) -> IvmeError | None:
        """Applies a step; the error of the data that stopped it, after which it must be taken back."""
        self._applied = []
        self._failed_in_table = False
        try:
            if step.catalog is not None:
                self._adopt(ShardCatalog.from_json(step.catalog))
            for key, parts in _by_engine(self._parts(step)).items():
                self._failed_in_table = key.is_table
                self.engines[key].apply(parts, step.clipped)
                self._applied.append(key)
            self._failed_in_table = False
            if step.catalog is not None:
                self._complete()
            self._write_changes(step)
        except SparkError:
            raise
        except IvmeError as error:
            return error
        return None

    def _parts(self, step: Step) -> Iterable[Part]:
        for file in step.files:
            if file.shard == self.number:
                yield from read_parts(self.journal.root, file)

    def _adopt(self, catalog: ShardCatalog) -> None:
        """Makes the engines of a new catalog, and forgets those that it has no more."""
        wanted: dict[EngineKey, Any] = {EngineKey(table.name): table for table in catalog.tables}
        for view in catalog.views:
            wanted.update(dict.fromkeys(self._keys(view), sharding(view, catalog.tables)))
        self.catalog = catalog
        kept = {key: engine for key, engine in self.engines.items() if key in wanted}
        for key, what in wanted.items():
            if key not in kept:
                kept[key] = Engine.of_table(what) if key.is_table else Engine.of_view(what)
        self.engines = kept

    def _keys(self, view: ViewEntry) -> list[EngineKey]:
        """The engines that a view has here: those of patterns that have a cell in this shard."""
        shards = view.routing.shards
        here = [(self.number - pattern.first) % shards < pattern.cells for pattern in view.routing.patterns]
        return [EngineKey(view.name, view.generation, number) for number, is_here in enumerate(here) if is_here]

    def _complete(self) -> None:
        for view in self.catalog.views:
            for key in self._keys(view):
                self.engines[key].complete(followed=view.followed)

    def _write_changes(self, step: Step) -> None:
        """Writes the changes of the views that are followed; the same again, if the step is repeated.

        Those of rows that have parts in other shards too wait for the driver to merge them, unless it has.
        """
        for key, engine in self.engines.items():
            change = engine.change()
            if change is None or not change.num_rows or engine.sharding is None:
                continue
            folder = f"changes/{key.name}"
            if needs_merging(engine.sharding):
                if merged_path(self.journal.root, key.name, step.number).exists():
                    continue
                folder = f"{PARTIAL}/{key.name}"
            path = f"{folder}/{step.number}-{self.number}-{key.pattern}"
            file = write_parts(self.journal.root, f"{path}.part", self.number, [Part(key, key.name, change)])
            (self.journal.root / file.path).replace(self.journal.root / path)

    # Undoing and rebuilding

    def _take_back(self, number: int) -> None:
        """Undoes the last step: by the opposite changes where that is possible, and else by rebuilding."""
        for folder in ("changes", PARTIAL):
            for path in (self.journal.root / folder).glob(f"*/{number}-{self.number}-*"):
                path.unlink()
        step = self.journal.read_step(number)
        engines = [self.engines[key] for key in self._applied]
        if step.catalog is not None or step.clipped or not all(engine.takes_back for engine in engines):
            log = tuple(position for position in self._base.log if position[0] != number)
            self.rebuild(replace(self._base, log=log))
            return
        for key, parts in _by_engine(self._parts(step)).items():
            if key in self._applied:
                self.engines[key].apply(parts, sign=-1)
                self.engines[key].change()

    def rebuild(self, base: Base) -> None:
        """Starts anew from a snapshot and the steps since."""
        self.position = None
        self.rebuilds += 1
        self.catalog, self.engines = ShardCatalog(), {}
        if base.file is not None:
            self._restore(base.file)
        steps = [self.journal.read_step(*position) for position in base.log]
        undone = {step.undo for step in steps}
        for step in steps:
            error = None if step.number in undone else self._apply(step)
            if error is not None and step is not steps[-1]:
                raise SparkError(f"step {step.number} of {self.journal.root} cannot be repeated: {error}")
        self.position = base.position

    def snapshot(self) -> PartFile:
        """Writes everything that the shard has to the checkpoint."""
        assert self.position is not None
        root, number = self.journal.root, self.position[0]
        path = f"snapshots/{self.number}/{number}"
        catalog = pa.table({"json": [json.dumps(self.catalog.to_json())]})
        parts = [Part(_CATALOG, "catalog", catalog)]
        file = write_parts(root, f"{path}.part", self.number, _chain(parts, self._contents()))
        (root / file.path).replace(root / path)
        return PartFile(file.shard, path, file.rows, file.digest)

    def _contents(self) -> Iterable[Part]:
        for key, engine in self.engines.items():
            for table, rows in engine.contents():
                yield Part(key, table, rows)

    def _restore(self, file: PartFile) -> None:
        parts = read_parts(self.journal.root, file)
        catalog = next(parts)
        self._adopt(ShardCatalog.from_json(json.loads(catalog.rows.column("json")[0].as_py())))
        for part in parts:
            if part.rows.num_rows:
                self.engines[part.engine].apply([(part.table, part.rows)])
        self._complete()

    # Reading

    def rows(self, view: str, patterns: Iterable[int], requests: pa.Table | None) -> pa.Table:
        """The partial rows of a view in some patterns; `requests` has one row, with the values of parameters."""
        entry = self.catalog.view(view)
        given = {} if requests is None else requests.to_pylist()[0]
        parts = [self.engines[EngineKey(entry.name, entry.generation, pattern)].rows(given) for pattern in patterns]
        return pa.concat_tables(parts)

    def many(self, view: str, requests: pa.Table) -> pa.Table:
        """The partial rows of many access requests, each with the number of its request in front.

        `requests` has that number as its first column, and then the parameters.
        """
        entry = self.catalog.view(view)
        schema = Engine.partial_schema(sharding(entry, self.catalog.tables))
        found = [pa.schema([(REQUEST, pa.int64()), *schema]).empty_table()]
        for request in requests.to_pylist():
            number = request.pop(REQUEST)
            for key in self._keys(entry):
                rows = self.engines[key].rows(request)
                found.append(rows.add_column(0, REQUEST, pa.array([number] * rows.num_rows, pa.int64())))
        return pa.concat_tables(found)

    def path(self, view: str, ends: pa.Table) -> pa.Table | None:
        """The nodes of a shortest path in a closure, from the first to the second of `ends`."""
        (key,) = self._keys(self.catalog.view(view))
        nodes = self.engines[key].path(*ends.column(0).to_pylist())
        return None if nodes is None else pa.table({"node": pa.array(nodes, ends.schema.types[0])})

    def parts_of(self, view: str, keys: pa.Table) -> pa.Table | None:
        """What this shard has of the rows or groups with these keys; None if it has no engine of the view."""
        parts = [self.engines[key].parts_of(keys) for key in self._keys(self.catalog.view(view))]
        return pa.concat_tables(parts) if parts else None

    def table_rows(self, table: str) -> pa.Table:
        """The rows of a table that this shard has, with their multiplicities as last column."""
        return next(rows for _, rows in self.engines[EngineKey(table)].contents())

    def spread(self, catalog: ShardCatalog, view: str, folder: str) -> list[PartFile]:
        """Writes this shard's rows of a view's tables where a new view wants them."""
        entry = catalog.view(view)

        def placed() -> Iterable[Placed]:
            for relation in sharding(entry, catalog.tables).relations:
                yield from place_in_view(catalog, entry, catalog.table(relation), self.table_rows(relation))

        return write_placed(self.journal.root, folder, f"from-{self.number}", placed())

    def degrees(self, catalog: ShardCatalog, view: str) -> list[dict[str, Any]]:
        """Statistics of the values in this shard's rows of a view's tables."""
        plan = sharding(catalog.view(view), catalog.tables)
        atoms = with_failing_rows(plan.query)
        return [local_degrees(atom, self.table_rows(atom.relation)) for atom in atoms]


def _label(key: EngineKey) -> str:
    return f"table {key.name}" if key.is_table else f"view {key.name}/{key.generation}/{key.pattern}"


def _chain(*parts: Iterable[Part]) -> Iterable[Part]:
    for each in parts:
        yield from each


def _by_engine(parts: Iterable[Part]) -> dict[EngineKey, list[tuple[str, pa.Table]]]:
    """The rows for each engine, those for one table together; tables first, as they find what is wrong with rows."""
    found: dict[EngineKey, dict[str, list[pa.Table]]] = {}
    for part in parts:
        found.setdefault(part.engine, {}).setdefault(part.table, []).append(part.rows)
    ordered = sorted(found, key=lambda key: not key.is_table)
    return {key: [(table, pa.concat_tables(rows)) for table, rows in found[key].items()] for key in ordered}


def error_of(report: Mapping[str, Any]) -> IvmeError | None:
    """The error that a shard reports."""
    if report["error"] is None:
        return None
    kind, message = report["error"]
    known: dict[str, type[IvmeError]] = {"DataError": DataError, "SparkError": SparkError, "StaleCursor": StaleCursor}
    return known.get(kind, DataError)(message)
