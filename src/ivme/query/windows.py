"""Window functions: what a call of one is, how far a changed row reaches, and what a value is computed from.

Rows of a partition are in an order. A *frame* is the rows around one that its value is computed from. Where the rows of
a partition change, only rows within `reach` of a change have new values, and these are computed from the rows within
`context` of them; both are numbers of rows before and after, None up to the end of the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from ivme.errors import UnsupportedError
from ivme.query.aggregates import AGGREGATES
from ivme.query.types import Type

WINDOW = "#window"
"""How the names of columns begin that window functions have computed."""

Offset = int | Decimal | timedelta
Edge = Offset | None
"""Where a frame begins or ends, from the current row on: so many rows, peers or units; None at the partition's end."""

Unit = Literal["rows", "range", "groups"]


@dataclass(frozen=True, slots=True)
class Frame:
    """From `start` up to `end`, both included. The current row of "range" and "groups" is all its peers."""

    unit: Unit
    start: Edge
    end: Edge

    @property
    def is_running(self) -> bool:
        """Whether it begins with the partition, and ends with the current row or its peers."""
        return self.start is None and self.end == 0

    @property
    def is_of_values(self) -> bool:
        """Whether it is between two values of the key, both at a distance from that of the current row."""
        return self.unit == "range" and self.start is not None and self.end is not None

    @property
    def is_whole(self) -> bool:
        return self.start is None and self.end is None


Reach = tuple[int | None, int | None]
"""Numbers of rows before and after; None is all of the partition."""

RANKS = ("row_number", "rank", "dense_rank")
_OF_PARTITION = ("ntile", "percent_rank", "cume_dist")
VALUES = ("first_value", "last_value", "nth_value")
SHIFTS = ("lag", "lead", "lag_there", "lead_there")
TOTALS = ("count", "sum", "avg")
"""Aggregates that the sums in the nodes of an ordered map give."""

AGGREGATED = (*TOTALS, "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "bool_and", "bool_or")


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A call: `column` is what it computes over, None for COUNT(*) and ranks; `number` the n of LAG, NTH_VALUE, NTILE.

    "lag_there" and "lead_there" are whether there is a row that LAG and LEAD read, for what they are otherwise.
    """

    name: str
    function: str
    text: str
    column: int | str | None = None
    frame: Frame | None = None
    number: int = 1
    ignores_nulls: bool = False
    written: tuple[str, int | None] = field(default=("", None), compare=False, repr=False)
    """The user's text and the place in it, for messages."""

    def over(self, position: Callable[[int | str], int]) -> WindowCall:
        """The same with the position of its column."""
        return self if self.column is None else replace(self, column=position(self.column))

    @property
    def needs_copies(self) -> bool:
        """Whether copies of one row may have different values."""
        by_rows = self.frame is not None and self.frame.unit == "rows" and not self.frame.is_whole
        numbered = self.function in ("row_number", "ntile", "nth_value", *SHIFTS)
        return numbered or (by_rows and self.function not in ("rank", "dense_rank", "percent_rank", "cume_dist"))

    @property
    def reach(self) -> Reach:
        """Which rows around a changed one may have other values."""
        if self.function in RANKS:
            return 0, None
        if self.function in _OF_PARTITION or (self.ignores_nulls and self.function in SHIFTS):
            return None, None
        if self.function in SHIFTS:
            return (0, self.number) if self.function.startswith("lag") else (self.number, 0)
        frame = self.frame
        assert frame is not None
        if frame.is_running:
            return 0, None
        if frame.unit != "rows":
            return None, None
        return _rows(frame.end), _rows(_negated(frame.start))

    def context(self, *, summed: bool) -> Reach:
        """Which rows around one its value is computed from; `summed` says that the sums before a row are known."""
        if self.function in ("row_number", "rank"):
            return 0, 0
        if self.function == "dense_rank":
            return None, 0
        if self.function in _OF_PARTITION or (self.ignores_nulls and self.function in SHIFTS):
            return None, None
        if self.function in SHIFTS:
            return (self.number, 0) if self.function.startswith("lag") else (0, self.number)
        frame = self.frame
        assert frame is not None
        if frame.is_running:
            return (0 if summed and self.function in TOTALS else None), 0
        if frame.unit != "rows":
            return None, None
        return _rows(_negated(frame.start)), _rows(frame.end)

    @property
    def is_by_position(self) -> bool:
        """Whether the value of one row is found by its position in the order, or from a number of rows around it.

        That is not so where all rows of a partition may decide: DENSE_RANK, the least of all, IGNORE NULLS.
        """
        if self.ignores_nulls or self.function in ("dense_rank", "lag_there", "lead_there"):
            return False
        frame = self.frame
        if self.function in (*TOTALS, *VALUES) and frame is not None:
            return frame.unit != "groups" or not (frame.start or frame.end)
        if self.function in AGGREGATED and frame is not None:
            return frame.unit == "rows" and frame.start is not None and frame.end is not None
        return True

    @property
    def changes_many(self) -> bool:
        """Whether one row more or less may change all rows of its partition."""
        return None in self.reach

    def type_of(self, given: Type | None) -> Type | None:
        """The type of its values, for one of its column; None if it takes no such column."""
        if self.function in (*RANKS, "ntile"):
            return Type("int")
        if self.function in ("percent_rank", "cume_dist"):
            return Type("float")
        if self.function.endswith("_there"):
            return Type("bool")
        if self.function in AGGREGATED:
            found = AGGREGATES[self.function]
            if given is None:
                return Type("int")
            wants = ("bool",) if self.function.startswith("bool") else found.takes
            return None if wants and given.kind not in wants else found.type(given)
        return given

    def check_key(self, given: Type | None) -> None:
        """Refuses a frame whose offset cannot be added to what rows are ordered by."""
        offsets = [] if self.frame is None or self.frame.unit != "range" else [self.frame.start, self.frame.end]
        for offset in offsets:
            takes = ("date", "timestamp") if isinstance(offset, timedelta) else ("int", "float", "decimal", "date")
            if offset and (given is None or given.kind not in takes):
                what = "an INTERVAL" if isinstance(offset, timedelta) else "a number"
                raise self.refusal(f"a frame RANGE with {what} does not fit ORDER BY of type {given}")

    def refusal(self, message: str) -> UnsupportedError:
        text, place = self.written
        instead = "compute it over a column of another type, or CAST this one"
        return UnsupportedError(message, text=text, position=place, instead=instead)


def _negated(edge: Edge) -> Edge:
    return None if edge is None else -edge


def _rows(edge: Edge) -> int | None:
    """How many rows an edge is away, none if it is on the other side."""
    if edge is None:
        return None
    assert isinstance(edge, int), "frames of rows count rows"
    return max(edge, 0)


def widest(reaches: Sequence[Reach]) -> Reach:
    """What covers all of these."""
    before, after = [each for each, _ in reaches], [each for _, each in reaches]
    return (
        None if None in before else max((each for each in before if each is not None), default=0),
        None if None in after else max((each for each in after if each is not None), default=0),
    )
