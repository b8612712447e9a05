"""How many examples Hypothesis draws for the tests that take longest."""

from __future__ import annotations

import os


def examples(full: int) -> int:
    """A third of them, the same each time, in the default run; all, and others each time, where `IVME_RANDOM` is set.

    `make test-long` sets it.
    """
    return full if os.environ.get("IVME_RANDOM") else (full + 2) // 3
