"""The kernel in plain Python: an interpreter for programs, written to be read.

It is the reference that the compiled kernel must agree with, and it counts its work: `operations` grows by one for
each look-up, each entry visited and each entry changed, so that a benchmark can fit exponents that no clock blurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from ivme.algebra.ring import Payload, Ring, add, count, is_nothing, multiply
from ivme.engine.expression.row_expression import Row
from ivme.engine.reference.enumerate import enumerate_items
from ivme.engine.reference.indexed_map import IndexedMap, Journal, Tally
from ivme.engine.reference.load import Changes, load
from ivme.engine.reference.partition import Noted, PurePartition
from ivme.plan.ir import program as ir

Delta = dict[Row, Payload]


Emitted = dict[str, list[tuple[tuple[str, ...], Delta]]]
"""For each followed view, the deltas of its result with their schemas."""


class PureKernel:
    """Maps, and the steps that change them. Between `begin` and `commit` every change is journalled."""

    def __init__(self, null: Any = None) -> None:
        self.tally = Tally()
        self.maps: dict[str, IndexedMap] = {}
        self.partitions: dict[str, PurePartition] = {}
        self._null = null
        self._journal: Journal | None = None
        self._noted: dict[str, Noted] = {}

    def install(self, maps: Iterable[ir.Map], sort_keys: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        """Adds maps that are not there yet, and indexes to those that are.

        `sort_keys` are for variables whose values (or codes) do not sort by themselves.
        """
        for declared in maps:
            if declared.name in self.maps:
                self.maps[declared.name].extend(declared, sort_keys)
            else:
                self.maps[declared.name] = IndexedMap(declared, self.tally, sort_keys, self._null)

    def set_partition(self, declared: ir.Partition) -> None:
        """Starts to watch a partition whose maps are there; without bounds yet."""
        self.partitions[declared.name] = PurePartition(declared, self.maps)

    def census(self, name: str, threshold: int) -> Noted:
        """All keys of a partition that are on the wrong side of the threshold; counts as a scan."""
        self.tally.scans += 1
        return self.partitions[name].census(threshold)

    @property
    def in_transaction(self) -> bool:
        return self._journal is not None

    @property
    def journal(self) -> Journal | None:
        """What has changed since `begin`; None outside of a transaction."""
        return self._journal

    def begin(self) -> None:
        """From here on `roll_back` undoes everything."""
        self._noted = {name: partition.noted() for name, partition in self.partitions.items()}
        self._journal = []

    def commit(self) -> None:
        self._journal = None

    def roll_back(self) -> None:
        """Puts every entry back as it was at `begin`, and every noted key."""
        for stored, key, old in reversed(self._journal or []):
            stored.put(key, old)
        for name, partition in self.partitions.items() if self.in_transaction else ():
            partition.restore(self._noted.get(name, ([], [])))
        self._journal = None

    def execute(self, steps: Iterable[ir.Step], loaded: Callable[[ir.Source], Delta]) -> Emitted:
        """Runs steps; `loaded` gives the delta of a source."""
        deltas: dict[str, Delta] = {}
        schemas: dict[str, tuple[str, ...]] = {}
        emitted: Emitted = {}
        steps = tuple(steps)
        paid = only_projected(steps)
        for step in steps:
            before = self.tally.operations
            if isinstance(step, ir.Add):
                self.maps[step.map].add_all(deltas[step.origin], self._journal, step.check)
            elif isinstance(step, ir.Emit):
                emitted.setdefault(step.view, []).append((schemas[step.origin], deltas[step.origin]))
            elif isinstance(step, ir.Watch):
                keys = map(picker(schemas[step.origin], step.key), deltas[step.origin])
                self.partitions[step.partition].watch(keys, step.leaf)
            else:
                deltas[step.target] = self._delta(step, loaded, deltas, schemas)
                schemas[step.target] = step.schema
            if isinstance(step, ir.Project) and step.origin in paid:
                self.tally.operations = before
        return emitted

    def _delta(
        self,
        step: ir.Load | ir.Scan | ir.Rename | ir.Join | ir.Project | ir.Distinct | ir.Exists | ir.Filter,
        loaded: Callable[[ir.Source], Delta],
        deltas: dict[str, Delta],
        schemas: dict[str, tuple[str, ...]],
    ) -> Delta:
        match step:
            case ir.Load(_, source):
                return loaded(source)
            case ir.Scan(_, name, _, indicator):
                self.tally.scans += 1
                entries = self.maps[name].items()
                return {key: 1 for key, _ in entries} if indicator else dict(entries)
            case ir.Rename(_, origin, _):
                return deltas[origin]
            case ir.Project(_, origin, schema):
                return self._project(deltas[origin], picker(schemas[origin], schema))
            case ir.Distinct(_, origin, schema):
                self.tally.operations += len(deltas[origin])
                return dict.fromkeys(map(picker(schemas[origin], schema), deltas[origin]), 1)
            case ir.Exists(_, origin, name, _):
                return self._presence(deltas[origin], self.maps[name])
            case ir.Filter(_, origin, read, present, _):
                if not len(self.maps[read.map]):
                    return {} if present else deltas[origin]
                key = picker(schemas[origin], tuple(v for v in read.variables if v is not None))
                wanted = self.maps[read.map]
                return {t: p for t, p in deltas[origin].items() if (wanted.get(key(t)) is not None) == present}
            case ir.Join(_, origin, reads, schema, _):
                if not deltas[origin] or any(self._is_empty(read, deltas) for read in reads):
                    return {}
                readers = [self._reader(read, schemas[origin], schema, deltas) for read in reads]
                new = len(schema) > len(schemas[origin])
                return self._extend(deltas[origin], readers) if new else self._look_up(deltas[origin], readers)

    def _project(self, delta: Delta, pick: Callable[[Row], Row]) -> Delta:
        result: Delta = {}
        for key, payload in delta.items():
            self.tally.operations += 1
            accumulate(result, pick(key), payload)
        return result

    def _presence(self, delta: Delta, stored: IndexedMap) -> Delta:
        result: Delta = {}
        for key, payload in delta.items():
            old = stored.get(key)
            before = 0 if old is None else count(old)
            after = before + count(payload)
            if (before == 0) != (after == 0):
                result[key] = 1 if before == 0 else -1
        return result

    def _is_empty(self, read: ir.Read, deltas: dict[str, Delta]) -> bool:
        """Whether a read has no entry at all, as the heavy parts of data without skew: then no row is looked at."""
        return not len(self.maps[read.map]) and not (read.pending is not None and deltas[read.pending])

    def _reader(
        self, read: ir.Read, known: tuple[str, ...], schema: tuple[str, ...], deltas: dict[str, Delta]
    ) -> _Reader:
        stored: IndexedMap | Overlay = self.maps[read.map]
        if read.pending is not None:
            stored = Overlay(self.maps[read.map], deltas[read.pending])
        return _Reader(read, stored, known, schema)

    def _look_up(self, delta: Delta, readers: list[_Reader]) -> Delta:
        result: Delta = {}
        for key, payload in delta.items():
            joined = _joined(key, payload, readers)
            if joined is not None:
                result[key] = joined
        return result

    def _extend(self, delta: Delta, readers: list[_Reader]) -> Delta:
        """Generic join: the reader with the fewest matches proposes, the others check."""
        result: Delta = {}
        for key, payload in delta.items():
            smallest = _fewest(readers, key)
            for values in smallest.matches(key) if smallest else ():
                self.tally.operations += 1
                joined = _joined(key + values, payload, readers)
                if joined is not None:
                    result[key + values] = joined
        return result


class Interpreter:
    """One view's program on maps of its own, fed with the rows of its tables."""

    def __init__(self, program: ir.Program, ring: Ring | None = None) -> None:
        self.program = program
        self._ring = ring
        self.kernel = PureKernel()
        self.kernel.install(program.maps)
        for partition in program.partitions:
            self.kernel.set_partition(partition)
        self._derived = [m for m in self.kernel.maps.values() if m.declared.role not in ("leaf", "support")]
        self._stale = program.lazy

    @property
    def operations(self) -> int:
        """How many elementary operations have been done so far."""
        return self.kernel.tally.operations

    @property
    def scans(self) -> int:
        """How often a step read a whole map, or a census all keys of a partition."""
        return self.kernel.tally.scans

    def map(self, name: str) -> IndexedMap:
        return self.kernel.maps[name]

    def apply(self, relation: str, changes: Changes) -> None:
        """Runs the trigger of a relation; on any error every map is as it was."""
        self._run(self.program.trigger(relation).steps, {relation: changes})
        self._stale = self.program.lazy

    def stage(self, relation: str, changes: Changes) -> Emitted:
        """Runs the trigger of a relation as part of a transaction that the caller ends; what it emits."""
        if not self.kernel.in_transaction:
            self.kernel.begin()
        self._stale = self.program.lazy
        return self.kernel.execute(self.program.trigger(relation).steps, self._loader({relation: changes}))

    def build(self, database: Mapping[str, Changes]) -> None:
        """Fills the empty maps from whole tables, each view once; a lazy program only takes the tables."""
        if self.program.lazy:
            self._run(tuple(step for trigger in self.program.triggers for step in trigger.steps), database)
        else:
            self._run(self.program.build, database)
        self._stale = self.program.lazy

    def items(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, Payload, Row]]:
        """Enumerates an access request; see `enumerate`."""
        self._refresh()
        return enumerate_items(self.program.enumeration, self.kernel.maps, inputs)

    def _refresh(self) -> None:
        """Strategy `recompute`: rebuilds all views if a table changed since the last read."""
        if self._stale:
            for stored in self._derived:
                stored.clear()
            self._run(self.program.build, {})
            self._stale = False

    def _loader(self, changes: Mapping[str, Changes]) -> Callable[[ir.Source], Delta]:
        def loaded(source: ir.Source) -> Delta:
            return load(source, changes.get(source.atom.relation, {}), self.kernel.tally, self._ring)

        return loaded

    def _run(self, steps: tuple[ir.Step, ...], changes: Mapping[str, Changes]) -> None:
        self.kernel.begin()
        try:
            self.kernel.execute(steps, self._loader(changes))
        except BaseException:
            self.kernel.roll_back()
            raise
        self.kernel.commit()


