"""Rows in the order of their values: the requests to an ordered map and its answers.

`_kernel.OrderedMap` is the kernel's (kernel/ordered_map.hpp), `PureOrderedMap` (reference/) that of plain Python. Both
have rows of codes with a number of copies each, one after the other in the order of some columns: a *rank* is the
number of copies before a place. The first columns of the order are those of a group, whose rows stand together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domain import Domain

NO_LIMIT = 2**61
"""More copies than a group has."""


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column in an order: its position in a row, and how its values are compared.

    `is_key` says that rows are ordered by it; others only tell apart what is equal in these.
    """

    position: int
    domain: Domain
    descending: bool = False
    nulls_first: bool = True
    is_key: bool = True


class Ties(IntEnum):
    """What is shown beyond a limit: nothing, the rows like the last one, or the limit counts values, not copies."""

    NONE = 0
    LIKE_LAST = 1
    VALUES = 2


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a group that is shown: copies from a rank in the group on, and how many of them.

    Rows are alike in ties if the first `ordered_by` columns of the order do not tell them apart.
    """

    offset: int
    limit: int
    ties: Ties
    ordered_by: int

    def packed(self) -> tuple[int, int, int, int]:
        """As the kernel takes it."""
        return min(self.offset, NO_LIMIT), min(self.limit, NO_LIMIT), int(self.ties), self.ordered_by


class OrderedMap(Protocol):
    """Rows of codes in an order. Changes are committed or rolled back; finding a rank or a row takes O(log N)."""

    def __len__(self) -> int:
        """The distinct rows."""

    @property
    def copies(self) -> int: ...
    @property
    def operations(self) -> int:
        """How many rows have been compared."""

    def load(self, columns: Sequence[Codes], weights: Codes, /) -> None:
        """Fills a map without rows; one that failed is of no use."""

    def apply(self, columns: Sequence[Codes], weights: Codes, /) -> None:
        """Adds copies of rows, or takes them away."""

    def apply_shown(
        self, columns: Sequence[Codes], weights: Codes, window: tuple[int, int, int, int], /
    ) -> tuple[list[Codes], Codes]:
        """The same; the rows that enter the windows of their groups, or leave them. A row may come more than once."""

    def commit(self) -> None: ...
    def roll_back(self) -> None: ...
    def ranks(self, columns: Sequence[Codes], n: int, after: bool, /) -> Codes:
        """For n rows by the first columns of the order: the rank of the first that is like it or behind it; `after`, of
        the first behind all that are like it."""

    def shown(self, groups: Sequence[Codes], n: int, window: tuple[int, int, int, int], /) -> tuple[Codes, Codes]:
        """For n groups the ranks at which what is shown of each begins and ends."""

    def all_shown(self, window: tuple[int, int, int, int], /) -> tuple[Codes, Codes]:
        """The same for all groups that have rows, in their order; O(log N) for each."""

    def rows(self, first: Codes, last: Codes, /) -> tuple[Codes, list[Codes], Codes]:
        """The rows between ranks, in their order: the numbers of the spans, the columns, and the copies inside."""

    def totals(self, ranks: Codes, /) -> tuple[list[Codes], list[Codes]]:
        """For each rank what is before it: of each summed column the sums, in two words, and the values not NULL."""

    def codes(self) -> list[Codes]:
        """The codes of dictionaries that it has."""

    def check(self) -> None:
        """Looks whether it is what it says; for tests."""

    def memory_bytes(self) -> int: ...


def place_keys(keys: Sequence[OrderedColumn], groups: Sequence[int], domains: Sequence[Domain]) -> list[OrderedColumn]:
    """The whole order of rows: by the columns of a group, by keys, and where these are equal by all other columns.

    Groups are ordered as the keys say if they are among them.
    """
    known = {key.position: key for key in reversed(keys)}
    order = [known.get(position, OrderedColumn(position, domains[position])) for position in dict.fromkeys(groups)]
    for each in (*keys, *(OrderedColumn(i, domain, is_key=False) for i, domain in enumerate(domains))):
        if all(each.position != other.position for other in order):
            order.append(each)
    return order
