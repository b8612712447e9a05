"""What a run has done so far, for its observers: Prometheus, `ivme status`, and logs as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO

from ivme.errors import SparkError
from ivme.spark.pipeline.events import Applied, Event, Opening, Refused, Report

STATUS = "status.json"
"""The file of the state that says how the run goes."""

_KINDS = {"lag": "gauge", "last_batch": "gauge", "last_batch_seconds": "gauge"}
_HELP = {
    "batches": "Batches that were applied.",
    "rows": "Rows of changes that were applied.",
    "changes": "Rows of views that came or went.",
    "rewrites": "Sinks that got all rows of their view, counted each time.",
    "refusals": "Batches or files of which something was set aside.",
    "seconds": "Seconds that batches took, from their plan to the last sink.",
    "engine_seconds": "Seconds of these in which the database took the changes.",
    "last_batch_seconds": "Seconds that the last batch took.",
    "last_batch": "The number of the last batch.",
    "lag": "What waits at the source: files, versions, batches or offsets.",
}


@dataclass(slots=True)
class TableMetrics:
    """The totals of one table's changes since the start."""

    batches: int = 0
    rows: int = 0
    changes: int = 0
    rewrites: int = 0
    refusals: int = 0
    seconds: float = 0.0
    engine_seconds: float = 0.0
    last_batch_seconds: float = 0.0
    last_batch: int = -1
    lag: int = 0

    def count(self, event: Applied) -> None:
        self.batches += 1
        self.rows += event.rows_in
        self.changes += event.changes_out
        self.rewrites += event.rewritten
        self.seconds += event.seconds
        self.engine_seconds += event.engine_seconds
        self.last_batch_seconds, self.last_batch, self.lag = event.seconds, event.number, event.lag


@dataclass(slots=True)
class RunMetrics:
    """The totals of a run by table; written to the state after each batch, so that other processes see them."""

    pipeline: str
    state: Path
    started: float = field(default_factory=time.time)
    tables: dict[str, TableMetrics] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opening):
            return
        with self._lock:
            table = self.tables.setdefault(event.source, TableMetrics())
            if isinstance(event, Refused):
                table.refusals += 1
            else:
                table.count(event)
            self._write()

    def _write(self) -> None:
        partial = self.state / f".{STATUS}"
        partial.write_text(json.dumps(self.to_dict()), "utf-8")
        partial.replace(self.state / STATUS)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        tables = {name: asdict(table) for name, table in self.tables.items()}
        return {"pid": os.getpid(), "started": self.started, "at": time.time(), "tables": tables}

    def prometheus(self) -> str:
        """The text that Prometheus reads.

        >>> metrics = RunMetrics("p", Path("/tmp"), tables={"t": TableMetrics(rows=3)})
        >>> [line for line in metrics.prometheus().split("\\n") if line.startswith("ivme_pipeline_rows")]
        ['ivme_pipeline_rows_total{pipeline="p",table="t"} 3']
        """
        with self._lock:
            lines = [line for name in _HELP for line in self._family(name)]
        return "\n".join(lines) + "\n"

    def _family(self, name: str) -> Iterator[str]:
        kind = _KINDS.get(name, "counter")
        full = f"ivme_pipeline_{name}{'_total' if kind == 'counter' else ''}"
        yield f"# HELP {full} {_HELP[name]}"
        yield f"# TYPE {full} {kind}"
        for table, found in self.tables.items():
            labels = f'pipeline="{_escaped(self.pipeline)}",table="{_escaped(table)}"'
            yield f"{full}{{{labels}}} {getattr(found, name)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextmanager
def served_metrics(metrics: RunMetrics, port: int | None) -> Iterator[int | None]:
    """Answers GET /metrics on this host while a pipeline runs, if there is a port; 0 takes a free one."""
    if port is None:
        yield None
        return

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = metrics.prometheus().encode() if self.path == "/metrics" else b"see /metrics\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Requests are not logged."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise SparkError(f"metrics cannot be served on port {port}: {error}; choose another one") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def json_lines(stream: TextIO = sys.stdout) -> Report:
    """Reports events as lines of JSON, which a log collector can parse without rules."""

    def report(event: Event) -> None:
        kind = type(event).__name__.lower()
        print(json.dumps({"at": time.time(), "event": kind, **asdict(event)}), file=stream, flush=True)

    return report
