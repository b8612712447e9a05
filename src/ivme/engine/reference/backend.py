"""The backend in plain Python: it serves where the compiled kernel cannot be imported, and checks it where it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from ivme.algebra.ring import count
from ivme.engine.backend import Block, Codes, EmittedDelta, Inputs, Listed, listed
from ivme.engine.codes.dictionary import NULL_CODE, Dictionary
from ivme.engine.ingest.feed import Feed
from ivme.engine.ordered import OrderedColumn, OrderedMap
from ivme.engine.reference.columns import (
    EmittedTypes,
    PureOverflow,
    Types,
    block_of,
    by_column,
    check_range,
    columns_of,
    counts_of,
    emitted_slots,
    fits,
    load_columns,
    sums_of,
)
from ivme.engine.reference.enumerate import enumerate_items, finds_by_steps, probed_items
from ivme.engine.reference.indexed_map import CheckError
from ivme.engine.reference.interpreter import Delta, Emitted, PureKernel, accumulate
from ivme.engine.reference.kept_rows import PureKeptRows
from ivme.engine.reference.ordered_map import PureOrderedMap
from ivme.plan.ir import program as ir


class PureStale(Exception):  # noqa: N818
    """A cursor that outlived the state it was opened on."""


class PureBackend:
    """Maps of codes in Python dictionaries."""

    shares_reading = False
    stale_cursor: type[Exception] = PureStale
    overflow: type[Exception] = PureOverflow
    broken_check: type[Exception] = CheckError

    def __init__(self) -> None:
        self.kernel = PureKernel(NULL_CODE)
        self.versions: Counter[str] = Counter()
        self._triggers: dict[str, tuple[tuple[ir.Step, ...], dict[ir.Source, Any], EmittedTypes]] = {}
        self._readers: dict[str, ir.Enumeration] = {}
        self._slots: dict[str, Types] = {}
        self._limits: dict[str, Sequence[str]] = {}
        self._tables: set[str] = set()  # storing a row counts as one operation
        self._swept: dict[str, int] = {}
        self._changes: Counter[str] = Counter()
        self.failed_run = 0

    def limit(self, name: str, limits: Sequence[str]) -> list[tuple[int, ...]]:
        self._limits[name] = limits
        entries = self.kernel.maps[name].peek_all().items()
        return [key for key, payload in entries if not fits(payload, limits)]

    def misfits(self) -> list[tuple[str, tuple[int, ...]]]:
        changed = {(stored.declared.name, key): stored for stored, key, _ in self.kernel.journal or ()}
        limited = [(name, key, stored.peek(key)) for (name, key), stored in changed.items() if name in self._limits]
        return [(name, key) for name, key, payload in limited if not fits(payload, self._limits[name])]

    def install(self, maps: Sequence[ir.Map], slots: Sequence[str], orders: Mapping[str, Any]) -> None:
        self._slots.update({declared.name: tuple(slots) if declared.sums else () for declared in maps})
        self.kernel.install(maps, {variable: domain.sort_key for variable, domain in orders.items()})

    def set_table(
        self, name: str, source: ir.Source, key: Sequence[int], *, ring: bool, keep_rows: bool = True
    ) -> Feed:
        keys = tuple(source.row[position] for position in key)
        further = [_keys(name, keys)] if key or not keep_rows else []  # without columns, how many rows have passed
        maps = [ir.Map(name, source.row, "leaf", Fraction(1)), *further]
        self.install([declared for declared in maps if declared.name not in self.kernel.maps], (), {})
        steps: list[ir.Step] = [ir.Load("d1", source)]
        if keep_rows:
            steps.append(ir.Add("d1", name, "" if ring else "present"))
        if further:
            steps += [ir.Project("d2", "d1", keys), ir.Add("d2", further[0].name, "unique" if key else "present")]
        self._tables.add(name)
        return self.set_trigger(name, steps, ())[source.atom.relation]

    def drop_table(self, name: str) -> None:
        self._tables.discard(name)
        self.drop_trigger(name)
        self.drop_map(name)
        self.drop_map(_keys(name, ()).name)

    def saved(self) -> Callable[[], None]:
        kernel, triggers, readers, slots = self.kernel, dict(self._triggers), dict(self._readers), dict(self._slots)
        maps, partitions, tables = dict(kernel.maps), dict(kernel.partitions), set(self._tables)

        def put_back() -> None:
            kernel.maps, kernel.partitions = maps, partitions
            self._triggers, self._readers, self._slots = triggers, readers, slots
            self._tables = tables

        return put_back

    def collect(self) -> None:
        """Python does."""

    def drop_map(self, name: str) -> None:
        self.versions[name] += 1
        self.kernel.maps.pop(name, None)
        self._slots.pop(name, None)
        self._limits.pop(name, None)

    def clear_map(self, name: str) -> None:
        self.versions[name] += 1
        self.kernel.maps[name].clear()

    def set_trigger(self, name: str, steps: Sequence[ir.Step], slots: Sequence[str]) -> Mapping[str, Feed]:
        feeds: dict[str, Feed] = {}
        loads = {}
        for step in steps:
            if isinstance(step, ir.Load):
                feed = feeds.setdefault(step.source.atom.relation, Feed(step.source.row))
                loads[step.source] = feed.load(0, 0, step.source, slots, None)
        self._triggers[name] = (tuple(steps), loads, emitted_slots(steps, tuple(slots), self._slots))
        return feeds

    def drop_trigger(self, name: str) -> None:
        self._triggers.pop(name, None)

    def set_reader(self, name: str, enumeration: ir.Enumeration, slots: Sequence[str] = ()) -> None:  # noqa: ARG002
        self._readers[name] = enumeration

    def drop_reader(self, name: str) -> None:
        self._readers.pop(name, None)

    def set_partition(self, partition: ir.Partition) -> None:
        self.kernel.set_partition(partition)

    def drop_partition(self, name: str) -> None:
        self.kernel.partitions.pop(name, None)

    def set_bounds(self, name: str, lower: int, upper: int) -> None:
        self.kernel.partitions[name].set_bounds(lower, upper)

    def net(self, columns: Sequence[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
        self.kernel.tally.operations += len(weights)
        netted: Delta = {}
        for *row, weight in zip(*(column.tolist() for column in columns), weights.tolist(), strict=True):
            accumulate(netted, tuple(row), weight)
        return columns_of(netted, len(columns)), counts_of(netted)

    def noted(self, name: str) -> tuple[list[Codes], list[Codes]]:
        partition = self.kernel.partitions[name]
        return by_column(partition.take(), partition.arity)

    def sweep(self, name: str, position: int, count: int) -> int:
        return self.kernel.partitions[name].sweep(position, count)

    def census(self, name: str, threshold: int) -> tuple[list[Codes], list[Codes]]:
        return by_column(self.kernel.census(name, threshold), self.kernel.partitions[name].arity)

    def set_threads(self, threads: int) -> None:
        """Plain Python runs on one."""

    @property
    def threads(self) -> int:
        return 1

    def run_many(self, runs: Sequence[tuple[str, Inputs]]) -> list[list[EmittedDelta]]:
        emitted = []
        for self.failed_run, (name, inputs) in enumerate(runs):
            emitted.append(self.run(name, inputs))
        return emitted

    def run(self, name: str, inputs: Inputs) -> list[EmittedDelta]:
        steps, loads, slots = self._triggers[name]

        def loaded(source: ir.Source) -> Delta:
            columns, weights = inputs[source.atom.relation]
            self.kernel.tally.operations += len(weights)
            return load_columns(loads[source], columns, weights)

        before = self.kernel.tally.operations
        if self.kernel.journal is not None:
            emitted = self._execute(steps, loaded)
        else:
            self.begin()
            try:
                emitted = self._execute(steps, loaded)
            except BaseException:
                self.roll_back()
                raise
            self.commit()
        if name in self._tables:
            self._changes[name] += sum(len(weights) for _, weights in inputs.values())
            self.kernel.tally.operations = before + sum(len(weights) for _, weights in inputs.values())
        return [
            EmittedDelta(view, schema, columns_of(delta, len(schema)), counts_of(delta), sums_of(delta, types))
            for view, deltas in emitted.items()
            for (schema, delta), types in zip(deltas, slots[view], strict=True)
        ]

    def _execute(self, steps: Sequence[ir.Step], loaded: Callable[[ir.Source], Delta]) -> Emitted:
        """Runs steps within a transaction, and checks what they changed."""
        journal = self.kernel.journal
        assert journal is not None
        start, before = len(journal), self.kernel.tally.operations
        emitted = self.kernel.execute(steps, loaded)
        done = self.kernel.tally.operations - before
        for stored, key, _ in journal[start:]:
            check_range(stored.get(key), self._slots[stored.declared.name])
        self.kernel.tally.operations = before + done
        return emitted

    def begin(self) -> None:
        self.kernel.begin()

    def commit(self) -> None:
        self._outdate()
        self.kernel.commit()

    def roll_back(self) -> None:
        self._outdate()
        self.kernel.roll_back()

    def _outdate(self) -> None:
        """Cursors on maps that the transaction changed are stale from here on."""
        self.versions.update({stored.declared.name for stored, _, _ in self.kernel.journal or ()})

    def open(self, reader: str, inputs: Sequence[int], *, whole: bool = False) -> PureCursor:  # noqa: ARG002
        return PureCursor(self, self._readers[reader], inputs)

    def request(self, reader: str, inputs: Sequence[int], limit: int, *, waits: bool = True) -> Listed | None:  # noqa: ARG002
        block = self.open(reader, inputs).next_block(limit + 1)
        return listed(block) if len(block[1]) <= limit else None

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        enumeration = self._readers[reader]
        found: list[tuple[int, Any]] = []
        requests = list(zip(*(column.tolist() for column in columns), strict=True)) if columns else [()]
        if finds_by_steps(enumeration):
            found = [*probed_items(enumeration, self.kernel, requests)]
        else:
            for number, inputs in enumerate(requests):
                found += [(number, item) for item in self.items(enumeration, inputs)]
        numbers = np.array([number for number, _ in found], dtype=np.int64)
        return numbers, block_of([item for _, item in found], enumeration)

    def items(self, enumeration: ir.Enumeration, inputs: Sequence[int]) -> Iterator[Any]:
        if finds_by_steps(enumeration):
            return (item for _, item in probed_items(enumeration, self.kernel, [tuple(inputs)]))
        given = {variable: code for (variable, _), code in zip(enumeration.inputs, inputs, strict=True)}
        renamed = tuple((variable, variable) for variable, _ in enumeration.inputs)
        return enumerate_items(replace(enumeration, inputs=renamed), self.kernel.maps, given)

    def kept_rows(self, keys: int, values: int) -> PureKeptRows:
        return PureKeptRows(keys + values)

    def ordered_map(self, order: Sequence[OrderedColumn], groups: int, summed: Sequence[int] = ()) -> OrderedMap:
        return PureOrderedMap(order, groups, summed)

    def get(self, name: str, codes: Sequence[int]) -> int:
        found = self.kernel.maps[name].get(tuple(codes))
        return 0 if found is None else count(found)

    def scan(
        self,
        name: str,
        *,
        distinct: bool = True,  # noqa: ARG002
        only_decodes: bool = False,  # noqa: ARG002
    ) -> tuple[list[Codes], Codes]:
        stored = dict(self.kernel.maps[name].items())
        return columns_of(stored, len(self.kernel.maps[name].declared.schema)), counts_of(stored)

    def weights(self, name: str) -> Codes:
        return self.scan(name)[1]

    def column(self, name: str, position: int) -> Codes:
        return self.scan(name)[0][position]

    def rows_of_keys(self, name: str, key: Sequence[int], keys: Sequence[Codes]) -> list[Codes]:
        wanted = set(zip(*(column.tolist() for column in keys), strict=True))
        stored = self.kernel.maps[name].peek_all()
        found = {row: payload for row, payload in stored.items() if tuple(row[i] for i in key) in wanted}
        return columns_of(found, len(self.kernel.maps[name].declared.schema))

    def is_sweep_due(self, dictionaries: Sequence[Dictionary], least: int) -> bool:
        kept, added = sum(each.kept for each in dictionaries), sum(each.added for each in dictionaries)
        maps = self.kernel.maps
        shrunk = sum(max(0, size - len(maps.get(name, ()))) for name, size in self._swept.items())
        return kept + added >= least and added + shrunk > kept // 2 + self.entries() // 4

    def sweep_codes(self, dictionaries: Sequence[Dictionary], held: Sequence[Codes]) -> None:
        found = {code for words in held for code in words.tolist()}
        for stored in self.kernel.maps.values():
            found.update(code for key in stored.peek_all() for code in key)
        for partition in self.kernel.partitions.values():
            found.update(code for side in partition.noted() for key in side for code in key)
        for dictionary in dictionaries:
            dictionary.sweep(found)
        self._swept = {name: len(stored) for name, stored in self.kernel.maps.items()}

    def size(self, name: str) -> int:
        further = self.kernel.maps.get(_keys(name, ()).name)
        if further is not None and not further.declared.schema:
            return self.get(further.declared.name, ())
        return len(self.kernel.maps[name])

    def changes(self, name: str) -> int:
        return self._changes[name]

    def entries(self) -> int:
        return sum(len(stored) for stored in self.kernel.maps.values())

    def memory_bytes(self) -> int:
        """A rough estimate: Python's dictionaries take about 250 bytes an entry."""
        return 250 * self.entries()

    def release_buffers(self) -> None:
        """It has none."""

    def limit_memory(self, room: int | None, limit: int) -> None:
        """Nothing stops it on the way: its memory is looked at before a change is committed."""

    @property
    def operations(self) -> int:
        return self.kernel.tally.operations

    @property
    def scans(self) -> int:
        return self.kernel.tally.scans


