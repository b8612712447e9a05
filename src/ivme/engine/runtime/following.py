"""The change of a view's rows in a batch, for its followers: columns of codes and weights.

The kernel emits the change of each assignment of a view's inputs and outputs (plan.changes). Without aggregates that
is the change itself, and nothing is stored: DISTINCT needs what is there now besides, to tell what was there before. A
group with aggregates has one row before and another after, so the codes of such rows are stored while the view is
followed: the change of a group is its old row, less, and its new one, more, and nothing if they are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, MutableSet, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.runtime.decoding import is_global
from ivme.engine.runtime.delta import Delta
from ivme.engine.runtime.transaction import Act, delivery
from ivme.query.model import Aggregate

if TYPE_CHECKING:
    from ivme.engine.backend import Backend, Block, Codes, EmittedDelta, KeptRows
    from ivme.engine.runtime.finishing import NativeValue
    from ivme.engine.runtime.reclaim import Holder
    from ivme.engine.runtime.shared_views import SharedViews
    from ivme.engine.runtime.view_state import ViewState

Change = tuple[RowBatch | None, Act | None]
"""The change of a view's rows, None for none; and what is to be done once it is committed."""

_ONE = np.zeros(1, np.int64)
"""The number of the only group of a global aggregate."""


class ChainedView(NamedTuple):
    """How the kernel tells the change of a view from what is emitted: `ChainView` in kernel/view_chain.hpp."""

    width: int
    places: Sequence[int]
    hides: bool
    kept: KeptRows | None = None
    values: Sequence[NativeValue] = ()
    nothing: Sequence[int] = ()
    is_distinct: bool = False


class Followed:
    """How the change of a view's rows is told from what is emitted. `layout` has the columns of its changes."""

    def __init__(self, state: ViewState, layout: Layout) -> None:
        self.layout = layout
        self._state = state
        query = state.typed.query
        sources = [*query.input, *(column.source for column in query.head)]
        self._places = [query.free.index(source) for source in sources if isinstance(source, str)]
        self._hides = set(self._places) != set(range(len(query.free)))

    def change(self, emitted: Sequence[EmittedDelta]) -> Change:
        """The change of the view's rows, each once; linear in what was emitted."""
        query = self._state.typed.query
        columns, counts = _consolidated(self._state.group, emitted, len(query.free))
        if query.distinct and len(counts):
            now = self._counts_now(columns, len(counts))
            columns, counts = _there(columns, (now != 0).astype(np.int64) - (now != counts))
        return self._shown([columns[place] for place in self._places], counts), None

    def chained(self) -> ChainedView | None:
        """How the kernel tells the change; None if only Python can."""
        query = self._state.typed.query
        if query.input or not query.free or self._state.group.enumerations[self._state.name].inputs:
            return None
        return ChainedView(len(query.free), self._places, self._hides, is_distinct=query.distinct)

    def memory_bytes(self) -> int:
        """What it keeps beside the view's maps."""
        return 0

    def _counts_now(self, columns: Sequence[Codes], n: int) -> Codes:
        numbers, block = self._state.group.points(self._state.name, representatives(self._state, columns))
        now = np.zeros(n, np.int64)
        now[numbers] = block[1]
        return now

    def _shown(self, columns: list[Codes], weights: Codes) -> RowBatch | None:
        """The columns that the view shows; groups that look the same are one row."""
        if self._hides:
            columns, weights = net(self._state.group, columns, weights)
        return RowBatch(self.layout, weights, None, list(columns)) if len(weights) else None


