"""A closure as a view of the embedded database: edges in, pairs out, in the codes of the database.

The engine lists descendants. A view whose only input is the end of paths therefore keeps the closure of the reversed
edges, so that every access pattern is read in time linear in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ivme.closure.check import check_rows
from ivme.closure.engine import ClosureEngine, PairCursor, cycle_of
from ivme.engine.backend import Backend, Block, Cursor, Listed
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_readers import point_reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError, IvmeError
from ivme.plan.ir.program import Enumeration
from ivme.query.model import Table
from ivme.query.typed import TypedQuery


class ClosureGroup(ExternalView):
    """The one view of a closure engine; `graph` is the kind of graph."""

    def __init__(
        self,
        typed: TypedQuery,
        edges: Table,
        graph: str,
        engine_of: Callable[[str], ClosureEngine],
        catalog: Catalog,
    ) -> None:
        query, domains = typed.query, catalog.domains
        super().__init__(query.name, ("closure", query.name), catalog.backend, domains, ())
        (atom,) = query.atoms
        self.typed = typed
        self.graph = graph
        self.engine = engine_of(graph)
        self.backward = bool(query.output) and query.input == (atom.terms[1],)
        ends = [(str(term), column) for term, column in zip(atom.terms, atom.columns, strict=True)]
        (self._start, first), (self._end, last) = reversed(ends) if self.backward else ends
        self._domain = domains.domain(typed.types[self._start])
        feed = Feed(edges.column_names)
        self._positions = (feed.column(first), feed.column(last))
        self.relations = (edges.name,)
        self._inputs = catalog.wanted(edges.name, [("edges", feed)])
        inputs = tuple((variable, variable) for variable in query.input)
        self.enumerations = {query.name: Enumeration(inputs, query.output, (), (), ())}
        self._edges = edges.name
        self._unfinished = False

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        for relation, each in rows.items():
            self.apply(relation, each)
        self.commit()

    def apply(self, relation: str, rows: RowBatch) -> None:  # noqa: ARG002  it reads one
        ((_, columns),) = self._inputs.of(rows)
        start, end = (np.ascontiguousarray(columns[position]) for position in self._positions)
        self._unfinished = True
        try:
            self.engine.change(start, end, np.ascontiguousarray(rows.weights))
        except Exception as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from None

    def commit(self) -> None:
        if self._unfinished:
            self.engine.commit()
            self._unfinished = False

    def roll_back(self) -> None:
        if self._unfinished:
            self.engine.roll_back()
            self._unfinished = False

    def _refusal(self, error: Exception) -> IvmeError | None:
        """The user's error that an error of the engine stands for; None if it is another's."""
        if isinstance(error, self._backend.overflow):
            return DataError(f"the multiplicity of an edge in {self._edges} does not fit 64 bits; nothing was changed")
        cycle = cycle_of(error)
        if cycle is None:
            return None
        nodes = [repr(self._domain.decode_value(code)) for code in cycle]
        return DataError(
            f"the edges of {self._edges} would have the cycle {' -> '.join(nodes[:: -1 if self.backward else 1])}, but "
            f"view {self.typed.query.name} has graph='acyclic'; nothing was changed. Make the view with "
            "graph='digraph' to allow cycles"
        )

    def follow(self, on: bool) -> None:
        self.engine.follow(on)

    def changed(self, layout: Layout) -> RowBatch:
        start, end, weights = self._delta()
        wanted = [*self.typed.query.input, *(str(c.source) for c in self._head)]
        return RowBatch(layout, weights, None, self._by_variable(wanted, start, end))

    def _delta(self) -> tuple[Codes, Codes, Codes]:
        """The pairs that came and went; no request finds those with a NULL in an input."""
        start, end, weights = self.engine.changed()
        known = np.ones(len(weights), dtype=bool)
        for codes in self._by_variable(self.typed.query.input, start, end):
            known &= codes != NULL_CODE
        return start[known], end[known], weights[known]

    def held_codes(self) -> list[Codes]:
        return [self.engine.codes()]

    def all_rows(self, layout: Layout) -> RowBatch:
        parts = list(pairs_of(self.engine.open()))
        start, end = (np.concatenate([np.empty(0, np.int64), *column]) for column in zip(*parts, strict=True))
        names = [str(column.source) for column in self._head]
        return RowBatch(layout, np.ones(len(start), np.int64), None, self._by_variable(names, start, end))

    # Reading

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:  # noqa: ARG002
        given = self._given(inputs)
        if len(given) == 2:
            return _Answer(_block(self.reaches(given)))
        pairs = self.engine.open_from(given[self._start]) if given else self.engine.open()
        return _PairBlocks(
            pairs, lambda start, end: self._by_variable(self.typed.query.output, start, end), self._backend
        )

    def request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:  # noqa: ARG002
        given = self._given(inputs)
        if len(given) == 2:
            return [], [1] * self.reaches(given), [], []
        if not given:
            return None
        found = self.engine.targets(given[self._start], limit)
        return None if found is None else ([found], [1] * len(found), [], [])

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        query = self.typed.query
        if reader == point_reader(query.name):
            given = dict(zip(query.free, columns, strict=True))
            numbers = self.engine.reaches_many(given[self._start], given[self._end])
            return numbers, _block(len(numbers))
        given = dict(zip(query.input, (np.ascontiguousarray(column) for column in columns), strict=True))
        if not given:
            raise IvmeError(f"view {query.name} has no parameters to ask it by")
        known = np.flatnonzero(np.logical_and.reduce([column != NULL_CODE for column in given.values()]))
        given = {variable: column[known] for variable, column in given.items()}
        if len(given) == 2:
            numbers = known[self.engine.reaches_many(given[self._start], given[self._end])]
            return numbers, _block(len(numbers))
        numbers, found = self.engine.targets_many(given[self._start])
        return known[numbers], ([found], np.ones(len(found), np.int64), [], [])

    def reaches(self, given: dict[str, int]) -> int:
        """1 if the requested path is there, else 0."""
        return int(self.engine.reaches(given[self._start], given[self._end]))

    def path(self, start: Any, end: Any) -> list[Any] | None:
        """The nodes of a shortest path, along the edges; None if there is none."""
        codes = [self._domain.find_value(value) for value in (start, end)]
        if None in codes or NULL_CODE in codes:
            return None
        first, last = reversed(codes) if self.backward else codes
        assert first is not None
        assert last is not None
        nodes = self._domain.values(self.engine.path(first, last))
        return (nodes[::-1] if self.backward else nodes) or None

    def memory_bytes(self) -> int:
        return self.engine.memory_bytes()

    def stats(self) -> dict[str, int]:
        """The sizes of the graph and of its closure, and the engine's memory and work."""
        engine = self.engine
        sizes = {name: int(getattr(engine, name)) for name in ("nodes", "edges", "components", "pairs", "operations")}
        return {**sizes, "memory_bytes": engine.memory_bytes()}

    def verify(self, reader: Reader, state: ViewState) -> None:
        check_rows(reader, state, self.graph)

    @property
    def _head(self) -> Sequence[Any]:
        return self.typed.query.head

    def _given(self, inputs: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.typed.query.input, inputs, strict=True))

    def _by_variable(self, names: Sequence[str], start: Codes, end: Codes) -> list[Any]:
        columns = {self._start: start, self._end: end}
        return [columns[name] for name in names]


