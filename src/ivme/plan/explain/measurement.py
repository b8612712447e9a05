"""What was counted of a view, beside what is promised: `explain(analyze=True)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """What single changes of a table cost: operations on average and at most, and the mean time in microseconds.

    None were `tried` of a table that is static, or has no rows.
    """

    table: str
    rows: int
    promised: str
    tried: int
    mean: float
    most: int
    microseconds: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """Changes of each table, the entries that are stored, and reading.

    Of a view with parameters, the latest requests are run again in place of reading all rows (`rows_read` is None).
    """

    tables: tuple[MeasuredTable, ...]
    entries: int
    rows_read: int | None
    operations_a_row: float
    requests: int = 0
    operations_a_request: float = 0.0

    def __str__(self) -> str:
        head = ("table", "rows", "promised", "tried", "operations", "at most", "µs")
        lines = [_cells(each) for each in self.tables]
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        told = ["measured on a copy, by changes of single rows:"]
        for line in (head, *lines):
            padded = [
                cell.ljust(width) if place in (0, 2) else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            told.append(f"    {'  '.join(padded).rstrip()}")
        rows = sum(each.rows for each in self.tables)
        told.append(f"    {self.entries:,} entries are stored, tables included, for {rows:,} rows of tables")
        if self.rows_read:
            told.append(f"    reading {self.rows_read:,} rows took {self.operations_a_row:,.1f} operations a row")
        if self.requests:
            asked = f"the latest {self.requests:,} requests" if self.requests > 1 else "the latest request"
            told.append(f"    {asked}, repeated, took {self.operations_a_request:,.1f} operations each")
        return "\n".join(told)


def _cells(each: MeasuredTable) -> tuple[str, ...]:
    counted = (f"{each.mean:,.1f}", f"{each.most:,}", f"{each.microseconds:,.0f}") if each.tried else ("", "", "")
    return each.table, f"{each.rows:,}", each.promised, f"{each.tried:,}", *counted