def only_projected(steps: Iterable[ir.Step]) -> set[str]:
    """The loads, under all their names, that only sums read: their sums are not counted, as reading a row pays for it.

    The compiled kernel sums such rows while it loads them, and does not know how many distinct tuples there were.
    """
    names: dict[str, str] = {}
    otherwise: set[str] = set()
    for step in steps:
        if isinstance(step, ir.Load):
            names[step.target] = step.target
        elif isinstance(step, ir.Rename):
            names |= {step.target: names[step.origin]} if step.origin in names else {}
        elif isinstance(step, ir.Join):
            otherwise |= {step.origin, *(read.pending for read in step.reads if read.pending is not None)}
        elif not isinstance(step, ir.Scan | ir.Project):
            otherwise.add(step.origin)
    used = {names[name] for name in otherwise if name in names}
    return {name for name, load in names.items() if load not in used}


def _fewest(readers: list[_Reader], key: Row) -> _Reader | None:
    """The first of those with the fewest matches; None as soon as one has none."""
    smallest, fewest = None, 0
    for reader in readers:
        size = reader.size(key)
        if not size:
            return None
        if smallest is None or size < fewest:
            smallest, fewest = reader, size
    return smallest


def _joined(key: Row, payload: Payload, readers: list[_Reader]) -> Payload | None:
    """The payload of a tuple after all reads, or None if one of them does not have it."""
    for reader in readers:
        found = reader.look_up(key)
        if found is None:
            return None
        if reader.multiplies:
            payload = multiply(payload, found)
    return payload