def _block(rows: int) -> Block:
    """So many rows without outputs."""
    return [], np.ones(rows, np.int64), [], []


def pairs_of(cursor: PairCursor) -> Any:
    """All pairs of a cursor, in blocks; at least one block, perhaps an empty one."""
    while True:
        block = cursor.next_block(65_536)
        yield block
        if not len(block[0]):
            return


class _PairBlocks:
    """A cursor of the engine as one of the runtime."""

    pinned = False

    def __init__(self, pairs: PairCursor, outputs: Callable[[Codes, Codes], list[Any]], backend: Backend) -> None:
        self._pairs, self._outputs, self._backend = pairs, outputs, backend

    def next_block(self, max_rows: int = 8192) -> Block:
        from ivme.closure.pure import PureStaleClosure

        try:
            start, end = self._pairs.next_block(max_rows)
        except PureStaleClosure as error:
            raise self._backend.stale_cursor(str(error)) from None
        return self._outputs(start, end), np.ones(len(start), np.int64), [], []


class _Answer:
    """A cursor over one block."""

    pinned = False

    def __init__(self, block: Block) -> None:
        self._block = block

    def next_block(self, max_rows: int = 8192) -> Block:  # noqa: ARG002  it is one row at most
        block, self._block = self._block, ([], np.empty(0, np.int64), [], [])
        return block
