"""A block of the pairs of two relations that meet in an inequality (query/pairing.py).

Each side has an ordered map (engine/ordered.py) of its rows by keys and bound. The partners of a changed row are a
range of the other side's map: two ranks, O(log N), and O(1) for each partner. Of a side of which only keys, counts and
sums are read no partner is listed: the nodes of its map know the range's count and sums, so that a changed row of the
other side costs O(log N), however many partners it has. Nothing but the maps is stored; pairs are passed on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from ivme.engine.backend import Block, Cursor
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.ordered import OrderedColumn, OrderedMap, place_keys
from ivme.engine.read.recompute import Row
from ivme.engine.read.verify import compare_rows, counted
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import net
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.triggers import CountError
from ivme.engine.runtime.view_state import ViewState
from ivme.plan.ir.program import Enumeration
from ivme.query.pairing import Pairing, Side
from ivme.query.types import Type
from ivme.views.branch_feed import BranchFeed, Part
from ivme.views.plain_pairs import compare_pairs
from ivme.views.union_view import joined_parts

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


class PairedSide:
    """The rows of one side: keys, bounds and shown columns, in the order of keys and the first bound."""

    def __init__(self, side: Side, types: Sequence[Type], catalog: Catalog, owner: str, *, descending: bool) -> None:
        self.side = side
        self.feed = BranchFeed(side.branch, catalog, owner)
        self.domains: list[Domain] = [catalog.domains.domain(type_) for type_ in types]
        self.keys = len(side.keys)
        self.start = self.keys + len(side.bounds)
        self.summed = [self.start + place for place in sorted(side.summed)]
        self._descending = descending
        self._backend = catalog.backend
        self.map = self._empty()

    def _empty(self) -> OrderedMap:
        keys = [OrderedColumn(place, self.domains[place]) for place in range(self.keys)]
        keys.append(OrderedColumn(self.keys, self.domains[self.keys], self._descending))
        return self._backend.ordered_map(place_keys(keys, (), self.domains), 0, self.summed)

    def load(self, part: Part) -> None:
        """Fills a new map."""
        made = self._empty()
        made.load(*part)
        self.map = made

    def known(self, columns: Sequence[Codes]) -> Mask:
        """Which rows have all keys and bounds: NULL meets nothing."""
        found = np.ones(len(columns[0]), bool)
        for column in columns[: self.start]:
            found &= column != NULL_CODE
        return found

    def shown(self, columns: Sequence[Codes]) -> list[Codes]:
        return list(columns[self.start :])

    def ranks(self, keys: Sequence[Codes], bound: Codes, *, after: bool) -> Codes:
        """Where rows of these keys and this bound begin, or end."""
        return self.map.ranks([*keys, bound], len(bound), after)

    def ends(self, keys: Sequence[Codes], n: int) -> tuple[Codes, Codes]:
        """Where the rows of these keys begin and end."""
        if not keys:
            return np.zeros(n, np.int64), np.full(n, self.map.copies, np.int64)
        return self.map.ranks(list(keys), n, False), self.map.ranks(list(keys), n, True)


class PairedView(ExternalView):
    """What the pairings of all kinds have in common; `rows_of` reads all rows of a relation."""

    takes_nan = True

    def __init__(self, pairing: Pairing, table_types: Sequence[Type], reader: Reader) -> None:
        catalog = reader.catalog
        super().__init__(pairing.name, ("pairing", pairing.name), catalog.backend, catalog.domains, ())
        self.relations = pairing.relations
        self.enumerations = {pairing.name: Enumeration((), pairing.columns, (), (), ())}
        self.pairing = pairing
        self._reader = reader
        self._rows_of: Callable[[str], RowBatch] = lambda relation: reader.rows_to_feed(relation, each=True)
        assert pairing.bound_type is not None, "it has types"
        shown = len(pairing.left.columns)
        own = table_types[:shown], table_types[shown:]
        self.sides: list[PairedSide] = []
        for place, side in enumerate((pairing.left, pairing.right)):
            types = [*pairing.key_types, *[pairing.bound_type] * len(side.bounds), *own[place]]
            descending = bool(place) and self._nearest_is_greatest
            self.sides.append(PairedSide(side, types, catalog, pairing.name, descending=descending))
        self._parts: list[Part] = []

    @property
    def _nearest_is_greatest(self) -> bool:
        """Whether the right side is read from its greatest bound on."""
        return self.pairing.first and self.pairing.comparisons[0] in (">", ">=")

    # Changes

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        """Fills the maps of both sides."""
        for side in self.sides:
            columns, weights = side.feed.of(rows[side.side.relation])
            known = side.known(columns)
            with self._counting():
                side.load(([column[known] for column in columns], weights[known]))

    def fill(self) -> None:
        self.build({relation: self._rows_of(relation) for relation in self.relations})

    def apply(self, relation: str, rows: RowBatch) -> None:
        """Takes the left side first: a relation that is on both meets itself as it was, and then as it is."""
        for place, side in enumerate(self.sides):
            if side.side.relation == relation:
                columns, weights = side.feed.of(rows)
                if len(weights) and weights.min() < 0 < weights.max():  # a row may go before it comes
                    columns, weights = net(self._backend, columns, weights)
                with self._counting():
                    self._take(place, columns, weights)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except self._backend.overflow as error:
            message = f"the number of rows behind {self.name} does not fit 64 bits; nothing was changed"
            raise CountError(message) from error

    @abstractmethod
    def _take(self, place: int, columns: list[Codes], weights: Codes) -> None:
        """Takes changed rows of a side into its map, and the pairs that come and go into the parts."""

    def commit(self) -> None:
        self._parts = []
        for side in self.sides:
            side.map.commit()

    def roll_back(self) -> None:
        self._parts = []
        for side in self.sides:
            side.map.roll_back()

    def follow(self, on: bool) -> None:
        """Its changes are there anyway."""

    def changed(self, layout: Layout) -> RowBatch:
        parts, self._parts = self._parts, []
        made = joined_parts(layout, parts)
        columns, weights = net(self._backend, made.codes(), made.weights)
        return RowBatch(layout, weights, None, list(columns))

    # Reading

    def all_rows(self, layout: Layout) -> RowBatch:
        columns, weights = self.sides[0].feed.of(self._rows_of(self.sides[0].side.relation))
        return joined_parts(layout, list(self._of_side(0, columns, weights)))

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:
        raise NotImplementedError("a pairing is read by the blocks that are built on it")

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        raise NotImplementedError("a pairing is read by the blocks that are built on it")

    def held_codes(self) -> list[Codes]:
        parts = [codes for columns, _ in self._parts for codes in columns]
        return [*parts, *(codes for side in self.sides for codes in side.map.codes())]

    def memory_bytes(self) -> int:
        return sum(side.map.memory_bytes() for side in self.sides)

    @property
    def operations(self) -> int:
        """The comparisons of rows in the maps so far."""
        return sum(side.map.operations for side in self.sides)

    def verify(self, reader: Reader, state: ViewState) -> None:  # noqa: ARG002
        """Compares the pairs with those that Python finds in sorted lists, from either side."""
        for place, side in enumerate(self.sides):
            columns, weights = side.feed.of(self._rows_of(side.side.relation))
            known = side.known(columns)
            compare_pairs(self.pairing, reader, place, self._listed_pairs(self._of_side(place, columns, weights)))
            held = net(self._backend, [column[known] for column in columns], weights[known])
            _compare_map(f"side {place + 1} of {self.name}", side.map, *held)

    @abstractmethod
    def _of_side(self, place: int, columns: list[Codes], weights: Codes) -> Iterator[Part]:
        """The pairs of rows of a side with the other one as it is."""

    def _listed_pairs(self, parts: Iterator[Part]) -> Iterator[tuple[Row, int]]:
        domains = [domain for side in self.sides for domain in side.domains[side.start :]]
        for columns, weights in parts:
            values = [domain.values(each.tolist()) for domain, each in zip(domains, columns, strict=True)]
            rows = zip(*values, strict=True) if values else iter([()] * len(weights))
            yield from zip(rows, weights.tolist(), strict=True)


def _compare_map(name: str, found: OrderedMap, columns: list[Codes], weights: Codes) -> None:
    """Compares what an ordered map has with rows."""
    _, held, copies = found.rows(np.zeros(1, np.int64), np.full(1, found.copies, np.int64))
    rows = counted(zip(zip(*(column.tolist() for column in held), strict=True), copies.tolist(), strict=True))
    wanted = zip(zip(*(column.tolist() for column in columns), strict=True), weights.tolist(), strict=True)
    compare_rows(name, counted(wanted), rows)
