"""The default run is the same each time; the long one, and `IVME_RANDOM=1`, try examples that nobody has seen yet.

No example has a deadline: the machines are noisy.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    explores = config.getoption("markexpr", "") == "long" or os.environ.get("IVME_RANDOM")
    settings.load_profile("random" if explores else "steady")
