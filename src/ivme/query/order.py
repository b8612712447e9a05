"""ORDER BY, LIMIT and OFFSET of a view: which of its rows it shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ivme.query.windows import WindowCall

HIDDEN = "#order"
"""How the names of columns begin that are there to order by, and that readers do not see."""

RANK = "#rank"
"""The column of a rank."""

Ties = Literal["none", "last", "values"]
"""What a limit counts: rows; rows, and then all that are like the last one (WITH TIES, RANK); values of what rows are
ordered by (DENSE_RANK)."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A column that rows are ordered by: its position, or its name where the query has stars."""

    column: int | str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range: the parameter, and whether rows that equal it are left out."""

    parameter: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a column: its ends, or in their place the parameter that texts begin with."""

    column: str
    lower: Bound | None
    upper: Bound | None
    prefix: str | None = None

    @property
    def parameters(self) -> list[str]:
        ends = [end.parameter for end in (self.lower, self.upper) if end is not None]
        return [*ends, *([] if self.prefix is None else [self.prefix])]


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate over a range: its name, "count", "sum", "avg", "min" or "max", and the columns of partial sums and
    counts; of "min" and "max", the column `sums` has those of a part of the rows.

    A "key" of groups is one, too, whose column `sums` is; it is not shown if it has no name.
    """

    name: str
    function: str
    sums: str
    counts: str


@dataclass(frozen=True, slots=True)
class Item:
    """What a request shows beside windows: a window under a name, the next column of the rows, or by "*" all."""

    name: str
    column: str


@dataclass(frozen=True, slots=True)
class Ranges:
    """Which rows a request has: those that equal parameters in some columns, and are in the spans of others.

    The first span is found in the order of the rows, others are filters. Without one only the equalities say so. With
    `totals` a request has one row, which they are, or with keys among them one for each group. With windows, `items`
    are what is shown of each row.
    """

    equal: tuple[tuple[str, str], ...]
    spans: tuple[Span, ...] = ()
    totals: tuple[Total, ...] = ()
    items: tuple[Item, ...] = ()

    def shown_of(self, columns: Sequence[str]) -> list[Item]:
        """What is shown of rows with these columns, each under its name. Names that begin with # are hidden."""
        plain = [name for name in columns if not name.startswith("#")]
        made: list[Item] = []
        for place, item in enumerate(self.items):
            if item.column:
                made.append(item)
                continue
            behind = sum(not each.column for each in self.items[place + 1 :])
            count = len(plain) - behind if item.name == "*" else 1
            made += [Item(name, name) for name in plain[:count]]
            del plain[:count]
        return made

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters, each with the column that it is compared with."""
        return dict(self.equal) | {name: span.column for span in self.spans for name in span.parameters}

    @property
    def is_grouped(self) -> bool:
        """Whether a request has a row for each group."""
        return any(total.function == "key" for total in self.totals)

    @property
    def is_summed(self) -> bool:
        """Whether sums in the nodes of an ordered map are all that a request needs."""
        is_plain = all(total.function in ("count", "sum", "avg") for total in self.totals)
        return bool(self.totals) and is_plain and len(self.spans) == 1


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows, and the part of them that is shown. Rows that the keys do not tell apart come in the order
    of their columns. With `groups`, columns by position or name, it is the part of each group that is shown.

    Columns whose names begin with `hidden` are not shown. With a `rank`, the rank of each row in its group is a column.
    With `ranges`, it is the order of the rows of a request, which these say. Each of `windows` is a column, too: a
    function of the rows around each in its group. One that `is_kept` is maintained although all rows are shown.
    """

    keys: tuple[OrderKey, ...]
    limit: int | None
    offset: int
    text: str
    ties: Ties = "none"
    groups: tuple[int | str, ...] = ()
    hidden: str = HIDDEN
    rank: bool = False
    ranges: Ranges | None = None
    windows: tuple[WindowCall, ...] = ()
    is_kept: bool = False

    def over(self, columns: Sequence[str]) -> Order:
        """The same with positions among these columns."""

        def position(column: int | str) -> int:
            return column if isinstance(column, int) else columns.index(column)

        keys = [replace(key, column=position(key.column)) for key in self.keys]
        windows = tuple(call.over(position) for call in self.windows)
        return replace(self, keys=tuple(keys), groups=tuple(map(position, self.groups)), windows=windows)

    def from_start(self) -> Order:
        """The same with the rows that OFFSET skips."""
        return replace(self, limit=None if self.limit is None else self.limit + self.offset, offset=0)

    @property
    def is_whole(self) -> bool:
        """Whether all rows are shown as they are."""
        return self.limit is None and not self.offset and not self.rank and not self.windows

    @property
    def changes_many(self) -> bool:
        """Whether one row more or less may change as many rows as there are: the ranks of all behind it."""
        if self.ranges is not None:
            return False
        return (self.rank and self.limit is None) or any(call.changes_many for call in self.windows)

    def shown(self, columns: Sequence[str]) -> list[str]:
        """The columns that readers see, of these columns of the rows."""
        return [*(name for name in columns if not name.startswith(self.hidden)), *self.added]

    @property
    def added(self) -> list[str]:
        """The columns that it adds to those of the rows."""
        return [*([RANK] if self.rank else []), *(call.name for call in self.windows)]
