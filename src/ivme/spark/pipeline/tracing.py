"""Spans of OpenTelemetry for batches, where its interface is installed; what becomes of them is up to the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def batch_span(pipeline: str, number: int, source: str) -> Iterator[None]:
    """A span around a batch, from reading it to its last sink. Without an SDK that is set up it costs microseconds."""
    try:
        from opentelemetry import trace
    except ImportError:
        yield
        return
    told: dict[str, str | int] = {"ivme.pipeline": pipeline, "ivme.batch": number, "ivme.source": source}
    with trace.get_tracer("ivme").start_as_current_span(f"batch of {source}", attributes=told):
        yield
