"""Answers in pages: a result is read at one moment, and its further pages come from there."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as parquet

from ivme.serve.asking import ARROW, CSV, JSON, PARQUET
from ivme.serve.problem import Problem
from ivme.serve.values import dumps

_CHUNK = 4096
_MOST_RESULTS = 64
_MOST_ROWS = 5_000_000
_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a result, and the cursor of the next page, None on the last."""

    rows: pa.Table
    next: str | None


class Results:
    """Results that have further pages, for some minutes; the oldest go first. Used by the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, str, pa.Table]] = OrderedDict()

    def first(self, view: str, rows: pa.Table, limit: int | None) -> Page:
        """The first page of a result; the rest is stored."""
        if limit is None or rows.num_rows <= limit:
            return Page(rows, None)
        name = secrets.token_urlsafe(12)
        self._kept[name] = (self._clock(), view, rows)
        self._sweep()
        return Page(_part(rows, 0, limit), f"{name}.{limit}")

    def further(self, view: str, cursor: str, limit: int) -> Page:
        """The page at a cursor."""
        self._sweep()
        name, _, place = cursor.partition(".")
        kept = self._kept.get(name)
        if kept is None or kept[1] != view or not (place.isascii() and place.isdigit() and len(place) < 12):
            raise Problem(410, "the cursor belongs to another view, or has expired; request the first page again")
        rows, start = kept[2], int(place)
        end = start + limit
        return Page(_part(rows, start, limit), f"{name}.{end}" if end < rows.num_rows else None)

    def _sweep(self) -> None:
        """Forgets what is too old or too much, except for the newest."""
        rows = sum(table.num_rows for _, _, table in self._kept.values())
        while self._kept:
            made, _, table = next(iter(self._kept.values()))
            crowded = len(self._kept) > _MOST_RESULTS or (rows > _MOST_ROWS and len(self._kept) > 1)
            if not crowded and self._clock() - made <= _SECONDS:
                return
            self._kept.popitem(last=False)
            rows -= table.num_rows


def encoded(page: Page, form: str) -> Iterator[bytes]:
    """The page in a form, piece by piece."""
    if form in _WHOLE:
        return _WHOLE[form](page.rows)
    return _json(page) if form == JSON else _ndjson(page.rows)


def _json(page: Page) -> Iterator[bytes]:
    yield b'{"columns":' + dumps(page.rows.column_names) + b',"rows":['
    for start in range(0, page.rows.num_rows, _CHUNK):
        yield (b"," if start else b"") + dumps(_listed(_part(page.rows, start, _CHUNK)))[1:-1]
    yield b'],"next":' + dumps(page.next) + b"}\n"


def _ndjson(rows: pa.Table) -> Iterator[bytes]:
    names = rows.column_names
    for start in range(0, rows.num_rows, _CHUNK):
        listed = _listed(_part(rows, start, _CHUNK))
        yield b"".join(dumps(dict(zip(names, row, strict=True))) + b"\n" for row in listed)


def _arrow(rows: pa.Table) -> Iterator[bytes]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=65_536)
    yield sink.getvalue().to_pybytes()


def _csv(rows: pa.Table) -> Iterator[bytes]:
    """Names in the first line; NULL is nothing, and an empty text is in quotes. Arrays and structs are JSON."""
    flat = [
        column
        if not pa.types.is_nested(column.type)
        else pa.array([None if each is None else dumps(each).decode() for each in column.to_pylist()], pa.string())
        for column in rows.columns
    ]
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(pa.table(flat, names=rows.column_names), sink)
    yield sink.getvalue().to_pybytes()


def _parquet(rows: pa.Table) -> Iterator[bytes]:
    sink = pa.BufferOutputStream()
    parquet.write_table(rows, sink)
    yield sink.getvalue().to_pybytes()


_WHOLE: dict[str, Callable[[pa.Table], Iterator[bytes]]] = {ARROW: _arrow, CSV: _csv, PARQUET: _parquet}


def _part(rows: pa.Table, start: int, length: int) -> pa.Table:
    """Some rows; without columns, Arrow's own slices do not know where the rows end."""
    return rows.slice(start, max(0, min(length, rows.num_rows - start)))


def _listed(rows: pa.Table) -> list[tuple[object, ...]]:
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
