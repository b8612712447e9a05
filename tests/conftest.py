"""The default run is the same each time; the long one, and `IVME_RANDOM=1`, try examples that nobody has seen yet.

The default run has 50 examples where a test does not say how many (`example_counts`), the others Hypothesis's 100.
No example has a deadline: the machines are noisy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("random", derandomize=False, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr", "") == "long":
        os.environ["IVME_RANDOM"] = "1"  # for `example_counts` and the processes that tests start
    explores = os.environ.get("IVME_RANDOM")
    settings.load_profile("random" if explores else "steady")
    if not explores:
        _draw_no_constants_of_modules()


def _draw_no_constants_of_modules() -> None:
    """Hypothesis draws constants of the modules that are loaded, which differ by worker: a run would differ as well."""
    if hasattr(providers, "_get_local_constants"):  # which older versions do not do
        nothing = providers.Constants()  # type: ignore[attr-defined]
        providers._get_local_constants = lambda: nothing


@pytest.fixture(scope="module")
def shared_encoding() -> Iterator[None]:
    """Several threads encode record batches of few values, too, also ahead, and take batches in pieces of few rows."""
    from ivme._kernel import cut_batches_into, encode_ahead_from, share_encoding_from

    before, ahead, pieces = share_encoding_from(256), encode_ahead_from(256), cut_batches_into(256)
    yield
    share_encoding_from(before)
    encode_ahead_from(ahead)
    cut_batches_into(pieces)
