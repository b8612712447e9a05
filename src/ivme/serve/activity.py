"""What happened in the last two minutes and in the last hour: changed rows, batches, requests, refusals, and memory.

Both are stored in steps, of a second and of half a minute. Times are counted in buckets that are 9% wide to either
side, so that a step takes the same space however much happens in it, and quantiles can be read off.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SLOTS = 120
"""How many steps of each length are remembered."""

SPANS = {"minutes": 1, "hour": 30}
"""The spans that can be requested, with the seconds of their steps."""

_STEPS = 4
"""Buckets for each doubling of a time."""

_LEAST = 1e-7


@dataclass(slots=True)
class _Step:
    """One step: rows that changed, refused requests, the memory at its end, and times by bucket."""

    number: int
    rows: int = 0
    refused: int = 0
    memory: int | None = None
    batches: Counter[int] = field(default_factory=Counter)
    requests: Counter[int] = field(default_factory=Counter)


class Activity:
    """The last steps of each span. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.tables: Counter[str] = Counter()
        """How many rows of each table have changed so far."""
        self._kept: dict[str, deque[_Step]] = {span: deque(maxlen=SLOTS + 1) for span in SPANS}

    def changed(self, rows: Mapping[str, int], seconds: float) -> None:
        """A batch of so many rows of each table was applied."""
        with self._lock:
            self.tables.update(rows)
            for now in self._now():
                now.rows += sum(rows.values())
                now.batches[_bucket(seconds)] += 1

    def asked(self, seconds: float) -> None:
        """An access request was answered."""
        with self._lock:
            for now in self._now():
                now.requests[_bucket(seconds)] += 1

    def refused(self) -> None:
        """A request was refused, or failed."""
        with self._lock:
            for now in self._now():
                now.refused += 1

    def measured(self, memory: int) -> None:
        """The memory that is used now, in bytes."""
        with self._lock:
            for now in self._now():
                now.memory = memory

    def _now(self) -> Iterator[_Step]:
        """The step of each span that this moment is in."""
        moment = self._clock()
        for span, seconds in SPANS.items():
            number, kept = int(moment // seconds), self._kept[span]
            if not kept or kept[-1].number < number:
                kept.append(_Step(number))
            yield kept[-1]

    def to_dict(self, span: str = "minutes") -> dict[str, Any]:
        """The steps that are over, oldest first, as columns; times in seconds, None where nothing happened."""
        with self._lock:
            seconds = SPANS[span]
            end = int(self._clock() // seconds)
            known = {each.number: each for each in self._kept[span]}
            listed = [known.get(number, _Step(number)) for number in range(end - SLOTS, end)]
            return {
                "end": end * seconds,
                "step": seconds,
                "rows": [each.rows for each in listed],
                "batches": [each.batches.total() for each in listed],
                "batch_median": [_quantile(each.batches, 0.5) for each in listed],
                "batch_p99": [_quantile(each.batches, 0.99) for each in listed],
                "requests": [each.requests.total() for each in listed],
                "request_median": [_quantile(each.requests, 0.5) for each in listed],
                "request_p99": [_quantile(each.requests, 0.99) for each in listed],
                "refused": [each.refused for each in listed],
                "memory": list(_carried(each.memory for each in listed)),
            }


def _carried(values: Iterator[int | None]) -> Iterator[int | None]:
    """Memory is measured now and then: between two times it is what it was.

    >>> list(_carried(iter([None, 3, None, 5])))
    [None, 3, 3, 5]
    """
    last = None
    for value in values:
        last = value if value is not None else last
        yield last


def _bucket(seconds: float) -> int:
    return round(math.log2(max(seconds, _LEAST)) * _STEPS)


def _quantile(times: Counter[int], share: float) -> float | None:
    """The time that so many of them did not exceed, as the middle of its bucket.

    >>> round(_quantile(Counter({_bucket(0.001): 98, _bucket(0.5): 2}), 0.99), 2)
    0.5
    """
    wanted = math.ceil(times.total() * share)
    for bucket, count in sorted(times.items()):
        wanted -= count
        if wanted <= 0:
            return float(2.0 ** (bucket / _STEPS))
    return None
