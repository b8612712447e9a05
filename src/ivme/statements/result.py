"""What a statement gives: rows with named columns, or how many rows it changed."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError

if TYPE_CHECKING:
    import pandas

Row = tuple[Any, ...]

_SHOWN_ROWS = 20
_SHOWN_WIDTH = 60


class Result:
    """The rows of a query, as they were when it was run; of another statement, what it did.

    `count` is the number of rows that were read, or changed; None where that is not known (in a transaction) or means
    nothing. `message` says what was done, in a sentence.
    """

    def __init__(self, data: pa.Table | None = None, *, count: int | None = None, message: str = "") -> None:
        self._data = pa.table({}) if data is None else data
        self.is_query = data is not None
        self.count = self._data.num_rows if self.is_query else count
        self.message = message

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._data.column_names)

    @property
    def schema(self) -> pa.Schema:
        """The names and Arrow types of the columns."""
        return self._data.schema

    def rows(self) -> list[Row]:
        """All rows."""
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        columns = [python_values(column) for column in self._data.columns]
        return zip(*columns, strict=True) if columns else iter([()] * self._data.num_rows)

    def __len__(self) -> int:
        return int(self._data.num_rows)

    def __bool__(self) -> bool:
        """A result is never false, also one without rows."""
        return True

    def scalar(self) -> Any:
        """The only value of the only row."""
        if self._data.shape != (1, 1):
            raise DataError(f"this is not a single value: it has {len(self)} rows of {len(self.columns)} columns")
        return next(iter(self))[0]

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self._data

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return self._data.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self.message or text_table(self._data)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.message)}</pre>" if self.message else html_table(self._data)


def shown_value(value: Any) -> str:
    """A value as tables show it; NULL is a word, and a long text is cut."""
    text = "NULL" if value is None else str(value)
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= _SHOWN_WIDTH else f"{text[: _SHOWN_WIDTH - 3]}..."


def _cells(data: pa.Table) -> list[list[str]]:
    columns = [python_values(column) for column in data.slice(0, _SHOWN_ROWS).columns]
    return [[shown_value(value) for value in row] for row in zip(*columns, strict=True)]


def _summary(data: pa.Table) -> str:
    rows = f"{data.num_rows:,} row{'' if data.num_rows == 1 else 's'}"
    return rows if data.num_rows <= _SHOWN_ROWS else f"{rows}, the first {_SHOWN_ROWS} are shown"


def is_number(field: pa.Field) -> bool:
    """Whether a column is shown at the right."""
    return any(check(field.type) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def text_table(data: pa.Table) -> str:
    """The first rows in columns of text, numbers to the right.

    >>> print(text_table(pa.table({"city": ["Rome", None], "n": [1, 20]})))
    city   n
    ----  --
    Rome   1
    NULL  20
    2 rows
    """
    cells = _cells(data)
    titles = [shown_value(name) for name in data.column_names]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    right = [is_number(field) for field in data.schema]

    def line(row: list[str]) -> str:
        parts = zip(row, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in parts).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(titles), rule, *map(line, cells), _summary(data)])


def html_table(data: pa.Table) -> str:
    """The first rows as an HTML table; every text in it is escaped."""
    head = "".join(f"<th>{escape(shown_value(name))}</th>" for name in data.column_names)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _cells(data))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{_summary(data)}</p>"
