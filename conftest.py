"""What makes the tests start sooner: compiled modules are stored, and only what is a test is collected."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

sys.dont_write_bytecode = False  # every process that tests start would compile all its modules again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Nothing that is made here is garbage: the collector need not look at it, now or while tests run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(20_000, 5, 5)


def pytest_unconfigure() -> None:
    """What is left when Python ends is collected as usual: the kernel would call it leaked."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Any, Any]:
    """Only modules that have doctests are searched for them."""
    found = yield
    if file_path.suffix == ".py" and ">>> " not in file_path.read_text("utf-8"):
        return [each for each in found if not isinstance(each, DoctestModule)]
    return found