def _keys(table: str, columns: tuple[str, ...]) -> ir.Map:
    """The map of a table's keys."""
    return ir.Map(f"keys of {table}", columns, "leaf", Fraction(1))


class PureCursor:
    """An enumeration under way; it notices when the data changes."""

    pinned = False

    def __init__(self, backend: PureBackend, enumeration: ir.Enumeration, inputs: Sequence[int]) -> None:
        self._backend = backend
        self._enumeration = enumeration
        parts = enumeration.branches or (enumeration,)
        loops = [loop for part in parts for each in (part.loops, *part.guards) for loop in each]
        self._maps = {loop.read.map for loop in loops} | {read.map for part in parts for read in part.factors}
        self._maps |= {extreme.read.map for extreme in enumeration.extremes}
        steps = [step for branch in enumeration.branches for step in (*branch.probe, *branch.answer)]
        self._maps |= {read.map for step in steps if isinstance(step, ir.Join) for read in step.reads}
        self._version = self._versions()
        self._items = backend.items(enumeration, inputs)

    def next_block(self, max_rows: int = 8192) -> Block:
        if self._version != self._versions():
            raise PureStale("the cursor outlived the state it was opened on")
        return block_of(list(islice(self._items, max_rows)), self._enumeration)

    def _versions(self) -> int:
        return sum(self._backend.versions[name] for name in self._maps)
