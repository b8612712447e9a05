"""The change of a view's rows in a batch, for those who follow it.

The kernel emits the change of each assignment of a view's inputs and outputs (plan.changes). Without aggregates that
is the change itself, and nothing is kept: DISTINCT needs what is there now besides, to tell what was there before. A
group with aggregates has one row before and another after, so the rows of such a view are kept while it is followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from ivme.engine.backend import Codes, EmittedDelta
from ivme.engine.runtime.decoding import Row
from ivme.engine.runtime.shared_views import Group
from ivme.engine.runtime.single_row import FEW
from ivme.engine.runtime.view_state import Key, RowChange, ViewState

Updates = dict[Key, tuple[Row, int] | None]
"""Rows by their keys as they are now; None for those that are gone."""


def keeps_rows(state: ViewState) -> bool:
    """Whether the changes of a view are told from its rows as they were."""
    return bool(state.typed.query.aggregates)


def direct_change(state: ViewState, emitted: Sequence[EmittedDelta]) -> RowChange:
    """The change of a view without aggregates, linear in what was emitted; inputs come in front of the row."""
    query = state.typed.query
    columns, counts = _consolidated(state.group, emitted, len(query.free))
    if query.distinct and len(counts):
        now = _counts_now(state, columns, len(counts))
        counts = (now != 0).astype(np.int64) - (now != counts)
    places = [query.free.index(str(source)) for source in (*query.input, *(c.source for c in query.head))]
    decoded = {
        place: [state.finisher.domain(query.free[place]).decode_value(code) for code in columns[place].tolist()]
        for place in set(places)
    }
    rows = zip(*(decoded[place] for place in places), strict=True) if places else [()] * len(counts)
    return summed(zip(rows, counts.tolist(), strict=True))


def summed(changes: Iterable[tuple[Row, int]]) -> RowChange:
    """The changes by row, without those that cancel."""
    total: RowChange = {}
    for row, weight in changes:
        total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def _consolidated(group: Group, emitted: Sequence[EmittedDelta], width: int) -> tuple[list[Codes], Codes]:
    """The emitted keys, each once, with the sums of their counts."""
    counts = np.concatenate([np.empty(0, np.int64), *(delta.counts for delta in emitted)])
    if not width or not len(counts):
        total = counts.sum(keepdims=True)
        return [np.empty(0, np.int64)] * width, total[total != 0]
    if len(counts) <= FEW:
        net = summed(zip(_keys(emitted, width), counts.tolist(), strict=True))
        return _columns(list(net), width), np.array(list(net.values()), dtype=np.int64)
    return group.net(_stacked(emitted, width), counts)


def _stacked(emitted: Sequence[EmittedDelta], width: int) -> list[Codes]:
    return [np.concatenate([delta.columns[i] for delta in emitted]) for i in range(width)]


def _keys(emitted: Sequence[EmittedDelta], width: int) -> Iterator[Key]:
    """The emitted keys one by one, which for a few is quicker than all at once."""
    return chain.from_iterable(zip(*(c.tolist() for c in each.columns[:width]), strict=True) for each in emitted)


def _columns(keys: Sequence[Key], width: int) -> list[Codes]:
    return [np.array([key[i] for key in keys], dtype=np.int64) for i in range(width)]


def _counts_now(state: ViewState, columns: Sequence[Codes], n: int) -> Codes:
    numbers, block = state.group.points(state.name, representatives(state, columns))
    now = np.zeros(n, np.int64)
    now[numbers] = block[1]
    return now


def row_updates(state: ViewState, emitted: Sequence[EmittedDelta]) -> Updates:
    """The rows of the groups that changed, as they are now. The view has outputs and no inputs."""
    width = len(state.typed.query.output)
    keys = _distinct(state.group, emitted, width)
    if not keys:
        return {}
    columns = _columns(keys, width)
    numbers, (_, counts, slots, extremes) = state.group.points(state.name, representatives(state, columns))
    found = state.finisher.rows(([column[numbers] for column in columns], counts, slots, extremes), {})
    updates: Updates = dict.fromkeys(keys)
    updates.update(zip((keys[number] for number in numbers.tolist()), found, strict=True))
    return updates


def _distinct(group: Group, emitted: Sequence[EmittedDelta], width: int) -> list[Key]:
    """The emitted keys, each once."""
    number = sum(len(delta.counts) for delta in emitted)
    if number <= FEW:
        return list(dict.fromkeys(_keys(emitted, width)))
    columns, _ = group.net(_stacked(emitted, width), np.ones(number, np.int64))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def representatives(state: ViewState, columns: Sequence[Codes]) -> list[Codes]:
    """The columns of a point request: one for each variable that the fracture made, then the outputs."""
    query = state.typed.query
    inputs = dict(zip(query.input, columns, strict=False))
    given = [inputs[original] for _, original in state.group.enumerations[state.name].inputs]
    return given + list(columns[len(query.input) :])


def difference(old: Mapping[Key, tuple[Row, int]], updates: Updates) -> RowChange:
    """By how much the multiplicity of each row changed."""
    change: list[tuple[Row, int]] = []
    for key, now in updates.items():
        was = old.get(key)
        if was != now:
            change += [] if was is None else [(was[0], -was[1])]
            change += [] if now is None else [now]
    return summed(change)


def update(rows: dict[Key, tuple[Row, int]], updates: Updates) -> None:
    """Brings kept rows up to date."""
    for key, now in updates.items():
        if now is None:
            rows.pop(key, None)
        else:
            rows[key] = now
