"""Spans of batches: one for each, and none where OpenTelemetry is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import pytest

from ivme.spark.pipeline.tracing import batch_span


def test_a_batch_is_a_span_with_its_pipeline_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[str, dict[str, str | int]]] = []

    class Tracer:
        @contextmanager
        def start_as_current_span(self, name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
            spans.append((name, dict(attributes)))
            yield

    trace = ModuleType("opentelemetry.trace")
    trace.get_tracer = lambda _: Tracer()  # type: ignore[attr-defined]
    package = ModuleType("opentelemetry")
    package.trace = trace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry", package)
    with batch_span("sales", 7, "orders"):
        pass
    assert [("batch of orders", {"ivme.pipeline": "sales", "ivme.batch": 7, "ivme.source": "orders"})] == spans


def test_without_the_package_there_is_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    done = []
    with batch_span("sales", 7, "orders"):
        done.append(1)
    assert [1] == done
