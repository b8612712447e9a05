"""The rows that are stored of a followed view, in plain Python; what they are is said in kernel/kept_rows.hpp."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ivme.engine.backend import Codes

Key = tuple[int, ...]


class PureKeptRows:
    """Rows by the codes of their groups."""

    def __init__(self, width: int) -> None:
        self._rows: dict[Key, Key] = {}
        self._width = width

    def __len__(self) -> int:
        return len(self._rows)

    def memory_bytes(self) -> int:
        """A rough estimate, as for maps."""
        return 250 * len(self._rows)

    def compare(
        self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes], /
    ) -> tuple[list[Codes], Codes]:
        changes: list[tuple[Key, int]] = []
        for key, now in _now(keys, groups, numbers, values):
            was = self._rows.get(key)
            if was != now:
                changes += [] if was is None else [((*key, *was), -1)]
                changes += [] if now is None else [((*key, *now), 1)]
        return self._by_column([row for row, _ in changes]), np.array([weight for _, weight in changes], np.int64)

    def put(self, keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes], /) -> None:
        for key, now in _now(keys, groups, numbers, values):
            if now is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = now

    def columns(self) -> list[Codes]:
        return self._by_column([(*key, *values) for key, values in self._rows.items()])

    def _by_column(self, rows: Sequence[Key]) -> list[Codes]:
        return [np.array([row[i] for row in rows], np.int64) for i in range(self._width)]


def _now(
    keys: Sequence[Codes], groups: int, numbers: Codes, values: Sequence[Codes]
) -> Iterator[tuple[Key, Key | None]]:
    """Each group with the row that it has now, None if it has none."""
    listed = zip(*(column.tolist() for column in values), strict=True) if values else [()] * len(numbers)
    rows = dict(zip(numbers.tolist(), listed, strict=True))
    groups_keys = zip(*(column.tolist() for column in keys), strict=True) if keys else [()] * groups
    return ((key, rows.get(number)) for number, key in enumerate(groups_keys))
