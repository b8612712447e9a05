"""How tests are collected: without the cost of what is not a test."""

from __future__ import annotations

import gc
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Nothing that is made here is garbage: the collector need not look at it, now or while tests run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Any, Any]:
    """Only modules that have doctests are searched for them."""
    found = yield
    if file_path.suffix == ".py" and ">>> " not in file_path.read_text("utf-8"):
        return [each for each in found if not isinstance(each, DoctestModule)]
    return found
