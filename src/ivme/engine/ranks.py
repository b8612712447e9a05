"""The rank of rows in their groups, by column: what ROW_NUMBER, RANK and DENSE_RANK are of rows that are in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ivme.engine.codes.dictionary import Codes
from ivme.engine.ordered import Ties


def with_ranks(
    numbers: Codes, columns: Sequence[Codes], copies: Codes, keys: Sequence[int], ties: Ties, offset: int
) -> tuple[list[Codes], Codes]:
    """Rows with their ranks as a last column, and the copies of each.

    They are in their order, by the numbers of their groups. `offset` copies of each group are before its first row.

    >>> numbers, x = np.array([0, 0, 0, 1]), np.array([5, 6, 6, 5])
    >>> for ties in Ties:
    ...     found, copies = with_ranks(numbers, [x], np.array([2, 1, 1, 1]), [0], ties, 0)
    ...     print(found[1].tolist(), copies.tolist())
    [1, 2, 3, 4, 1] [1, 1, 1, 1, 1]
    [1, 3, 3, 1] [2, 1, 1, 1]
    [1, 2, 2, 1] [2, 1, 1, 1]
    """
    if not len(numbers):
        return [*columns, np.empty(0, np.int64)], copies
    if ties == Ties.NONE:
        each = np.repeat(np.arange(len(copies)), copies)
        numbers, columns = numbers[each], [column[each] for column in columns]
        copies = np.ones(len(each), np.int64)
    starts_group = _changes([numbers])
    if ties == Ties.VALUES:
        before = np.cumsum(starts_group | _changes([columns[key] for key in keys])) - 1
    else:
        before = np.cumsum(copies) - copies
    if ties == Ties.LIKE_LAST:
        before = _first(before, starts_group | _changes([columns[key] for key in keys]))
    ranks = before - _first(before, starts_group) + 1 + offset
    return [*columns, ranks], copies


def _changes(columns: Sequence[Codes]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where rows differ from the one before."""
    found = np.zeros(len(columns[0]) if columns else 1, bool)
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    found[0] = True
    return found


def _first(values: Codes, begins: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Codes:
    """For each row the value of the last one up to it that begins something."""
    places = np.maximum.accumulate(np.where(begins, np.arange(len(values)), 0))
    first: Codes = values[places]
    return first
