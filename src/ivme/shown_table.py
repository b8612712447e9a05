"""Rows as people look at them, in a terminal and in a notebook: the first few, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from typing import Any

import pyarrow as pa

SHOWN_ROWS = 20
_WIDEST = 60


def shown_value(value: Any) -> str:
    """A value in one line; NULL is a word, and a long text is cut."""
    text = "NULL" if value is None else str(value)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def is_number(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type are shown at the right."""
    return any(check(type_) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether Python values are numbers, or NULL.

    >>> is_numeric((1, 2.5, None)), is_numeric((True,)), is_numeric(("1",))
    (True, False, False)
    """
    numbers = (value for value in values if value is not None)
    return all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in numbers)


def counted(count: int, one: str, many: str = "") -> str:
    """A number of things; `many` is their name if that is not `one` with an s.

    >>> counted(1, "row"), counted(2_000, "row"), counted(0, "batch", "batches")
    ('1 row', '2,000 rows', '0 batches')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def rows_shown(count: int) -> str:
    """How many rows there are, and how many of them are shown."""
    rows = counted(count, "row")
    return rows if count <= SHOWN_ROWS else f"{rows}, the first {SHOWN_ROWS} are shown"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[bool], summary: str) -> str:
    """Rows in columns of text; those that are `right` are aligned there.

    >>> print(text_table(["city", "n"], [("Rome", 1), (None, 20)], [False, True], "2 rows"))
    city   n
    ----  --
    Rome   1
    NULL  20
    2 rows
    """
    cells = [[shown_value(value) for value in row] for row in rows]
    titles = [shown_value(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]

    def line(row: list[str]) -> str:
        parts = zip(row, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in parts).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(titles), rule, *map(line, cells), summary])


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], summary: str) -> str:
    """Rows as an HTML table; every text in it is escaped."""
    head = "".join(f"<th>{escape(shown_value(name))}</th>" for name in columns)
    lines = ["".join(f"<td>{escape(shown_value(value))}</td>" for value in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(summary)}</p>"
