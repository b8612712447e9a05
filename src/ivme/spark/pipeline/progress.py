"""What a running pipeline shows: a table that stays in place on a terminal, and lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Bars
from rich.progress import TaskID
from rich.table import Table

from ivme.shown_table import counted
from ivme.spark.pipeline.events import Applied, Event, Opening, Refused

_DONE = {"load": "loaded", "build": "built"}


@dataclass(slots=True)
class _Totals:
    batches: int = 0
    rows: int = 0
    changes: int = 0
    rewritten: int = 0
    seconds: float = 0.0
    latency: float = 0.0
    lag: int = 0
    refused_rows: int = 0
    refused_files: int = 0


class Progress:
    """Collects events, and shows them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._totals: dict[str, _Totals] = {}
        self._live: Live | None = None
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._start = time.perf_counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opening):
            self._tell_opening(event)
            return
        totals = self._totals.setdefault(event.source, _Totals())
        if isinstance(event, Refused):
            totals.refused_rows += event.rows
            totals.refused_files += not event.rows
            self._console.print(
                f"quarantined {event.source}/{event.name}: {event.reason}", markup=False, soft_wrap=True
            )
        else:
            self._count(totals, event)
            if self._live is None:
                self._console.print(line(event), markup=False, highlight=False, soft_wrap=True)
        if self._live is not None:
            self._live.update(self._table())

    def _count(self, totals: _Totals, event: Applied) -> None:
        totals.batches += 1
        totals.rows += event.rows_in
        totals.changes += event.changes_out
        totals.rewritten += event.rewritten
        totals.seconds += event.seconds
        totals.latency, totals.lag = event.seconds, event.lag

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Shows bars for loads and builds while a pipeline is opened, if the output is a terminal."""
        if not self._console.is_terminal:
            yield
            return
        with Bars(console=self._console, transient=True) as bars:
            self._bars = bars
            try:
                yield
            finally:
                self._bars = None

    def _tell_opening(self, event: Opening) -> None:
        if self._bars is None:
            if event.seconds is not None:
                told = f"{_DONE[event.what]} {event.name} in {event.seconds:.2f} s ({event.done} of {event.total})"
                self._console.print(told, markup=False, highlight=False)
            return
        if event.what not in self._tasks:
            self._tasks[event.what] = self._bars.add_task(event.what, total=event.total)
        self._bars.update(
            self._tasks[event.what],
            total=event.total,
            completed=event.done + event.share,
            description=f"{event.what} {event.name}",
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows the table while a pipeline runs, if the output is a terminal."""
        if not self._console.is_terminal:
            yield
            return
        with Live(self._table(), console=self._console, refresh_per_second=4) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def _table(self) -> Table:
        out = ["changes out", *(["sinks rewritten"] if any(t.rewritten for t in self._totals.values()) else [])]
        table = Table("changes of", "batches", "rows in", "rows/s", *out, "latency", "lag", "quarantined")
        for column in table.columns[1:]:
            column.justify = "right"
        for source, t in self._totals.items():
            speed = f"{t.rows / t.seconds:,.0f}" if t.seconds else "-"
            written = (f"{t.changes:,}", f"{t.rewritten:,}")[: len(out)]
            cells = (f"{t.batches:,}", f"{t.rows:,}", speed, *written, f"{t.latency:.2f} s", f"{t.lag:,}")
            table.add_row(source, *cells, _quarantined([t]))
        return table

    def summary(self, rewritten: int = 0) -> str:
        """One line for the end; `rewritten` is how many times sinks got all rows of their view."""
        every = self._totals.values()
        took = time.perf_counter() - self._start
        told = f"sinks rewritten {counted(rewritten, 'time')}" if rewritten else ""
        return (
            f"{counted(sum(t.batches for t in every), 'batch', 'batches')}, "
            f"{counted(sum(t.rows for t in every), 'row')} in, "
            f"{_out(sum(t.changes for t in every), told, ', ')}, "
            f"{_quarantined(every)} quarantined, "
            f"{took:.1f} s"
        )


def line(event: Applied) -> str:
    """A batch in one line."""
    rewritten = f"{counted(event.rewritten, 'sink')} rewritten" if event.rewritten else ""
    return (
        f"batch {event.number}  {event.source}  {counted(event.rows_in, 'row')} in  "
        f"{_out(event.changes_out, rewritten, '  ')}  "
        f"{event.seconds:.2f} s  {event.lag:,} waiting"
    )


def _out(changes: int, rewritten: str, between: str) -> str:
    """What sinks got; without changes, only what was rewritten: there may be no sink of changes."""
    changed = f"{counted(changes, 'change')} out" if changes or not rewritten else ""
    return between.join(filter(None, (changed, rewritten)))


def _quarantined(every: Collection[_Totals]) -> str:
    """The rows and whole files in quarantine; only rows if there are no files, and the other way round."""
    rows, files = (sum(getattr(each, name) for each in every) for name in ("refused_rows", "refused_files"))
    told = [*([counted(rows, "row")] if rows or not files else []), *([counted(files, "file")] if files else [])]
    return " and ".join(told)
