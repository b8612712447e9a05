"""A union between blocks: it stores nothing, and passes the rows of its branches on, by their codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ivme.engine.backend import Block, Cursor
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Inputs, Layout, RowBatch
from ivme.engine.read.recompute import tuples_of
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError, VerificationError
from ivme.plan.ir.program import Enumeration
from ivme.query.expression import evaluate
from ivme.query.model import Atom, Table
from ivme.query.types import Type
from ivme.query.union import Branch, Union

Part = tuple[list[Codes], Codes]
"""Columns of codes, and weights."""


@dataclass(frozen=True, slots=True)
class _Feed:
    """How the rows of a relation become those of a branch."""

    inputs: Inputs
    columns: tuple[int, ...]
    test: int | None
    weight: int | None


class UnionView(ExternalView):
    """The rows of a union's branches; `rows_of` reads all rows of a relation."""

    def __init__(self, union: Union, types: Sequence[Type], catalog: Catalog, rows_of: Callable[[str], RowBatch]):
        super().__init__(union.name, ("union", union.name), catalog.backend, catalog.domains, ())
        self.relations = union.relations
        self.enumerations = {union.name: Enumeration((), union.columns, (), (), ())}
        self._union = union
        self._rows_of = rows_of
        self._codes = [catalog.domains.domain(type_) for type_ in types]
        self._catalog = catalog
        self._feeds: dict[str, tuple[Table, list[_Feed]]] = {}
        self._parts: list[Part] = []

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
        return _joined(layout, parts)

    def _mapped(self, relation: str, rows: RowBatch) -> Iterator[Part]:
        for feed in self._feeds_of(relation):
            ((_, columns),) = feed.inputs.of(rows)
            weights = rows.weights
            if feed.weight is not None:
                weights = _repeated(weights, columns[feed.weight], self._union.name)
            kept = None if feed.test is None else columns[feed.test] == 1
            if feed.weight is not None:
                kept = (weights != 0) if kept is None else kept & (weights != 0)
            if kept is None:
                yield [columns[place] for place in feed.columns], weights
            elif kept.any():
                yield [columns[place][kept] for place in feed.columns], weights[kept]

    def _feeds_of(self, relation: str) -> list[_Feed]:
        """How the rows of a relation become those of its branches; found anew when it has other columns."""
        table = self._catalog.relation(relation)
        known = self._feeds.get(relation)
        if known is None or known[0] is not table:
            mine = [branch for branch in self._union.branches if branch.relation == relation]
            known = self._feeds[relation] = (table, [_feed(each, self._catalog, self.name) for each in mine])
        return known[1]

    # Reading

    def all_rows(self, layout: Layout) -> RowBatch:
        """All rows; equal ones may come more than once."""
        parts = [part for relation in self.relations for part in self._mapped(relation, self._rows_of(relation))]
        return _joined(layout, [*parts, *self._constants()])

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
        expected = _counted(row for branch in self._union.branches for row in _recomputed(reader, branch))
        for row in [*expected, *found]:
            if expected[row] != found[row]:
                times = f"{found[row]} times, and its branches {expected[row]} times"
                raise VerificationError(f"the union {state.name} has the row {row!r} {times}")


def _feed(branch: Branch, catalog: Catalog, owner: str) -> _Feed:
    assert branch.relation is not None
    feed = Feed(catalog.relation(branch.relation).column_names)
    columns = tuple(feed.column(column, "code", branch.where) for column in branch.columns)
    test = None if branch.where is None else feed.column(branch.where, "test")
    weight = None if branch.weight is None else feed.column(branch.weight, "int", branch.where)
    kind = "table" if branch.relation in catalog.tables else "view"
    table = catalog.relation(branch.relation)
    inputs = Inputs(table, catalog.domains, [("union", feed)], lambda _: owner, kind)
    return _Feed(inputs, columns, test, weight)


def _repeated(weights: Codes, times: Codes, name: str) -> Codes:
    times = np.where(times == NULL_CODE, 0, times)
    most = 1 << 31
    if (np.abs(times) >= most).any() or (np.abs(weights) >= most).any():
        exact = [int(a) * int(b) for a, b in zip(weights.tolist(), times.tolist(), strict=True)]
        if any(abs(each) >= 1 << 63 for each in exact):
            raise DataError(f"a multiplicity in {name} does not fit 64 bits; nothing was changed")
        return np.array(exact, np.int64)
    return weights * times


def _joined(layout: Layout, parts: Sequence[Part]) -> RowBatch:
    nothing = np.empty(0, np.int64)
    columns = [np.concatenate([nothing, *(part[i] for part, _ in parts)]) for i in range(len(layout.domains))]
    return RowBatch(layout, np.concatenate([nothing, *(weights for _, weights in parts)]), None, list(columns))


def _recomputed(reader: Reader, branch: Branch) -> Iterator[tuple[tuple[object, ...], int]]:
    """The rows of a branch, computed row by row."""
    if branch.relation is None:
        if branch.where is None or evaluate(branch.where, {}) is True:
            yield tuple(evaluate(column, {}) for column in branch.columns), 1
        return
    weight = () if branch.weight is None else (branch.weight,)
    names = tuple(f"c{number}" for number in range(len(branch.columns) + len(weight)))
    atom = Atom(branch.relation, names, (*branch.columns, *weight), branch.where)
    for values, count in tuples_of(reader, atom, frozenset()):
        times = values[names[-1]] or 0 if weight else 1
        yield tuple(values[name] for name in names[: len(branch.columns)]), count * times


def _counted(rows: Iterable[tuple[tuple[object, ...], int]]) -> Counter[tuple[object, ...]]:
    counted: Counter[tuple[object, ...]] = Counter()
    for row, weight in rows:
        counted[row] += weight
    return counted
