"""ORDER BY, LIMIT and OFFSET of a view: which of its rows it shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

HIDDEN = "#order"
"""How the names of columns begin that are there to order by, and that readers do not see."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A column that rows are ordered by: its position, or its name where the query has stars."""

    column: int | str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows, and the part of them that is shown. Rows that the keys do not tell apart come in the order
    of their columns.
    """

    keys: tuple[OrderKey, ...]
    limit: int | None
    offset: int
    text: str

    def over(self, columns: Sequence[str]) -> Order:
        """The same with positions among these columns."""
        places = [each.column if isinstance(each.column, int) else columns.index(each.column) for each in self.keys]
        keys = [replace(key, column=place) for key, place in zip(self.keys, places, strict=True)]
        return replace(self, keys=tuple(keys))

    @property
    def is_whole(self) -> bool:
        """Whether all rows are shown."""
        return self.limit is None and not self.offset
