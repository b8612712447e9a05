"""A union between blocks: it stores nothing, and passes the rows of its branches on, by their codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ivme.engine.backend import Block, Cursor
from ivme.engine.codes.dictionary import Codes
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.native_path import NativeBranch
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import VerificationError
from ivme.plan.ir.program import Enumeration
from ivme.query.expression import evaluate
from ivme.query.types import Type
from ivme.query.union import Union
from ivme.views.branch_feed import BranchFeed, Part, plain_rows


class UnionView(ExternalView):
    """The rows of a union's branches; `rows_of` reads all rows of a relation."""

    def __init__(self, union: Union, types: Sequence[Type], catalog: Catalog, rows_of: Callable[[str], RowBatch]):
        super().__init__(union.name, ("union", union.name), catalog.backend, catalog.domains, ())
        self.relations = union.relations
        self.enumerations = {union.name: Enumeration((), union.columns, (), (), ())}
        self._union = union
        self._rows_of = rows_of
        self._codes = [catalog.domains.domain(type_) for type_ in types]
        self._feeds: dict[str, list[BranchFeed]] = {
            relation: [BranchFeed(each, catalog, union.name) for each in union.branches if each.relation == relation]
            for relation in union.relations
        }
        self._parts: list[Part] = []

    @property
    def union(self) -> Union:
        """What it is the union of."""
        return self._union

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """There is nothing to build."""

    def apply(self, relation: str, rows: RowBatch) -> None:
        self._parts += self._mapped(relation, rows)

    def commit(self) -> None:
        self._parts = []

    def roll_back(self) -> None:
        self._parts = []

    def follow(self, on: bool) -> None:
        """Its changes are there anyway."""

    def changed(self, layout: Layout) -> RowBatch:
        parts, self._parts = self._parts, []
        return joined_parts(layout, parts)

    def read_of(self, relation: str) -> set[str]:
        return {column for feed in self._feeds[relation] for column in feed.read}

    def native_branches(self) -> dict[str, list[NativeBranch]]:
        return {relation: [feed.native() for feed in feeds] for relation, feeds in self._feeds.items()}

    def _mapped(self, relation: str, rows: RowBatch) -> Iterator[Part]:
        for feed in self._feeds[relation]:
            columns, weights = feed.of(rows)
            if len(weights):
                yield columns, weights

    # Reading

    def all_rows(self, layout: Layout) -> RowBatch:
        """All rows; equal ones may come more than once."""
        parts = [part for relation in self.relations for part in self._mapped(relation, self._rows_of(relation))]
        return joined_parts(layout, [*parts, *self._constants()])

    def _constants(self) -> Iterator[Part]:
        for branch in self._union.branches:
            if branch.relation is None and (branch.where is None or evaluate(branch.where, {}) is True):
                values = [evaluate(column, {}) for column in branch.columns]
                codes = [domain.encode_value(value) for domain, value in zip(self._codes, values, strict=True)]
                yield [np.array([code], np.int64) for code in codes], np.ones(1, np.int64)

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:
        raise NotImplementedError("a union is read by the blocks that are built on it")

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        raise NotImplementedError("a union is read by the blocks that are built on it")

    def held_codes(self) -> list[Codes]:
        return [codes for columns, _ in self._parts for codes in columns]

    def memory_bytes(self) -> int:
        return 0

    def verify(self, reader: Reader, state: ViewState) -> None:
        """Compares the rows with those that the branches give row by row."""
        rows = reader.all_rows(state.name)
        found = _counted(zip(rows.rows(), rows.weights.tolist(), strict=True))
        expected = _counted(row for branch in self._union.branches for row in plain_rows(reader, branch))
        for row in [*expected, *found]:
            if expected[row] != found[row]:
                times = f"{found[row]} times, and its branches {expected[row]} times"
                raise VerificationError(f"the union {state.name} has the row {row!r} {times}")


def joined_parts(layout: Layout, parts: Sequence[Part]) -> RowBatch:
    nothing = np.empty(0, np.int64)
    columns = [np.concatenate([nothing, *(part[i] for part, _ in parts)]) for i in range(len(layout.domains))]
    return RowBatch(layout, np.concatenate([nothing, *(weights for _, weights in parts)]), None, list(columns))


def _counted(rows: Iterable[tuple[tuple[object, ...], int]]) -> Counter[tuple[object, ...]]:
    counted: Counter[tuple[object, ...]] = Counter()
    for row, weight in rows:
        counted[row] += weight
    return counted
