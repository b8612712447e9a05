"""What a server has done so far, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ivme.database import Database
from ivme.serve.activity import Activity
from ivme.serve.hub import Hub

KIND = "text/plain; version=0.0.4; charset=utf-8"

LEFT = 499
"""The status of a request whose client left before it was answered."""

_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


@dataclass(slots=True)
class Metrics:
    """Counts of requests by endpoint and status, and their times in buckets."""

    activity: Activity
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    connections: Callable[[], int] = int
    """How many connections are open; the server that has them sets it."""
    buckets: Counter[tuple[str, float]] = field(default_factory=Counter)

    def observe(self, endpoint: str, status: int, seconds: float) -> None:
        if endpoint == "rows":
            self.activity.asked(seconds)
        if status >= 400 and status != LEFT:
            self.activity.refused()
        self.requests[endpoint, status] += 1
        self.seconds[endpoint] = self.seconds.get(endpoint, 0.0) + seconds
        for bound in _BOUNDS:
            if seconds <= bound:
                self.buckets[endpoint, bound] += 1
                break

    def text(self, database: Database, hub: Hub) -> str:
        return self.server_text(hub) + "\n".join(_of_database(database)) + "\n"

    def server_text(self, hub: Hub) -> str:
        """What is not about the database."""
        return "\n".join([*self._of_requests(), *self._of_connections(), *_of_hub(hub)]) + "\n"

    def _of_connections(self) -> Iterator[str]:
        yield from _head("ivme_connections", "gauge", "Connections that are open.")
        yield f"ivme_connections {self.connections()}"

    def _of_requests(self) -> Iterator[str]:
        yield from _head("ivme_requests_total", "counter", "Requests by endpoint and status.")
        for (endpoint, status), count in sorted(self.requests.items()):
            yield f"ivme_requests_total{_labels(endpoint=endpoint, status=status)} {count}"
        yield from _head("ivme_request_seconds", "histogram", "Time of requests, changes aside.")
        for endpoint, total in sorted(self.seconds.items()):
            counted = 0
            for bound in _BOUNDS:
                counted += self.buckets[endpoint, bound]
                yield f"ivme_request_seconds_bucket{_labels(endpoint=endpoint, le=bound)} {counted}"
            everything = sum(n for (name, _), n in self.requests.items() if name == endpoint)
            yield f"ivme_request_seconds_bucket{_labels(endpoint=endpoint, le='+Inf')} {everything}"
            yield f"ivme_request_seconds_sum{_labels(endpoint=endpoint)} {total}"
            yield f"ivme_request_seconds_count{_labels(endpoint=endpoint)} {everything}"


def _of_hub(hub: Hub) -> Iterator[str]:
    figures = (
        ("ivme_subscribers", "gauge", "Subscribers that are connected.", hub.subscribers),
        ("ivme_frames_total", "counter", "Frames of changes made.", hub.tally.frames),
        ("ivme_changed_rows_total", "counter", "Changed rows in these frames.", hub.tally.rows),
        ("ivme_dropped_subscribers_total", "counter", "Subscribers dropped for not reading.", hub.tally.dropped),
    )
    for name, kind, text, value in figures:
        yield from _head(name, kind, text)
        yield f"{name} {value}"


def _of_database(database: Database) -> Iterator[str]:
    runtime = database.definitions.runtime
    with runtime.lock:
        sizes = {name: runtime.backend.size(runtime.catalog.tables[name].rows) for name in database.tables}
        memory, operations = runtime.catalog.memory(), runtime.backend.operations
    yield from _head("ivme_table_rows", "gauge", "Distinct rows of tables.")
    for name, size in sizes.items():
        yield f"ivme_table_rows{_labels(table=name)} {size}"
    yield from _head("ivme_memory_bytes", "gauge", "Memory of maps and dictionaries.")
    yield f"ivme_memory_bytes {memory['memory_bytes']}"
    yield from _head("ivme_dictionary_bytes", "gauge", "Memory of dictionaries.")
    yield f"ivme_dictionary_bytes {memory['dictionary_bytes']}"
    yield from _head("ivme_operations_total", "counter", "Operations of the kernel.")
    yield f"ivme_operations_total {operations}"
    log_bytes = database.definitions.log_bytes
    if log_bytes is not None:
        yield from _head("ivme_log_bytes", "gauge", "Log that has to be read on opening.")
        yield f"ivme_log_bytes {log_bytes}"


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _labels(**labels: Any) -> str:
    def quoted(value: object) -> str:
        plain = str(value).encode("utf-8", "backslashreplace").decode()
        return plain.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items()) + "}"
