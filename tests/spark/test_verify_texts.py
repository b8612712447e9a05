"""`ivme verify` asks Spark in its own words where a view's text has words that only ivme reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ivme.cli.pipeline import told
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.verify import Compared, verify_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRANSLATED = {
    "by_name": "SELECT g, x FROM r UNION ALL BY NAME SELECT x, s FROM r WHERE x > 1",
    "by_name_star": "SELECT * FROM r UNION BY NAME SELECT g + 1 AS g, 7 AS z FROM r",
    "nested": "SELECT s, COUNT(*) AS n FROM (SELECT g, s FROM r UNION BY NAME SELECT x FROM r) AS t GROUP BY s",
    "tumbled": """SELECT g, TUMBLE(ts, INTERVAL '5' MINUTE) AS w, SUM(x) AS n FROM r
      GROUP BY g, TUMBLE(ts, INTERVAL '5' MINUTE)""",
    "ends": """SELECT TUMBLE_END(ts, INTERVAL '5' MINUTE) AS w, COUNT(*) AS n FROM r
      GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE) HAVING COUNT(*) > 1""",
    "hopped": """SELECT HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) AS w, COUNT(x) AS n FROM r
      GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)""",
    "replaced": "SELECT * REPLACE (x + 1 AS x) FROM r WHERE g = 1",
    "renamed": "SELECT * RENAME (x AS amount) FROM r",
    "listed": "SELECT g FROM r WHERE (g, s) IN ((1, 'a'), (2, 'b'))",
    "quantified": "SELECT g FROM r WHERE x = ANY(ARRAY[1, 2]) AND g <> ALL(ARRAY[3])",
}
OWN = {
    "windowed": "SELECT window.start AS w, COUNT(*) AS n FROM r GROUP BY window(ts, '5 minutes')",
    "sliding": "SELECT window.end AS w, SUM(x) AS n FROM r GROUP BY window(ts, '10 minutes', '5 minutes')",
    "pivoted": "SELECT * FROM (SELECT g, s, x FROM r) PIVOT (SUM(x) AS t FOR s IN ('a', 'b'))",
    "unpivoted": "SELECT * FROM (SELECT g, x FROM r) UNPIVOT (v FOR k IN (g, x))",
    "left_out": "SELECT * EXCEPT (ts) FROM r",
    "grouped": "SELECT g, COUNT(*) AS n FROM r GROUP BY ALL",
    "constant": "SELECT g, ARRAY('a', 'b') AS l FROM r",
}
SOME = ("by_name", "tumbled", "listed", "windowed", "pivoted", "left_out")
LINES = """\
{"g": 1, "s": "a", "x": 1, "ts": "2024-01-01T00:01:00"}
{"g": 1, "s": "b", "x": 2, "ts": "2024-01-01T00:04:00"}
{"g": 2, "s": "b", "x": null, "ts": "2024-01-01T00:09:30"}
{"g": 3, "s": null, "x": 5, "ts": "1969-12-31T23:59:59"}
{"g": 3, "s": "a", "x": 2, "ts": null}
"""


def _verified(spark: SparkSession, folder: Path, names: Sequence[str]) -> dict[str, Compared]:
    (folder / "rows.json").write_text(LINES)
    views = "".join(f"  {name}:\n    sql: |\n      {(TRANSLATED | OWN)[name]}\n" for name in names)
    (folder / "pipeline.yml").write_text(f"""\
name: texts
state: {folder}/state
tables:
  r:
    columns: {{g: int, s: string, x: int, ts: timestamp}}
    load: {{format: json, path: {folder}/rows.json}}
views:
{views}""")
    driver = Driver(spark, read_pipeline(folder / "pipeline.yml"))
    try:
        return {compared.name: compared for compared in verify_pipeline(driver)}
    finally:
        driver.close()


@pytest.mark.parametrize(
    "names", [SOME, pytest.param(tuple(TRANSLATED | OWN), marks=pytest.mark.long)], ids=["some", "all"]
)
def test_every_text_is_compared_with_spark(spark: SparkSession, tmp_path: Path, names: Sequence[str]) -> None:
    found = _verified(spark, tmp_path, names)
    assert {} == {name: each.differences for name, each in found.items() if each.differences}
    assert {} == {name: each.note for name, each in found.items() if each.note}
    assert set(TRANSLATED) & set(names) == {name for name, each in found.items() if each.text}
    assert all(each.rows for each in found.values())
    assert "equal" in told(found["tumbled"])
    assert "in Spark's words: SELECT g, TIMESTAMP_MICROS(" in told(found["tumbled"])
