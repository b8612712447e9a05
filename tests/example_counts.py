"""How much of a test the default run has: a part of the examples of Hypothesis, and some of many cases."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest


def examples(full: int) -> int:
    """A third of them, the same each time, in the default run; all, and others each time, where `IVME_RANDOM` is set.

    `make test-long` sets it, for tests of Hypothesis and for those that are marked `long`.
    """
    return full if os.environ.get("IVME_RANDOM") else (full + 2) // 3


def some_of(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """Cases of one parameter, of which the default run has those that are chosen, and `make test-long` the others."""
    listed = list(cases)
    assert all(each in listed for each in chosen), "a case that is chosen is not among them"
    return [each if each in chosen else pytest.param(each, marks=pytest.mark.long) for each in listed]
