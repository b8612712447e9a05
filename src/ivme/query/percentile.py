"""What a percentile reads of the values of a group: the ones at its position, which an ordered index finds."""

from __future__ import annotations

from dataclasses import dataclass

PERCENTILES = ("percentile_cont", "percentile_disc")


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile: its function, the part of the group that is before it, and the direction of the order.

    >>> str(Percentile("percentile_cont", 0.5, True)), read_percentile("percentile_disc 0.25")
    ('percentile_cont 0.5 desc', Percentile(function='percentile_disc', fraction=0.25, descending=False))
    """

    function: str
    fraction: float
    descending: bool

    def __str__(self) -> str:
        return f"{self.function} {self.fraction!r}{' desc' if self.descending else ''}"


def read_percentile(text: str) -> Percentile | None:
    """The percentile that a read of an index is; None if it is another read, such as "min"."""
    function, *rest = text.split(" ")
    return Percentile(function, float(rest[0]), len(rest) > 1) if function in PERCENTILES else None
