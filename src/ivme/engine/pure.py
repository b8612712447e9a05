"""The kernel in plain Python: an interpreter for programs, written to be read.

It is the reference that the compiled kernel must agree with, and it counts its work: `operations` grows by one for
each look-up, each entry visited and each entry changed, so that a benchmark can fit exponents that no clock blurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from ivme.algebra.ring import Payload, add, count, multiply
from ivme.engine.enumerate import enumerate_items
from ivme.engine.indexed_map import IndexedMap, Journal, Tally
from ivme.engine.kernel import Changes, Row
from ivme.engine.load import load
from ivme.plan import program as ir

Delta = dict[Row, Payload]


class Interpreter:
    """Runs a program on maps of its own."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self._tally = Tally()
        self._maps = {declared.name: IndexedMap(declared, self._tally) for declared in program.maps}
        self._derived = [m for m in self._maps.values() if m.declared.role not in ("leaf", "support")]
        self._stale = program.lazy

    @property
    def operations(self) -> int:
        """How many elementary operations have been done so far."""
        return self._tally.operations

    def map(self, name: str) -> IndexedMap:
        return self._maps[name]

    def apply(self, relation: str, changes: Changes) -> None:
        """Runs the trigger of a relation; on any error every map is as it was."""
        self._run(self.program.trigger(relation).steps, {relation: changes})
        self._stale = self.program.lazy

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
        return enumerate_items(self.program.enumeration, self._maps, inputs)

    def _refresh(self) -> None:
        """Strategy `recompute`: builds all views anew if a table changed since the last read."""
        if self._stale:
            for stored in self._derived:
                stored.clear()
            self._run(self.program.build, {})
            self._stale = False

    def _run(self, steps: tuple[ir.Step, ...], changes: Mapping[str, Changes]) -> None:
        deltas: dict[str, Delta] = {}
        schemas: dict[str, tuple[str, ...]] = {}
        journal: Journal = []
        try:
            for step in steps:
                if isinstance(step, ir.Add):
                    self._maps[step.map].add_all(deltas[step.origin], journal)
                else:
                    deltas[step.target] = self._delta(step, changes, deltas, schemas)
                    schemas[step.target] = step.schema
        except BaseException:
            for stored, key, old in reversed(journal):
                stored.put(key, old)
            raise

    def _delta(
        self,
        step: ir.Load | ir.Scan | ir.Rename | ir.Join | ir.Project | ir.Exists | ir.Filter,
        changes: Mapping[str, Changes],
        deltas: dict[str, Delta],
        schemas: dict[str, tuple[str, ...]],
    ) -> Delta:
        match step:
            case ir.Load(_, source):
                return load(source, changes.get(source.atom.relation, {}), self._tally)
            case ir.Scan(_, name, _, indicator):
                entries = self._maps[name].items()
                return {key: 1 for key, _ in entries} if indicator else dict(entries)
            case ir.Rename(_, origin, _):
                return deltas[origin]
            case ir.Project(_, origin, schema):
                return self._project(deltas[origin], picker(schemas[origin], schema))
            case ir.Exists(_, origin, name, _):
                return self._presence(deltas[origin], self._maps[name])
            case ir.Filter(_, origin, read, present, _):
                key = picker(schemas[origin], tuple(v for v in read.variables if v is not None))
                wanted = self._maps[read.map]
                return {t: p for t, p in deltas[origin].items() if (wanted.get(key(t)) is not None) == present}
            case ir.Join(_, origin, reads, schema, _):
                readers = [self._reader(read, schemas[origin], schema, deltas) for read in reads]
                new = len(schema) > len(schemas[origin])
                return self._extend(deltas[origin], readers) if new else self._look_up(deltas[origin], readers)

    def _project(self, delta: Delta, pick: Callable[[Row], Row]) -> Delta:
        result: Delta = {}
        for key, payload in delta.items():
            self._tally.operations += 1
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

    def _reader(
        self, read: ir.Read, known: tuple[str, ...], schema: tuple[str, ...], deltas: dict[str, Delta]
    ) -> _Reader:
        stored: IndexedMap | Overlay = self._maps[read.map]
        if read.pending is not None:
            stored = Overlay(self._maps[read.map], deltas[read.pending])
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
            smallest = min(readers, key=lambda reader: reader.size(key))
            for values in smallest.matches(key):
                self._tally.operations += 1
                joined = _joined(key + values, payload, readers)
                if joined is not None:
                    result[key + values] = joined
        return result


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
        self._pending = IndexedMap(stored.declared, stored.tally)
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
    if total == 0 or (isinstance(total, tuple) and not any(total)):
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
