"""The examples of docs/spark_shards.md, which need a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.test_docs import ROOT, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_examples_of_the_page_on_shards_are_true(spark: SparkSession, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark_shards.md").read_text()
    namespace: dict[str, Any] = {"spark": spark, "folder": tmp_path}
    try:
        for block in blocks_of(page, "pyspark"):
            exec(compile("\n" * block.line + block.text, "spark_shards.md", "exec"), namespace)
    finally:
        if "db" in namespace:
            namespace["db"].close()