class Overlay:
    """A map together with a delta that it does not hold yet.

    The delta's keys are indexed whatever they carry: one whose count is zero still changes the sums of an entry.
    """

    def __init__(self, stored: IndexedMap, pending: Delta) -> None:
        self._stored = stored
        self._change = pending
        self._pending = stored.emptied(stored.tally)
        self._pending.add_all(dict.fromkeys(pending, 1))

    def get(self, key: Row) -> Payload | None:
        old, changed = self._stored.get(key), self._pending.get(key)
        if changed is None:
            return old
        total = self._change[key] if old is None else add(old, self._change[key])
        return total if count(total) else None

    def size(self, index: ir.Index, key: Row) -> int:
        return self._stored.size(index, key) + self._pending.size(index, key)

    def matches(self, index: ir.Index, key: Row) -> Iterator[Row]:
        """Candidates: those of the map, then those that only the delta has. Some may cancel; `get` tells."""
        yield from self._stored.matches(index, key)
        for values in self._pending.matches(index, key):
            if not self._stored.supports(index, key, values):
                yield values

    def supports(self, index: ir.Index, key: Row, values: Row) -> bool:
        """Whether the map or the delta has such an entry; a projection may overestimate, the full read will not."""
        return self._stored.supports(index, key, values) or self._pending.supports(index, key, values)


class _Reader:
    """A read with its positions resolved: key and values of the index in terms of the delta's columns."""

    def __init__(
        self, read: ir.Read, stored: IndexedMap | Overlay, known: tuple[str, ...], schema: tuple[str, ...]
    ) -> None:
        new = schema[len(known) :]
        self.multiplies = read.payload
        self._stored = stored
        self._full = None not in read.variables
        self._index = ir.Index(
            tuple(i for i, v in enumerate(read.variables) if v is not None and v not in new),
            tuple(i for i, v in enumerate(read.variables) if v in new),
        )
        named = tuple(v for v in read.variables if v is not None)
        self._key = picker(schema, tuple(read.variables[i] or "" for i in self._index.key))
        self._values = picker(schema, tuple(read.variables[i] or "" for i in self._index.values))
        self._whole = picker(schema, named)
        stored_order = tuple(read.variables[i] or "" for i in self._index.values)
        self._in_order = picker(stored_order, new) if new else None

    def size(self, key: Row) -> int:
        return self._stored.size(self._index, self._key(key))

    def matches(self, key: Row) -> Iterator[Row]:
        """The values of the new variables, in the order of the delta's schema."""
        for values in self._stored.matches(self._index, self._key(key)):
            yield values if self._in_order is None else self._in_order(values)

    def look_up(self, key: Row) -> Payload | None:
        if self._full:
            return self._stored.get(self._whole(key))
        return 1 if self._stored.supports(self._index, self._key(key), self._values(key)) else None


def accumulate(delta: Delta, key: Row, payload: Payload) -> None:
    """Adds a payload to a delta's entry; an entry whose payload is all zero goes away."""
    old = delta.get(key)
    total = payload if old is None else add(old, payload)
    if is_nothing(total):
        delta.pop(key, None)
    else:
        delta[key] = total


def picker(schema: tuple[str, ...], wanted: tuple[str, ...]) -> Callable[[Row], Row]:
    """A function from tuples over `schema` to tuples over `wanted`."""
    positions = [schema.index(variable) for variable in wanted]
    if not positions:
        return lambda _: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions)
