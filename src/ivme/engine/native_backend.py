"""The backend on the compiled kernel: names become the kernel's numbers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ivme.engine.backend import Block, Codes, Cursor, EmittedDelta, Inputs, KeptRows, Listed
from ivme.engine.codes.dictionary import Dictionary
from ivme.engine.cores import cores
from ivme.engine.ingest.feed import Feed
from ivme.engine.ordered import OrderedColumn, OrderedMap
from ivme.errors import PlanError
from ivme.plan.ir import program as ir

if TYPE_CHECKING:
    from ivme._kernel import Balance, RowGate, RowPath
    from ivme.engine.codes.domain import Domain


_ALL = 2**32
"""More places than a table has."""


class NativeBackend:
    """The compiled kernel."""

    def __init__(self, seed: int | None = None, threads: int | None = None) -> None:
        from ivme import _kernel

        self.shares_reading = True
        self.stale_cursor: type[Exception] = _kernel.StaleCursor
        self.overflow: type[Exception] = _kernel.PayloadOverflow
        self.broken_check: type[Exception] = _kernel.BrokenCheck
        self.kernel = _kernel.Kernel(secrets.randbits(64) if seed is None else seed)
        self.kernel.threads = cores() if threads is None else threads
        self.run_one = self.kernel.run_one
        self.run_all = self.kernel.run_all
        self.begin = self.kernel.begin
        self.commit = self.kernel.commit
        self.roll_back = self.kernel.roll_back
        self._maps: dict[str, int] = {}
        self._heaps: dict[str, int] = {}
        self._indexes: dict[str, set[tuple[str, ir.Index]]] = {}
        self._triggers: dict[str, tuple[int, list[str], list[tuple[str, tuple[str, ...]]]]] = {}
        self._readers: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._collects = True

    def install(self, maps: Sequence[ir.Map], slots: Sequence[str], orders: Mapping[str, Any]) -> None:
        for declared in maps:
            if declared.name not in self._maps:
                sums = slots if declared.sums else []
                self._maps[declared.name] = self.kernel.add_map(len(declared.schema), sums, declared.key)
                self._indexes[declared.name] = set()
            number, known = self._maps[declared.name], self._indexes[declared.name]
            for index in declared.indexes:
                if ("plain", index) not in known:
                    self.kernel.add_index(number, index.key, index.values)
            for kind, indexes in (("sorted", declared.sorted_by), ("ranked", declared.ranked_by)):
                for index in indexes:
                    if (kind, index) not in known:
                        order = _native_order(orders.get(declared.schema[index.values[0]]))
                        self.kernel.add_sorted(number, index.key, index.values[0], order, kind == "ranked")
                known |= {(kind, index) for index in indexes}
            known |= {("plain", index) for index in declared.indexes}

    def set_table(
        self, name: str, source: ir.Source, key: Sequence[int], *, ring: bool, keep_rows: bool = True
    ) -> Feed:
        if name not in self._heaps:
            self._heaps[name] = self.kernel.add_heap(len(source.row), key, keep_rows)
        self.drop_trigger(name)
        feed = Feed(source.row)
        columns = [feed.column(column) for column in source.atom.columns]
        number = self.kernel.add_trigger(0, (), [("store", 0, columns, self._heaps[name], ring)])
        self._triggers[name] = (number, [source.atom.relation], [])
        return feed

    def drop_table(self, name: str) -> None:
        self.drop_trigger(name)
        if name in self._heaps:
            number = self._heaps.pop(name)
            if self._collects:
                self.kernel.drop_heap(number)

    def limit(self, name: str, limits: Sequence[str]) -> list[tuple[int, ...]]:
        return self.kernel.limit(self._maps[name], limits)

    def misfits(self) -> list[tuple[str, tuple[int, ...]]]:
        found = self.kernel.misfits()
        names = {number: name for name, number in self._maps.items()} if found else {}
        return [(names[number], codes) for number, codes in found]

    def saved(self) -> Callable[[], None]:
        self._collects = False
        maps, indexes = dict(self._maps), {name: set(known) for name, known in self._indexes.items()}
        triggers, readers, partitions = dict(self._triggers), dict(self._readers), dict(self._partitions)
        heaps = dict(self._heaps)

        def put_back() -> None:
            self._maps, self._indexes = maps, indexes
            self._triggers, self._readers, self._partitions = triggers, readers, partitions
            self._heaps = heaps

        return put_back

    def collect(self) -> None:
        """An open cursor keeps a map's memory until it is gone; emptied, the map makes it stale."""
        maps, partitions, triggers, readers, heaps = map(set, self.kernel.alive())
        for trigger in triggers.difference(number for number, _, _ in self._triggers.values()):
            self.kernel.drop_trigger(trigger)
        for reader in readers.difference(self._readers.values()):
            self.kernel.drop_reader(reader)
        for partition in partitions.difference(self._partitions.values()):
            self.kernel.drop_partition(partition)
        for number in maps.difference(self._maps.values()):
            self._drop_map(number)
        for heap in heaps.difference(self._heaps.values()):
            self.kernel.drop_heap(heap)
        self._collects = True

    def drop_map(self, name: str) -> None:
        if name not in self._maps:
            return
        del self._indexes[name]
        number = self._maps.pop(name)
        if self._collects:
            self._drop_map(number)

    def _drop_map(self, number: int) -> None:
        """Drops a map unless a cursor is open on it."""
        self.kernel.clear_map(number)
        with suppress(ValueError):
            self.kernel.drop_map(number)

    def clear_map(self, name: str) -> None:
        self.kernel.clear_map(self._maps[name])

    def set_trigger(self, name: str, steps: Sequence[ir.Step], slots: Sequence[str]) -> Mapping[str, Feed]:
        from ivme.engine.lower import LoweredSteps

        self.drop_trigger(name)
        lowered = LoweredSteps(self._maps, slots, self._partitions)
        number = lowered.compile(self.kernel, steps)
        self._triggers[name] = (number, list(lowered.feeds), lowered.emits)
        return lowered.feeds

    def drop_trigger(self, name: str) -> None:
        if name in self._triggers:
            number = self._triggers.pop(name)[0]
            if self._collects:
                self.kernel.drop_trigger(number)

    def set_reader(self, name: str, enumeration: ir.Enumeration, slots: Sequence[str] = ()) -> None:
        from ivme.engine.lower import lower_reader

        self.drop_reader(name)
        self._readers[name] = lower_reader(enumeration, self.kernel, self._maps, slots)

    def drop_reader(self, name: str) -> None:
        if name in self._readers:
            number = self._readers.pop(name)
            if self._collects:
                self.kernel.drop_reader(number)

    def set_partition(self, partition: ir.Partition) -> None:
        from ivme.engine.lower import lower_partition

        self.drop_partition(partition.name)
        self._partitions[partition.name] = lower_partition(partition, self.kernel, self._maps)

    def drop_partition(self, name: str) -> None:
        if name in self._partitions:
            if self._collects:
                self.kernel.drop_partition(self._partitions[name])
            del self._partitions[name]

    def set_bounds(self, name: str, lower: int, upper: int) -> None:
        self.kernel.set_bounds(self._partitions[name], lower, upper)

    def net(self, columns: Sequence[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
        return self.kernel.net([np.ascontiguousarray(column) for column in columns], np.ascontiguousarray(weights))

    def noted(self, name: str) -> tuple[list[Codes], list[Codes]]:
        return self.kernel.take_noted(self._partitions[name])

    def sweep(self, name: str, position: int, count: int) -> int:
        return self.kernel.sweep(self._partitions[name], position, count)

    def census(self, name: str, threshold: int) -> tuple[list[Codes], list[Codes]]:
        return self.kernel.census(self._partitions[name], threshold)

    def run(self, name: str, inputs: Inputs) -> list[EmittedDelta]:
        number, relations, emits = self._triggers[name]
        emitted = self.kernel.run(number, [inputs[relation] for relation in relations])
        pairs = zip(emits, emitted, strict=True)
        return [EmittedDelta(view, schema, *delta) for (view, schema), delta in pairs]

    def run_many(self, runs: Sequence[tuple[str, Inputs]]) -> list[list[EmittedDelta]]:
        known = [self._triggers[name] for name, _ in runs]
        given = [
            (number, [inputs[relation] for relation in relations])
            for (number, relations, _), (_, inputs) in zip(known, runs, strict=True)
        ]
        emitted = self.kernel.run_many(given)
        return [
            [EmittedDelta(view, schema, *delta) for (view, schema), delta in zip(emits, deltas, strict=True)]
            for (_, _, emits), deltas in zip(known, emitted, strict=True)
        ]

    def set_threads(self, threads: int) -> None:
        self.kernel.threads = threads

    @property
    def threads(self) -> int:
        return self.kernel.threads

    @property
    def failed_run(self) -> int:
        return self.kernel.failed_run

    def number(self, name: str) -> int:
        """The kernel's number of a trigger, for `run_one`."""
        return self._triggers[name][0]

    def reader_number(self, name: str) -> int:
        """The kernel's number of a reader."""
        return self._readers[name]

    def heap(self, name: str) -> int:
        """The kernel's number of a table."""
        return self._heaps[name]

    def row_path(
        self, columns: list[Any], expressions: Any, compute: Any, runs: list[tuple[int, list[int]]]
    ) -> RowPath:
        """Takes one row through triggers, all or none; see `_kernel.RowPath`."""
        from ivme import _kernel

        return _kernel.RowPath(self.kernel, columns, expressions, compute, runs)

    def row_gate(self, lock: Any, open_reads: dict[int, Any], running: Any, rows: int) -> RowGate:
        """Takes rows whose path is the kernel's alone; see `_kernel.RowGate`."""
        from ivme import _kernel

        return _kernel.RowGate(lock, open_reads, running, rows)

    def emits(self, name: str) -> list[tuple[str, tuple[str, ...]]]:
        """The views whose changes a trigger emits, and over which variables."""
        return self._triggers[name][2]

    def open(self, reader: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:
        return self.kernel.open(self._readers[reader], inputs, whole)

    def request(self, reader: str, inputs: Sequence[int], limit: int, *, waits: bool = True) -> Listed | None:
        return self.kernel.request(self._readers[reader], inputs, limit, waits)

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        numbers, outputs, counts, slots, extremes = self.kernel.request_many(self._readers[reader], columns)
        return numbers, (outputs, counts, slots, extremes)

    def kept_rows(self, keys: int, values: int) -> KeptRows:
        from ivme import _kernel

        return _kernel.KeptRows(keys, values, secrets.randbits(64))

    def ordered_map(self, order: Sequence[OrderedColumn], groups: int, summed: Sequence[int] = ()) -> OrderedMap:
        from ivme import _kernel

        return _kernel.OrderedMap(native_columns(order), groups, list(summed))

    def get(self, name: str, codes: Sequence[int]) -> int:
        if name in self._heaps:
            return self.kernel.heap_weight(self._heaps[name], codes)
        found = self.kernel.get(self._maps[name], codes)
        return 0 if found is None else int(found[0])

    def scan(self, name: str, *, distinct: bool = True, only_decodes: bool = False) -> tuple[list[Codes], Codes]:
        if name in self._heaps:
            return self._rows(self._heaps[name], distinct, only_decodes)
        columns, counts, _ = self.kernel.scan(self._maps[name])
        return columns, counts

    def _rows(self, heap: int, distinct: bool, only_decodes: bool) -> tuple[list[Codes], Codes]:
        nets = distinct and not self.kernel.heap_is_distinct(heap)
        columns, weights = self.kernel.heap_rows(heap, loose=only_decodes and not nets)
        return self.kernel.net(columns, weights) if nets else (columns, weights)

    def let_be_loose(self, name: str, position: int, domain: Domain) -> bool:
        """Whether a column of a table may have strings from now on whose codes tell nothing of which are equal."""
        native = getattr(getattr(domain, "dictionary", None), "native", None)
        is_text = domain.type.kind in ("string", "binary")
        return is_text and native is not None and self.kernel.let_be_loose(self._heaps[name], position, native)

    def weights(self, name: str) -> Codes:
        found = self._weights(self._heaps[name])
        there: Codes = found[found != 0]
        return there

    def column(self, name: str, position: int) -> Codes:
        heap = self._heaps[name]
        codes = self.kernel.heap_column(heap, position, 0, _ALL)
        return codes if len(codes) == self.kernel.heap_size(heap) else codes[self._weights(heap) != 0]

    def _weights(self, heap: int) -> Codes:
        return self.kernel.heap_weights(heap, 0, _ALL)

    def rows_of_keys(self, name: str, key: Sequence[int], keys: Sequence[Codes]) -> list[Codes]:  # noqa: ARG002
        return self.kernel.heap_rows_of_keys(self._heaps[name], keys)

    def dump(self, name: str) -> Codes:
        """All entries of a map as they are stored: the codes and the payload's words of each, one after the other."""
        return self.kernel.dump_map(self._maps[name])

    def load(self, name: str, records: Codes) -> None:
        """Fills a map without entries with what `dump` gave, its indexes included; about a memory access an entry."""
        self.kernel.load_map(self._maps[name], records)

    def is_sweep_due(self, dictionaries: Sequence[Dictionary], least: int) -> bool:
        return self.kernel.is_sweep_due(_natives(dictionaries), least)

    def sweep_codes(self, dictionaries: Sequence[Dictionary], held: Sequence[Codes]) -> None:
        self.kernel.sweep_codes(_natives(dictionaries), held)

    def map_numbers(self, names: Sequence[str]) -> list[int]:
        """The kernel's numbers of maps."""
        return [self._maps[name] for name in names]

    def balance(self, partitions: Sequence[str], measured: Sequence[str]) -> Balance:
        """What tells whether rows make these partitions move keys, or N leave its limits."""
        from ivme import _kernel

        maps = [self._maps[name] for name in measured if name in self._maps]
        heaps = [self._heaps[name] for name in measured if name in self._heaps]
        return _kernel.Balance(self.kernel, [self._partitions[name] for name in partitions], maps, heaps)

    def size(self, name: str) -> int:
        return self.kernel.heap_size(self._heaps[name]) if name in self._heaps else self.kernel.size(self._maps[name])

    def changes(self, name: str) -> int:
        return self.kernel.heap_changes(self._heaps[name])

    def entries(self) -> int:
        kept = [heap for heap in self._heaps.values() if self.kernel.heap_places(heap)[0]]
        return sum(map(self.kernel.heap_size, kept)) + sum(map(self.kernel.size, self._maps.values()))

    def memory_bytes(self) -> int:
        return self.kernel.memory_bytes()

    def release_buffers(self) -> None:
        self.kernel.release_buffers()

    def limit_memory(self, room: int | None, limit: int) -> None:
        from ivme import _kernel

        _kernel.limit_memory(room, limit)

    @property
    def operations(self) -> int:
        return self.kernel.operations

    @property
    def scans(self) -> int:
        return self.kernel.scans


def _natives(dictionaries: Sequence[Any]) -> list[Any]:
    """The kernel's own of dictionaries."""
    return [dictionary.native for dictionary in dictionaries]


def native_columns(order: Sequence[OrderedColumn]) -> list[tuple[int, bool, bool, Any, bool]]:
    """The columns of an order as the kernel takes them."""
    return [
        (
            each.position,
            each.descending,
            each.nulls_first,
            None if each.domain.orders_by_code else _native_order(each.domain),
            each.is_key,
        )
        for each in order
    ]


def _native_order(domain: Any) -> Any:
    """The dictionary by which the kernel compares codes; None where codes are in the order of values."""
    if domain is None:
        return None
    native = getattr(domain.dictionary, "native", None)
    if native is None:
        raise PlanError(f"MIN and MAX over {domain.type} are not supported; CAST it to a decimal of up to 18 digits")
    return native
