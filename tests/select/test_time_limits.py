"""What ends a case is its own CPU time, not what else the machine does."""

from __future__ import annotations

from itertools import count
from threading import Event

import pytest

from tests.select.time_limits import cpu_limit


def test_what_never_ends_is_ended_after_its_cpu_time() -> None:
    with pytest.raises(TimeoutError, match="CPU time"), cpu_limit(0.2):
        for _ in count():
            pass


def test_what_waits_for_nothing_is_ended_as_well() -> None:
    with pytest.raises(TimeoutError, match="waits for something"), cpu_limit(0.2):
        Event().wait(60)


def test_the_limit_ends_with_its_block() -> None:
    with cpu_limit(0.05):
        pass
    assert sum(range(3_000_000)) > 0
