"""One Spark session for all tests that need one; with pytest-xdist they run in one worker (`--dist loadgroup`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ivme.errors import SparkError
from ivme.spark.session.java import find_java, make_class_archive
from ivme.spark.session.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVES = Path(__file__).parents[2] / "build" / "spark"
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def archives(request: pytest.FixtureRequest) -> Path:
    """The folder of the archive of classes, for this process's session and for those of subprocesses.

    The long run makes the archive, which takes as much as ten starts save: the default run starts Spark
    twice. Where it is there, it is used.
    """
    try:
        find_java()
    except SparkError as error:
        pytest.skip(f"no Java to run Spark on: {error}")
    if request.config.getoption("markexpr", "") == "long":
        make_class_archive(ARCHIVES)
    return ARCHIVES


@pytest.fixture(scope="session")
def spark(archives: Path) -> Iterator[SparkSession]:
    """A local session on two cores, without the user interface."""
    session = open_session("ivme-tests", master="local[2]", archives=archives)
    yield session
    session.stop()
