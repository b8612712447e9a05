"""What happened in each of the last seconds: changed rows, batches and access requests, and how long they took.

Times are counted in buckets that are 9% wide to either side, so that a second takes the same space however much happens
in it, and quantiles can be read off.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECONDS = 120
"""How many seconds are remembered."""

_STEPS = 4
"""Buckets for each doubling of a time."""

_LEAST = 1e-7


@dataclass(slots=True)
class _Second:
    """One second: rows that changed, and the times of batches and of requests by bucket."""

    number: int
    rows: int = 0
    batches: Counter[int] = field(default_factory=Counter)
    requests: Counter[int] = field(default_factory=Counter)


class Activity:
    """The last two minutes, second by second. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds: deque[_Second] = deque(maxlen=SECONDS + 1)

    def changed(self, rows: int, seconds: float) -> None:
        """A batch of so many rows was applied."""
        with self._lock:
            now = self._now()
            now.rows += rows
            now.batches[_bucket(seconds)] += 1

    def asked(self, seconds: float) -> None:
        """An access request was answered."""
        with self._lock:
            self._now().requests[_bucket(seconds)] += 1

    def _now(self) -> _Second:
        number = int(self._clock())
        if not self._seconds or self._seconds[-1].number < number:
            self._seconds.append(_Second(number))
        return self._seconds[-1]

    def to_dict(self) -> dict[str, Any]:
        """The seconds that are over, oldest first, as columns; times in seconds, None where nothing happened."""
        with self._lock:
            end = int(self._clock())
            known = {each.number: each for each in self._seconds}
            listed = [known.get(number, _Second(number)) for number in range(end - SECONDS, end)]
            return {
                "end": end,
                "rows": [each.rows for each in listed],
                "batches": [each.batches.total() for each in listed],
                "batch_median": [_quantile(each.batches, 0.5) for each in listed],
                "batch_p99": [_quantile(each.batches, 0.99) for each in listed],
                "requests": [each.requests.total() for each in listed],
                "request_median": [_quantile(each.requests, 0.5) for each in listed],
                "request_p99": [_quantile(each.requests, 0.99) for each in listed],
            }


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
