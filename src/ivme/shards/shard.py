"""A shard: its engines, brought from step to step, or rebuilt from a snapshot and the steps since.

A step is taken in two halves. `hold` applies it in an open transaction of each engine, and asks whether to keep it;
only a step whose record is in the checkpoint is final. So a shard has no step that did not happen, and what it lacks of
those that did, it reads from the checkpoint: it may die at any moment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ivme.errors import IvmeError, SparkError, StaleCursor
from ivme.query.failures import with_failing_rows
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.checkpoint import Checkpoint, Record
from ivme.shards.degrees import local_degrees
from ivme.shards.distribute import Placed, place_in_view
from ivme.shards.engine import Engine, change_schema, large_views
from ivme.shards.exchange import due, readers
from ivme.shards.held_step import HeldStep, Round, StepError, Work, by_engine
from ivme.shards.merge import finish
from ivme.shards.parts import CHANGE, EngineKey, PackedPart, Part
from ivme.shards.sharding import needs_merging, sharding
from ivme.shards.tails import StepLog, read_tail, together

REQUEST = "?"
"""The column with the number of the request that a row answers."""

_ABOUT = EngineKey("")

_FRAMES, _OTHER_FRAMES = 15, 300
"""More calls than one transaction within another takes, and than all else does."""


class Shard:
    """The engines of one shard. One thread at a time."""

    def __init__(self, checkpoint: Checkpoint, number: int) -> None:
        self.checkpoint = checkpoint
        self.number = number
        self.step = 0
        self.sources: Mapping[str, int] = {}
        self.rebuilds = 0
        self.catalog = ShardCatalog()
        self.catalog_name: str | None = None
        self.engines: dict[EngineKey, Engine] = {}
        self._log = StepLog()
        self._held: tuple[ShardCatalog, Mapping[EngineKey, Engine]] | None = None

    @property
    def entries(self) -> dict[str, int]:
        """The sizes of its engines."""
        return {str(key): engine.entries for key, engine in self.engines.items()}

    # Steps that happened

    def ensure_at(self, step: int) -> None:
        """Is at a step that has happened; a shard that is further never goes back."""
        if self.step > step:
            raise StaleCursor(
                f"the database is at step {self.step} and no longer at {step}: it changed while it was being read; "
                "read it again"
            )
        if self.step < step:
            self._catch_up(step)

    def recover(self) -> None:
        """Is at the last step that has happened."""
        last = self.checkpoint.last_record()
        if last is not None:
            self.ensure_at(last.number)

    def _catch_up(self, step: int) -> None:
        if not self.step or self.checkpoint.record(self.step + 1) is None:
            self._restore(step)
        while self.step < step:
            record = self.checkpoint.record(self.step + 1)
            if record is None:
                raise SparkError(f"the checkpoint {self.checkpoint.store.address} lacks the record of {self.step + 1}")
            self._repeat(record)

    def _repeat(self, record: Record) -> None:
        """Applies a step that has happened."""
        if record.is_layout:
            self._log.spoil()
            catalog = ShardCatalog.from_json(self.checkpoint.read_catalog(record.catalog))
            self._forget()
            self.lay_out(catalog, record.layout_files(self.number))
            self.catalog_name, self.step, self.sources = record.catalog, record.number, record.sources
            return
        catalog, engines = self.catalog, self.engines
        if record.catalog != self.catalog_name:
            self._log.spoil()
            catalog = ShardCatalog.from_json(self.checkpoint.read_catalog(record.catalog))
            engines = self._adopted(catalog)
        name = record.files.get(str(self.number))
        packed = [] if name is None else list(self.checkpoint.read_file(name))
        try:
            for key, parts in by_engine(each.unpacked() for each in packed):
                engines[key].apply(parts, record.clipped)
            self._complete(catalog, engines)
        except IvmeError as error:
            self._forget()  # half of a step: nothing of it may be used
            raise SparkError(f"step {record.number} cannot be repeated: {error}") from error
        self.catalog, self.engines, self.catalog_name = catalog, engines, record.catalog
        self.step, self.sources = record.number, record.sources
        self._log.add(record.number, record.clipped, packed)

    def _restore(self, step: int) -> None:
        """Starts again from the newest snapshot up to a step, and its tails."""
        self.rebuilds += 1
        self._forget()
        wanted = self.checkpoint.record(step) or self.checkpoint.last_record()
        layout = 0 if wanted is None else wanted.layout
        found = [each for each in self.checkpoint.snapshots(self.number) if layout <= each.step <= step]
        if not found:
            self.step = max(layout - 1, 0)  # a layout does not depend on what was before it
            return
        parts = self.checkpoint.read_file(found[-1].path(self.number))
        about = json.loads(next(parts).unpacked().rows.column("json")[0].as_py())
        catalog = ShardCatalog.from_json(about["catalog"])
        engines = self._adopted(catalog)
        for part in (packed.unpacked() for packed in parts):
            if part.rows.num_rows:
                engines[part.engine].apply([(part.table, part.rows)])
        self._complete(catalog, engines)
        self.step, self.sources, self.catalog_name = about["step"], about["sources"], about["catalog_name"]
        self.catalog, self.engines = catalog, engines
        self._read_tails(step)

    def _read_tails(self, step: int) -> None:
        """Applies the steps that tails have, up to one."""
        read = 0
        for name in self.checkpoint.tails(self.number):
            if name.first <= self.step + 1 <= name.last <= step:
                self.sources, steps = read_tail(self.checkpoint.read_file(name.path(self.number)))
                for clipped, packed in together(each for each in steps if each.number > self.step):
                    for key, parts in by_engine(each.unpacked() for each in packed):
                        self.engines[key].apply(parts, clipped)
                self.step, read = name.last, read + 1
        self._log.begin(self.step, read)

    def lay_out(self, catalog: ShardCatalog, files: Sequence[str]) -> None:
        """Starts with all rows of a new layout; the shard has nothing else."""
        engines = self._adopted(catalog)
        packed = (part for name in files for part in self.checkpoint.read_file(name))
        for key, parts in by_engine(each.unpacked() for each in packed):
            engines[key].apply(parts)
        self._complete(catalog, engines)
        self.catalog, self.engines = catalog, engines

    def _forget(self) -> None:
        self.step, self.catalog, self.catalog_name, self.engines, self.sources = 0, ShardCatalog(), None, {}, {}
        self._log.spoil()

    def snapshot(self, epoch: int) -> int:
        """Writes everything that the shard has to the checkpoint; the step at which that is."""
        about = {
            "step": self.step,
            "epoch": epoch,
            "sources": dict(self.sources),
            "catalog_name": self.catalog_name,
            "catalog": self.catalog.to_json(),
        }
        parts = [Part(_ABOUT, "about", pa.table({"json": [json.dumps(about)]}))]
        parts += [Part(key, *each) for key, engine in self.engines.items() for each in engine.contents()]
        self.checkpoint.write_snapshot(self.number, self.step, epoch, map(PackedPart.of, parts))
        self._log.begin(self.step)
        return self.step

    def tail(self, epoch: int) -> int:
        """Writes the steps since the last snapshot, or a snapshot if they are too many; the step at which that is."""
        found = self._log.tail(self.sources)
        if found is None:
            return self.snapshot(epoch)
        first, parts = found
        if first <= self.step:
            self.checkpoint.write_tail(self.number, first, self.step, epoch, parts)
            self._log.wrote_tail(self.step)
        return self.step

    # Steps that may happen

    def hold(
        self,
        number: int,
        catalog: tuple[str, ShardCatalog] | None,
        parts: Sequence[PackedPart],
        clipped: Sequence[str],
        decide: Callable[[HeldStep], bool | Round],
        checked: Sequence[str] = (),
        first_round: int = 0,
    ) -> bool:
        """Applies a step to be, and keeps it if `decide` says so; StepError if it cannot be applied.

        `catalog` is the new one, with its name in the checkpoint, if it changes. The changes of `checked` views are
        wanted, as their sums may not fit. `decide` is asked after each round, and may begin the next one.
        """
        self.ensure_at(number - 1)
        name, wanted = catalog or (self.catalog_name, self.catalog)
        engines = self._adopted(wanted) if catalog is not None else self.engines
        given, taken = [part.unpacked() for part in parts], list(parts)
        now, later = (given, []) if catalog is not None else due(given, wanted, first_round)  # new engines are filled
        work = by_engine(now)
        new: Work = [each for each in work if each[0] not in self.engines]
        held = HeldStep()
        followed: list[Engine] = []
        try:
            for key, rows in new:
                engines[key].apply(rows, clipped)
            if catalog is not None:
                followed = self._complete(wanted, engines)
        except IvmeError as error:
            _stop_following(followed)
            raise StepError(error, in_table=False) from error

        def decided() -> bool | Work:
            nonlocal later
            held.entries = {str(key): engine.entries for key, engine in engines.items()}
            held.large = large_views(engines)
            found = decide(held)
            if isinstance(found, bool):
                return found
            taken.extend(found[1])
            now, later = due((*later, *(part.unpacked() for part in found[1])), wanted, found[0])
            return by_engine(now)

        try:
            self._held = wanted, engines
            old = [each for each in work if each[0] in self.engines]
            kept = self._hold_all(old, clipped, held, decided, checked)
        except BaseException:
            _stop_following(followed)
            raise
        finally:
            self._held = None
        if kept:
            self.catalog, self.engines, self.catalog_name, self.step = wanted, engines, name, number
            self._log.spoil() if catalog is not None else self._log.add(number, clipped, taken)
        else:
            _stop_following(followed)
        return kept

    def _hold_all(
        self,
        work: Work,
        clipped: Sequence[str],
        held: HeldStep,
        decide: Callable[[], bool | Work],
        checked: Sequence[str],
    ) -> bool:
        """Opens a transaction in each engine, the next one within the one before, and decides in the innermost.

        What the next round brings is opened within them.

        No exception passes through a transaction that is open: an error is noted, and all roll back.
        """
        failed: list[BaseException] = []
        if (frames := _OTHER_FRAMES + _FRAMES * len(self.engines)) > sys.getrecursionlimit():
            sys.setrecursionlimit(frames)

        def opened(position: int) -> bool:
            try:
                while position == len(work):
                    found = decide()
                    if isinstance(found, bool):
                        return found
                    work.extend(found)
                key, rows = work[position]
                engine, wanted = self.engines[key], not key.is_table and key.name in checked
                return engine.hold(rows, clipped, lambda each: inner(key, each, position + 1), checked=wanted)
            except IvmeError as error:
                undecided = position == len(work)
                failed.append(error if undecided else StepError(error, in_table=work[position][0].is_table))
            except BaseException as error:
                failed.append(error)
            return False

        def inner(key: EngineKey, change: pa.Table | None, position: int) -> bool:
            if change is not None and change.num_rows:
                made = self.engines[key].sharding
                if made is not None and needs_merging(made):
                    held.partial.append((key.name, change))
                    return opened(position)
                held.told.append((key.name, change))
                if self.catalog.view(key.name).followed:
                    held.changes.append(PackedPart.of(Part(key, CHANGE, change)))
            return opened(position)

        kept = opened(0)
        if failed:
            raise failed[0]
        return kept

    def _adopted(self, catalog: ShardCatalog) -> dict[EngineKey, Engine]:
        """The engines of a new catalog: those that are there, also with more columns, and new ones."""
        found: dict[EngineKey, Engine] = {}
        for table in catalog.tables:
            key = EngineKey(table.name)
            found[key] = self.engines[key].grown(table) if key in self.engines else Engine.of_table(table)
        for view in catalog.views:
            made = sharding(view, catalog.tables)
            for key in self._keys(view):
                found[key] = self.engines[key].grown_view(made) if key in self.engines else Engine.of_view(made)
        return found

    def _keys(self, view: ViewEntry) -> list[EngineKey]:
        """The engines that a view has here: those of patterns that have a cell in this shard."""
        shards = view.routing.shards
        here = [(self.number - pattern.first) % shards < pattern.cells for pattern in view.routing.patterns]
        return [EngineKey(view.name, view.generation, number) for number, is_here in enumerate(here) if is_here]

    def _complete(self, catalog: ShardCatalog, engines: Mapping[EngineKey, Engine]) -> list[Engine]:
        """Makes the views of new engines; those whose view is followed from now on."""
        fed = readers(catalog)
        told = [(view, view.followed or view.name in fed) for view in catalog.views]
        keys = [(key, is_told) for view, is_told in told for key in self._keys(view)]
        return [engines[key] for key, followed in keys if engines[key].complete(followed=followed)]

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
        """What this shard has of the rows or groups with these keys; None if it has no engine of the view.

        Within a step that makes views, these are there already.
        """
        catalog, engines = self._held or (self.catalog, self.engines)
        parts = [engines[key].parts_of(keys) for key in self._keys(catalog.view(view))]
        return pa.concat_tables(parts) if parts else None

    def table_rows(self, table: str) -> pa.Table:
        """The rows of a table that this shard has, with their multiplicities as last column."""
        return next(rows for _, rows in self.engines[EngineKey(table)].contents())

    def relation_rows(self, relation: str) -> pa.Table:
        """The rows of a table, or of a view, that this shard has, weights last; none if the driver merges them."""
        if EngineKey(relation) in self.engines:
            return self.table_rows(relation)
        entry = self.catalog.view(relation)
        made = sharding(entry, self.catalog.tables)
        parts = [] if needs_merging(made) else [self.engines[key].rows({}) for key in self._keys(entry)]
        whole = (finish(made, part) if made.has_partial_rows else part for part in parts)
        schema = change_schema(made)
        return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in whole)])

    def rows_of_keys(self, table: str, keys: pa.Table) -> pa.Table:
        """The rows of a table that have the primary keys of some others."""
        return self.engines[EngineKey(table)].rows_of_keys(table, keys)

    def spread(self, catalog: ShardCatalog, view: str) -> Iterable[Placed]:
        """This shard's rows of a view's tables, as parts for the shards where the new view wants them."""
        entry = catalog.view(view)
        made = sharding(entry, catalog.tables)
        for relation in made.relations:
            yield from place_in_view(catalog, entry, made.table(relation), self.relation_rows(relation))

    def degrees(self, catalog: ShardCatalog, view: str) -> list[dict[str, Any]]:
        """Statistics of the values in this shard's rows of a view's tables."""
        plan = sharding(catalog.view(view), catalog.tables)
        atoms = with_failing_rows(plan.query)
        return [local_degrees(atom, plan.table(atom.relation), self.relation_rows(atom.relation)) for atom in atoms]


def _stop_following(engines: Iterable[Engine]) -> None:
    for engine in engines:
        engine.complete(followed=False)
