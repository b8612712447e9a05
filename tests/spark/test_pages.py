"""The examples of the pages that need Spark, on the tests' session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.test_docs import ROOT, SPARK_PAGES, check_page


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", SPARK_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_of_a_page_run_on_spark(path: Path) -> None:
    check_page(path)


def test_the_page_about_pipelines_is_among_them(spark: SparkSession) -> None:
    assert spark.version
    assert ROOT / "docs" / "spark.md" in SPARK_PAGES
