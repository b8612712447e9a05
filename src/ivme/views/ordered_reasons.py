"""Why a row is in a block with an order, a limit or windows, or why not: its position, and the rows that decide it.

The block's rows are put in order for it, by Python: O(N log N), as reasons from tables are linear in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ivme.engine.read.plain_windows import Partition, partitions
from ivme.engine.read.reasons import Finding, Row, first_few, merged, shown
from ivme.engine.runtime.view_state import ViewState
from ivme.query.block_names import view_of_block
from ivme.query.order import Order
from ivme.views.ordered_view import OrderedView
from ivme.views.range_totals import RangeTotals
from ivme.views.window_view import WindowView

if TYPE_CHECKING:
    from ivme.views.block_reasons import BlockReasons, Columns


def present_order(
    blocks: BlockReasons, state: ViewState, columns: Sequence[Columns], values: Row, *, every: bool
) -> tuple[Finding, ...]:
    """What is behind rows of a block with an order, for the values of its parameters; with `every`, of all copies."""
    if isinstance(state.group, RangeTotals):
        rows = _rows_of_total(blocks, state.group, columns[0], values)
        return _behind(blocks, state, rows, values)
    found: list[Finding] = []
    for wanted in columns:
        for place in _places(blocks, state, values, wanted):
            if place.is_shown and _agrees(place.columns, wanted):
                found += place.findings(every=every)
                if not every:
                    break
    return merged(found)


def absent_order(blocks: BlockReasons, state: ViewState, columns: Columns, values: Row) -> tuple[Finding, ...]:
    """That a row is beyond the limit or out of the range; the row that is there with other values; or what the block
    below lacks."""
    group = state.group
    assert isinstance(group, OrderedView)
    if isinstance(group, RangeTotals):
        return _absent_total(blocks, state, group, columns, values)
    plain = {name: value for name, value in columns.items() if name not in _added(blocks, state)}
    found = [place for place in _places(blocks, state, values, plain) if _agrees(place.columns, plain)]
    if not found:
        return _lacking(blocks, state, group, plain, values)
    if any(place.is_shown for place in found):
        return (Finding(_called(state), tuple(plain.items()), tuple(place.shown for place in found if place.is_shown)),)
    beyond = Finding(_called(state), (("position", found[0].position),), ())
    return (Finding(found[0].label, found[0].partition_key, (found[0].shown,), 0, (beyond,)),)


@dataclass(frozen=True, slots=True)
class _Place:
    """A row of a block at its place in its partition; `shown` is what the block shows of it."""

    blocks: BlockReasons
    state: ViewState
    partition: Partition
    number: int
    shown: Row
    values: Row

    @property
    def group(self) -> OrderedView:
        assert isinstance(self.state.group, OrderedView)
        return self.state.group

    @property
    def order(self) -> Order:
        return self.group.order

    @property
    def columns(self) -> dict[str, Any]:
        return dict(zip(self.state.table.column_names, self.shown, strict=True))

    @property
    def position(self) -> int:
        return self.number + 1

    @property
    def label(self) -> str:
        return f"position {self.position} of {self.order.text}"

    @property
    def is_shown(self) -> bool:
        """Whether it is between OFFSET and LIMIT."""
        order = self.order
        if order.limit is None:
            return self.number >= order.offset
        is_before = self.partition.rank(order.ties, self.number) <= order.limit + order.offset
        return is_before and self.number >= order.offset and bool(order.limit)

    @property
    def partition_key(self) -> tuple[tuple[str, Any], ...]:
        """The values of its partition, by the names that people know."""
        names, row = _inner_columns(self.blocks, self.group), self.partition.rows[self.number]
        places = [place for place in self.order.groups if isinstance(place, int)]
        return tuple((names[place], row[place]) for place in places if not names[place].startswith("#"))

    def findings(self, *, every: bool) -> tuple[Finding, ...]:
        """What is behind it, and the rows that its position or its values come from."""
        own = _behind(self.blocks, self.state, [self._named(self.number)], self.values, every=every)
        if isinstance(self.group, WindowView):
            texts = dict.fromkeys(call.text for call in self.order.windows)
            return (*own, *(self._used(text, self._places_of(text)) for text in texts))
        if self.order.rank:
            return (*own, self._used(self.order.text, range(self.number + 1)))
        if not self.order.text:
            return own
        skipped = [self._used(f"OFFSET {self.order.offset}", range(self.order.offset))] if self.order.offset else []
        return (Finding(self.label, self.partition_key, (self.shown,), 0, (*own, *skipped)),)

    def _places_of(self, text: str) -> list[int]:
        calls = [call for call in self.order.windows if call.text == text]
        return sorted({place for call in calls for place in self.partition.used(call, self.number)})

    def _used(self, label: str, places: Sequence[int]) -> Finding:
        """Rows of its partition that count, and what is behind them."""
        rows = [self._named(place) for place in places]
        told = dict.fromkeys(tuple(v for name, v in row.items() if not name.startswith("#")) for row in rows)
        distinct = list({tuple(row.values()): row for row in rows}.values())
        below = _behind(self.blocks, self.state, first_few(distinct), self.values)
        return Finding(label, self.partition_key, tuple(told), 0, below)

    def _named(self, place: int) -> dict[str, Any]:
        return dict(zip(_inner_columns(self.blocks, self.group), self.partition.rows[place], strict=True))


def _places(blocks: BlockReasons, state: ViewState, values: Row, wanted: Columns) -> Iterator[_Place]:
    """The rows of a block for a request at their places, partition by partition: those that have what is wanted in the
    columns of the block below. Only their values are computed."""
    group = state.group
    assert isinstance(group, OrderedView)
    names = _inner_columns(blocks, group)
    is_renamed = group.order.ranges is not None and bool(group.order.ranges.items)
    known = [(names.index(name), value) for name, value in wanted.items() if name in names and not is_renamed]
    for partition in partitions(group.rows_in_order(values), group.order):
        for number, row in enumerate(partition.rows):
            if all(row[place] == value for place, value in known) and group.is_requested(row, values):
                whole = (*row, *_values(group, partition, number))
                yield _Place(blocks, state, partition, number, group.shown_of(whole), values)


def _values(group: OrderedView, partition: Partition, number: int) -> list[Any]:
    """The values that are added to a row: its rank, and those of windows."""
    ranks = [partition.rank(group.order.ties, number)] if group.order.rank else []
    if not isinstance(group, WindowView):
        return ranks
    calls = zip(group.order.windows, group.types, strict=True)
    return [*ranks, *(partition.value(call, number, *types) for call, types in calls)]


def _behind(
    blocks: BlockReasons, state: ViewState, rows: Sequence[Columns], values: Row, *, every: bool = True
) -> tuple[Finding, ...]:
    """What is behind rows of the block that is put in order."""
    group = state.group
    assert isinstance(group, OrderedView)
    _, given = group.known_below(values)
    return blocks.behind(group.inner, rows, present=True, every=every, given=given) if rows else ()


def _lacking(
    blocks: BlockReasons, state: ViewState, group: OrderedView, columns: Columns, values: Row
) -> tuple[Finding, ...]:
    """That the block has such a row, but not in the range; or what it lacks."""
    known, given = group.known_below(values)
    names = _inner_columns(blocks, group)
    asked = {name: value for name, value in columns.items() if name in names} | known
    if group.order.ranges is not None and any(
        _agrees(dict(zip(names, row, strict=True)), asked) for row in blocks.reader.all_rows(group.inner).rows()
    ):
        at = tuple(zip(state.typed.query.parameters, values, strict=True))
        return (Finding("the range", at, ()),)
    found = blocks.behind(group.inner, [asked], present=False, given=given, called=_called(state))
    return found or (Finding(_called(state), tuple(columns.items()), ()),)


def _rows_of_total(blocks: BlockReasons, group: RangeTotals, columns: Columns, values: Row) -> list[dict[str, Any]]:
    """The rows in the range that a total adds up: those of its group."""
    names, keys = _inner_columns(blocks, group), group.keys_of(columns)
    rows = [dict(zip(names, row, strict=True)) for row in group.rows_in_order(values)]
    return [row for row in rows if _agrees(row, keys)]


def _absent_total(
    blocks: BlockReasons, state: ViewState, group: RangeTotals, columns: Columns, values: Row
) -> tuple[Finding, ...]:
    """That no row of the group is in the range, or those whose total differs."""
    rows = _rows_of_total(blocks, group, columns, values)
    at = tuple(zip(state.typed.query.parameters, values, strict=True))
    if not rows:
        return (Finding("the range", at, ()),)
    below = _behind(blocks, state, first_few(rows), values)
    return (Finding(f"the total {shown(tuple(columns.values()))}", at, (), 0, below),)


def _added(blocks: BlockReasons, state: ViewState) -> set[str]:
    """The columns that are not those of the block."""
    assert isinstance(state.group, OrderedView)
    return set(state.table.column_names).difference(_inner_columns(blocks, state.group))


def _inner_columns(blocks: BlockReasons, group: OrderedView) -> tuple[str, ...]:
    return blocks.reader.catalog.views[group.inner].table.column_names


def _called(state: ViewState) -> str:
    return "a subquery" if view_of_block(state.name) else state.name


def _agrees(columns: Mapping[str, Any], known: Columns) -> bool:
    return all(columns[name] == value for name, value in known.items())
