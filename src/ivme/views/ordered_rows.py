"""Rows that are sorted and cut when they are read: those of a request, and all where no ordered map is maintained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.nested_values import comparable
from ivme.engine.read.recompute import Row
from ivme.query.nested import in_order
from ivme.query.order import Order


def arrange(data: pa.Table, counts: Codes, order: Order) -> tuple[Codes, Codes]:
    """The positions of the rows that are shown, in their order, and how many copies of each; O(N log N)."""
    rows = sort(data, order)
    return (rows, counts[rows]) if order.is_whole else cut(data, rows, counts[rows], order)


def sort(data: pa.Table, order: Order) -> Codes:
    """The positions of rows in their order."""
    ways = [(key.column, key.descending, key.nulls_first) for key in order.keys]
    ways += [(place, False, True) for place in range(data.num_columns)]
    columns, directions = [], []
    for place, descending, nulls_first in ways:
        assert isinstance(place, int)
        column = comparable(data.column(place))
        columns += [pc.cast(pc.is_null(column), pa.int8()), column]
        directions += ["descending" if nulls_first else "ascending", "descending" if descending else "ascending"]
    if not columns:
        return np.arange(data.num_rows, dtype=np.int64)
    names = [str(number) for number in range(len(columns))]
    found = pc.sort_indices(pa.table(columns, names=names), sort_keys=list(zip(names, directions, strict=True)))
    places: Codes = found.to_numpy().astype(np.int64)
    return places


def cut(data: pa.Table, rows: Codes, counts: Codes, order: Order) -> tuple[Codes, Codes]:
    """Of sorted rows those from OFFSET up to LIMIT. Of a repeated row at an edge, only the copies inside count."""
    if not len(rows):
        return rows, counts
    ends = np.cumsum(counts)
    starts, last = ends - counts, ends
    if order.limit is not None:
        end = order.offset + order.limit
        like = starts if order.ties == "none" or not order.limit else _first_like(data, rows, starts, order)
        last = np.where(like < end, ends if order.ties == "last" else np.minimum(ends, end), 0)
    kept = np.clip(last - np.maximum(starts, order.offset), 0, None)
    there = np.flatnonzero(kept)
    return rows[there], kept[there]


def _first_like(data: pa.Table, rows: Codes, starts: Codes, order: Order) -> Codes:
    """For each of sorted rows the start of the first one that keys do not tell apart from it."""
    begins = np.zeros(len(rows), bool)
    begins[0] = True
    for place in _places([key.column for key in order.keys]):
        column = comparable(data.column(place))
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        numbers = pc.dictionary_encode(whole).indices.fill_null(-1).to_numpy()[rows]
        begins[1:] |= numbers[1:] != numbers[:-1]
    first: Codes = starts[np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))]
    return first


def _places(columns: Sequence[int | str]) -> list[int]:
    places = [place for place in columns if isinstance(place, int)]
    assert len(places) == len(columns)
    return places


# In plain Python, to verify


def first_rows(rows: list[Row], order: Order) -> list[Row]:
    """The rows that are shown, found by Python's sort; with their ranks, if these are shown."""
    whole = _stable(sorted(rows, key=lambda row: [_rank(value) for value in row]), order)
    places = _places(order.groups)
    whole.sort(key=lambda row: [_rank(row[place]) for place in places])
    groups = groupby(whole, key=lambda row: [_rank(row[place]) for place in places])
    return [row for _, group in groups for row in _shown(list(group), order)]


def _shown(rows: list[Row], order: Order) -> Iterator[Row]:
    """The part of a group, whose rows are sorted, that is shown."""
    like = [_values(row, order) for row in rows]
    distinct = list(dict.fromkeys(like))
    for number, row in enumerate(rows):
        first = like.index(like[number])
        if order.ties == "values":
            rank = distinct.index(like[number])
            is_shown = order.limit is None or rank < order.limit
        else:
            rank = number if order.ties == "none" else first
            end = None if order.limit is None else order.offset + order.limit
            is_shown = number >= order.offset and (end is None or (rank < end and bool(order.limit)))
        if is_shown:
            yield (*row, rank + 1) if order.rank else row


def _values(row: Row, order: Order) -> tuple[object, ...]:
    return tuple(_rank(row[place]) for place in _places([key.column for key in order.keys]))


def _rank(value: object) -> tuple[bool, object]:
    return (value is not None, in_order(value) if value is not None else 0)


def _stable(rows: list[Row], order: Order) -> list[Row]:
    """Rows that are sorted by all columns, sorted by the keys."""
    for key in reversed(order.keys):
        place = key.column
        assert isinstance(place, int)
        nulls = [row for row in rows if row[place] is None]
        known = [row for row in rows if row[place] is not None]
        known.sort(key=lambda row: in_order(row[place]), reverse=key.descending)
        rows = nulls + known if key.nulls_first else known + nulls
    return rows
