"""One program on a backend of its own, fed with columns of codes: for measurements and tests below the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ivme.engine.backend import Codes, EmittedDelta
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.feed import Feed
from ivme.engine.native_backend import NativeBackend
from ivme.plan.ir.program import Program

Input = tuple[Sequence[Codes], Codes]


class ProgramOnBackend:
    """The maps of a program in the compiled kernel, with a trigger for each relation, the build, and the reader.

    `slots` are the types of the payloads' sums, one for each slot of the enumeration; `orders` say how the values of
    variables are compared whose codes do not have their order.
    """

    def __init__(
        self,
        program: Program,
        slots: Sequence[str] | None = None,
        orders: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.program = program
        self.backend = NativeBackend(seed)
        wanted = ["i64" if function == "count" else "i128" for function, _ in program.enumeration.slots]
        self._slots = wanted if slots is None else list(slots)
        self.backend.install(program.maps, self._slots, orders or {})
        for partition in program.partitions:
            self.backend.set_partition(partition)
        self.feeds: dict[str, Feed] = {}
        for trigger in program.triggers:
            feeds = self.backend.set_trigger(trigger.relation, trigger.steps, self._slots)
            self.feeds[trigger.relation] = feeds.get(trigger.relation, Feed(()))
        self.build_feeds = dict(self.backend.set_trigger("build", program.build, self._slots))
        self.backend.set_reader("read", program.enumeration, self._slots)
        self._inputs = [original for _, original in program.enumeration.inputs]
        self._stale = program.lazy

    @property
    def operations(self) -> int:
        return self.backend.operations

    def feed(self, relation: str) -> tuple[FeedColumn, ...]:
        """What the columns given to `apply_columns` stand for."""
        return tuple(self.feeds[relation].columns)

    def apply_columns(self, relation: str, columns: Sequence[Codes], weights: Codes) -> list[EmittedDelta]:
        """Runs the trigger of a relation; what it emits."""
        emitted = self.backend.run(relation, {relation: (columns, weights)})
        self._stale = self.program.lazy
        return emitted

    def build_columns(self, tables: Mapping[str, Input]) -> None:
        """Fills the empty maps from whole tables, each view once; those of a lazy program when it is read."""
        if not self.program.lazy:
            self.backend.run("build", tables)
            return
        for relation, (columns, weights) in tables.items():
            self.apply_columns(relation, columns, weights)

    def open(self, inputs: Mapping[str, int]) -> Any:
        """A cursor over the answer to an access request, given by the codes of the query's inputs."""
        self._refresh()
        return self.backend.open("read", [inputs[name] for name in self._inputs])

    def request_many(self, inputs: Mapping[str, Codes]) -> Any:
        """The answers to many access requests, given by a column of codes for each of the query's inputs."""
        self._refresh()
        return self.backend.request_many("read", [inputs[name] for name in self._inputs])

    def _refresh(self) -> None:
        """Strategy `recompute`: builds all views anew if a table changed since the last read."""
        if self._stale:
            for declared in self.program.maps:
                if declared.role not in ("leaf", "support"):
                    self.backend.clear_map(declared.name)
            self.backend.run("build", {})
            self._stale = False