class FollowedGroups(Followed):
    """The same for a view with aggregates, which has no inputs: it keeps the codes of its rows."""

    def __init__(self, state: ViewState, layout: Layout, kept: KeptRows) -> None:
        super().__init__(state, layout)
        self._kept = kept
        query = state.typed.query
        self._values = [i for i, column in enumerate(query.head) if isinstance(column.source, Aggregate)]
        values = {i: len(query.output) + place for place, i in enumerate(self._values)}
        self._places = [
            values[i] if isinstance(column.source, Aggregate) else query.output.index(column.source)
            for i, column in enumerate(query.head)
        ]
        self._hides = not set(self._places).issuperset(range(len(query.output)))

    def chained(self) -> ChainedView | None:
        query, group = self._state.typed.query, self._state.group
        values = self._state.finisher.native_values(self._values, group.slots)
        if values is None or query.input or group.enumerations[self._state.name].inputs:
            return None
        nothing = [int(column[0]) for column in self._nothing()] if self._is_global() else []
        return ChainedView(len(query.output), self._places, self._hides, self._kept, values, nothing)

    def __len__(self) -> int:
        return len(self._kept)

    def memory_bytes(self) -> int:
        return self._kept.memory_bytes()

    def held_codes(self) -> list[Codes]:
        """The codes of the rows as they are: some sums are in no map."""
        return self._kept.columns()

    def keep(self, blocks: Iterable[Block]) -> None:
        """Takes all rows of the view as they are now."""
        nothing = True
        for block in blocks:
            nothing = False
            number = len(block[1])
            self._kept.put(block[0], number, np.arange(number, dtype=np.int64), self._finished(block))
        if nothing and self._is_global():
            self._kept.put([], 1, _ONE, self._nothing())

    def change(self, emitted: Sequence[EmittedDelta]) -> Change:
        width = len(self._state.typed.query.output)
        keys = _distinct(self._state.group, emitted, width)
        groups = len(keys[0]) if keys else 1
        if not groups:
            return None, None
        numbers, (_, counts, slots, extremes) = self._state.group.points(
            self._state.name, representatives(self._state, keys)
        )
        outputs = [column[numbers] for column in keys] if len(numbers) < groups else keys
        values = self._finished((outputs, counts, slots, extremes))
        if not len(numbers) and self._is_global():
            numbers, values = _ONE, self._nothing()
        columns, weights = self._kept.compare(keys, groups, numbers, values)
        if not len(weights):
            return None, None
        changed = self._shown([columns[place] for place in self._places], weights)
        return changed, partial(self._kept.put, keys, groups, numbers, values)

    def _finished(self, block: Block) -> list[Codes]:
        """The codes of a block's aggregates."""
        return self._state.finisher.codes(block, self._values)

    def _nothing(self) -> list[Codes]:
        """Those of a global aggregate over nothing."""
        return self._state.finisher.nothing_codes()

    def _is_global(self) -> bool:
        query = self._state.typed.query
        return is_global(query.head, query.output)


def keeps_rows(state: ViewState) -> bool:
    """Whether the changes of a view are told from its rows as they were."""
    return bool(state.typed.query.aggregates)


def _consolidated(group: SharedViews, emitted: Sequence[EmittedDelta], width: int) -> tuple[list[Codes], Codes]:
    """The emitted keys, each once, with the sums of their counts."""
    some = [delta for delta in emitted if len(delta.counts)]
    if len(some) == 1 and len(some[0].columns) == width > 0:
        return _there(some[0].columns, some[0].counts)  # a single delta has each row once
    columns, counts = _stacked(some, width)
    return net(group, columns, counts)


def _distinct(group: SharedViews, emitted: Sequence[EmittedDelta], width: int) -> list[Codes]:
    """The emitted keys, each once."""
    some = [delta for delta in emitted if len(delta.counts)]
    if len(some) == 1 and (len(some[0].columns) == width or len(some[0].counts) == 1):
        return some[0].columns[:width]
    columns, counts = _stacked(some, width)
    return group.net(columns, np.ones(len(counts), np.int64))[0] if width else []


def _stacked(emitted: Sequence[EmittedDelta], width: int) -> tuple[list[Codes], Codes]:
    nothing = np.empty(0, np.int64)
    columns = [np.concatenate([nothing, *(delta.columns[i] for delta in emitted)]) for i in range(width)]
    return columns, np.concatenate([nothing, *(delta.counts for delta in emitted)])


def net(netting: SharedViews | Backend, columns: list[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
    """Rows with equal codes as one, with the sum of their weights; none where that is zero."""
    if columns:
        return netting.net(columns, weights)
    total = weights.sum(keepdims=True)
    return [], total[total != 0]


def _there(columns: list[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
    """The rows whose weight is not zero."""
    there = np.flatnonzero(weights)
    return ([column[there] for column in columns], weights[there]) if len(there) < len(weights) else (columns, weights)


def representatives(state: ViewState, columns: Sequence[Codes]) -> list[Codes]:
    """The columns of a point request: one for each variable that the fracture made, then the outputs."""
    query = state.typed.query
    inputs = dict(zip(query.input, columns, strict=False))
    given = [inputs[original] for _, original in state.group.enumerations[state.name].inputs]
    return given + list(columns[len(query.input) :])


def deliveries(holders: MutableSet[Holder], queues: Sequence[deque[Delta]], changed: RowBatch) -> list[Act]:
    """Hands the change of a view's rows to those who follow it, by its codes, which are held until it is gone."""
    if not queues:
        return []
    holders.add(changed)
    delta = Delta(changed)
    return [delivery(queue, delta) for queue in queues]


def deltas(changes: Mapping[str, Change]) -> dict[str, Delta]:
    """The changes of views as their followers get them."""
    return {view: Delta(changed) for view, (changed, _) in changes.items() if changed is not None}
