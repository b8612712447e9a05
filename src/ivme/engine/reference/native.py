"""The compiled kernel behind the protocol of `kernel`: a program with its maps in `ivme._kernel`.

Rows of Python values go in and out through `ValueCodes`; who has columns of codes already uses `apply_columns`,
`open` and `request_many`, which add nothing to the kernel's own cost.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ivme import _kernel
from ivme.algebra.ring import Payload
from ivme.engine.backend import whole_sums
from ivme.engine.codes.python_values import ValueCodes
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.row_expression import Row
from ivme.engine.ingest.feed import Feed
from ivme.engine.lower import lower
from ivme.engine.reference.kernel import Changes
from ivme.plan.ir.program import Program

if TYPE_CHECKING:
    from ivme._kernel import Codes, Emitted, Input, Slots

_FIRST_BLOCK = 64
_BLOCK = 8192


class NativeKernel:
    """Runs a program on the compiled kernel.

    `slots` are the types of the payloads' sums (`_kernel.pyi` names them), one for each slot of the enumeration;
    `emit` names the maps whose changes `apply_columns` returns.
    """

    def __init__(
        self,
        program: Program,
        slots: Sequence[str] | None = None,
        emit: Collection[str] = (),
        seed: int | None = None,
    ) -> None:
        seed = secrets.randbits(64) if seed is None else seed
        self.program = program
        self.kernel = _kernel.Kernel(seed)
        self.codes = ValueCodes(seed)
        wanted = ["i64" if function == "count" else "i128" for function, _ in program.enumeration.slots]
        self._slots = wanted if slots is None else list(slots)
        self._lowered = lower(program, self.kernel, self._slots, self.codes, emit)
        self._encoders = {relation: feed.encoder(self.codes) for relation, feed in self._lowered.feeds.items()}
        self._inputs = [original for _, original in program.enumeration.inputs]
        self._plain = not any(program.map(factor.map).sums for factor in program.enumeration.factors)
        self._stale = program.lazy

    @property
    def operations(self) -> int:
        """How many elementary operations `pure.Interpreter` would have done so far.

        A load that only sums read is not consolidated, so that rows which become equal tuples count more than once.
        """
        return self.kernel.operations

    @property
    def scans(self) -> int:
        """How often a step read a whole map, or a census all keys of a partition."""
        return self.kernel.scans

    def map(self, name: str) -> NativeMap:
        return NativeMap(self, self._lowered.maps[name], self.program.map(name).sums)

    # Rows of Python values

    def apply(self, relation: str, changes: Changes) -> None:
        """Runs the trigger of a relation; on any error every map is as it was."""
        self.kernel.run(self._lowered.triggers[relation], [self._input(self._lowered.feeds[relation], changes)])
        self._stale = self.program.lazy

    def apply_one(self, relation: str, row: Row, weight: int) -> None:
        """`apply` for a single row, on the kernel's short path."""
        self.kernel.run_one(self._lowered.triggers[relation], self._encoders[relation](row), weight)
        self._stale = self.program.lazy

    def build(self, database: Mapping[str, Changes]) -> None:
        """Fills the empty maps from whole tables, each view once; a lazy program only takes the tables."""
        if self.program.lazy:
            runs = [
                (self._lowered.triggers[relation], [self._input(feed, database.get(relation, {}))])
                for relation, feed in self._lowered.feeds.items()
            ]
            self.kernel.begin()
            for trigger, inputs in runs:
                self.kernel.run(trigger, inputs)
            self.kernel.commit()
        else:
            feeds = self._lowered.build_feeds.items()
            self.kernel.run(
                self._lowered.build, [self._input(feed, database.get(relation, {})) for relation, feed in feeds]
            )
        self._stale = self.program.lazy

    def items(self, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, Payload, Row]]:
        """Enumerates an access request; see `enumerate`. NULL equals nothing."""
        if any(inputs[name] is None for name in self._inputs):
            return iter(())
        return self._items(self.open({name: self.codes.encode(inputs[name]) for name in self._inputs}))

    def _items(self, cursor: _kernel.Cursor) -> Iterator[tuple[Row, Payload, Row]]:
        size = _FIRST_BLOCK
        distinct = [extreme.function == "count_distinct" for extreme in self.program.enumeration.extremes]
        while True:
            columns, counts, slots, extremes = cursor.next_block(size)
            if not len(counts):
                return
            rows = self._tuples(columns, len(counts))
            payloads = list(self._payloads(counts, slots, self._plain))
            values = [
                column.tolist() if plain else list(map(self.codes.decode, column.tolist()))
                for plain, column in zip(distinct, extremes, strict=True)
            ]
            for i, row in enumerate(rows):
                yield row, payloads[i], tuple(column[i] for column in values)
            size = _BLOCK

    # Columns of codes

    def feed(self, relation: str) -> tuple[FeedColumn, ...]:
        """What the columns given to `apply_columns` stand for."""
        return tuple(self._lowered.feeds[relation].columns)

    def apply_columns(self, relation: str, columns: Sequence[Codes], weights: Codes) -> list[tuple[str, Emitted]]:
        """`apply` for a batch that is encoded already, as the columns of the relation's feed.

        Returns the changes of the maps that `emit` names. A map may change more than once; the sum is its change.
        """
        emitted = self.kernel.run(self._lowered.triggers[relation], [(columns, weights)])
        self._stale = self.program.lazy
        return list(zip(self._lowered.emits[relation], emitted, strict=True))

    def build_columns(self, database: Mapping[str, Input]) -> None:
        """`build` from encoded tables, as the columns of `build_feed`."""
        self.kernel.run(self._lowered.build, [database[relation] for relation in self._lowered.build_feeds])

    def build_feed(self, relation: str) -> tuple[FeedColumn, ...]:
        return tuple(self._lowered.build_feeds[relation].columns)

    def open(self, inputs: Mapping[str, int]) -> _kernel.Cursor:
        """A cursor over the answer to an access request, given by the codes of the query's inputs."""
        self._refresh()
        return self.kernel.open(self._lowered.reader, [inputs[name] for name in self._inputs])

    def request_many(self, inputs: Mapping[str, Codes]) -> tuple[Codes, list[Codes], Codes, Slots, list[Codes]]:
        """The answers to many access requests, given by a column of codes for each of the query's inputs."""
        self._refresh()
        return self.kernel.request_many(self._lowered.reader, [inputs[name] for name in self._inputs])

    def _refresh(self) -> None:
        """Strategy `recompute`: builds all views anew if a table changed since the last read."""
        if self._stale:
            for declared in self.program.maps:
                if declared.role not in ("leaf", "support"):
                    self.kernel.clear_map(self._lowered.maps[declared.name])
            self.kernel.run(self._lowered.build, [])
            self._stale = False

    def _input(self, feed: Feed, changes: Changes) -> Input:
        encode = feed.encoder(self.codes)
        rows = [encode(row) for row in changes]
        weights = np.fromiter(changes.values(), np.int64, len(rows))
        if not rows:
            return [np.empty(0, np.int64) for _ in feed.columns], weights
        table = np.array(rows, np.int64).reshape(len(rows), len(feed.columns))
        return [np.ascontiguousarray(table[:, i]) for i in range(len(feed.columns))], weights

    def _tuples(self, columns: Sequence[Codes], n: int) -> list[Row]:
        decoded = [list(map(self.codes.decode, column.tolist())) for column in columns]
        return list(zip(*decoded, strict=True)) if decoded else [()] * n

    def _payloads(self, counts: Codes, slots: Slots, plain: bool) -> Iterator[Payload]:
        if plain:
            return iter(counts.tolist())
        return iter(zip(counts.tolist(), *map(whole_sums, slots), strict=True))


class NativeMap:
    """One of the kernel's maps, as readers see it."""

    def __init__(self, owner: NativeKernel, number: int, sums: bool) -> None:
        self._owner = owner
        self._number = number
        self._plain = not sums

    def __len__(self) -> int:
        return self._owner.kernel.size(self._number)

    def items(self) -> list[tuple[Row, Payload]]:
        columns, counts, slots = self._owner.kernel.scan(self._number)
        rows = self._owner._tuples(columns, len(counts))
        return list(zip(rows, self._owner._payloads(counts, slots, self._plain), strict=True))

    def get(self, key: Row) -> Payload | None:
        found = self._owner.kernel.get(self._number, [self._owner.codes.encode(value) for value in key])
        if found is None:
            return None
        return int(found[0]) if self._plain else found
