"""How the rows of a relation become those of a branch: computed, filtered and repeated, by their codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.ingest.feed import Feed, read_by
from ivme.engine.ingest.row_batch import Inputs, RowBatch, plain_position
from ivme.engine.read.recompute import tuples_of
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.native_path import NativeBranch, feed_places
from ivme.engine.runtime.reader import Reader
from ivme.errors import DataError
from ivme.query.expression import evaluate
from ivme.query.model import Atom, Table
from ivme.query.union import Branch

Part = tuple[list[Codes], Codes]
"""Columns of codes, and weights."""


@dataclass(frozen=True, slots=True)
class _Feed:
    wanted: tuple[FeedColumn, ...]
    inputs: Inputs
    columns: tuple[int, ...]
    test: int | None
    weight: int | None


class BranchFeed:
    """A branch over a relation; `owner` is the view that messages name."""

    __slots__ = ("_branch", "_catalog", "_feed", "_owner", "_table")

    def __init__(self, branch: Branch, catalog: Catalog, owner: str) -> None:
        self._branch = branch
        self._catalog = catalog
        self._owner = owner
        self._table: Table | None = None
        self._feed: _Feed | None = None

    def of(self, rows: RowBatch) -> Part:
        """The rows of the branch, and their weights; linear in the rows."""
        feed = self._current()
        ((_, columns),) = feed.inputs.of(rows)
        weights = rows.weights
        kept = None if feed.test is None else columns[feed.test] == 1
        if feed.weight is not None:
            weights = times(weights, columns[feed.weight], self._owner)
            kept = (weights != 0) if kept is None else kept & (weights != 0)
        if kept is None:
            return [columns[place] for place in feed.columns], weights
        return [columns[place][kept] for place in feed.columns], weights[kept]

    @property
    def read(self) -> set[str]:
        """The relation's columns that it reads."""
        return read_by(self._current().wanted)

    def native(self) -> NativeBranch:
        """The same for the kernel."""
        feed = self._current()
        assert self._table is not None
        table = self._table
        computed = [column for column in feed.wanted if plain_position(column, table) is None]
        compute = computed_columns(table, computed, self._catalog.domains) if computed else None
        places = feed_places(feed.wanted, table)

        def place(number: int | None) -> int:
            return -1 if number is None else places[feed.wanted[number]]

        return NativeBranch(compute, [place(number) for number in feed.columns], place(feed.test), place(feed.weight))

    def _current(self) -> _Feed:
        """Found again when the relation has other columns."""
        assert self._branch.relation is not None
        table = self._catalog.relation(self._branch.relation)
        if self._feed is None or self._table is not table:
            self._feed, self._table = _feed(self._branch, table, self._catalog, self._owner), table
        return self._feed


def _feed(branch: Branch, table: Table, catalog: Catalog, owner: str) -> _Feed:
    feed = Feed(table.column_names)
    columns = tuple(feed.column(column, "code", branch.where) for column in branch.columns)
    test = None if branch.where is None else feed.column(branch.where, "test")
    weight = None if branch.weight is None else feed.column(branch.weight, "int", branch.where)
    kind = "table" if branch.relation in catalog.tables else "view"
    inputs = Inputs(table, catalog.domains, [("union", feed)], lambda _: owner, kind)
    return _Feed(tuple(feed.columns), inputs, columns, test, weight)


def times(weights: Codes, counts: Codes, name: str) -> Codes:
    """Weights multiplied by counts, NULL for none; DataError if a product does not fit 64 bits."""
    counts = np.where(counts == NULL_CODE, 0, counts)
    most = 1 << 31
    if (np.abs(counts) >= most).any() or (np.abs(weights) >= most).any():
        exact = [int(a) * int(b) for a, b in zip(weights.tolist(), counts.tolist(), strict=True)]
        if any(abs(each) >= 1 << 63 for each in exact):
            raise DataError(f"a multiplicity in {name} does not fit 64 bits; nothing was changed")
        return np.array(exact, np.int64)
    return weights * counts


def plain_rows(reader: Reader, branch: Branch) -> Iterator[tuple[tuple[object, ...], int]]:
    """The rows of a branch, computed row by row, to verify."""
    if branch.relation is None:
        if branch.where is None or evaluate(branch.where, {}) is True:
            yield tuple(evaluate(column, {}) for column in branch.columns), 1
        return
    weight = () if branch.weight is None else (branch.weight,)
    names = tuple(f"c{number}" for number in range(len(branch.columns) + len(weight)))
    atom = Atom(branch.relation, names, (*branch.columns, *weight), branch.where)
    for values, count in tuples_of(reader, atom, frozenset()):
        repeated = values[names[-1]] or 0 if weight else 1
        yield tuple(values[name] for name in names[: len(branch.columns)]), count * repeated
