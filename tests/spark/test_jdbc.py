"""Another database as source and sink (Derby, which comes with Spark), and ranges that are loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.backfill import Backfilled, backfill, read_range
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline

_DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
_FILE = """\
tables:
  orders:
    columns: {{id: int, city: string, total: int}}
    primary_key: id
    changes:
      jdbc: {{url: "{url}", dbtable: orders, driver: {driver}}}
      cursor: version
      upsert: true
views:
  per_city:
    sql: SELECT city, COUNT(*) AS n, SUM(total) AS total FROM orders GROUP BY city
sinks:
  merged:
    {{view: per_city, mode: merge, format: jdbc, table: per_city, options: {{url: "{url}", driver: {driver}}}}}
"""


class _Derby:
    """An embedded database in a folder."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._jvm, self.url = spark._jvm, f"jdbc:derby:{folder / 'shop'};create=true"
        self._jvm.java.lang.Class.forName(_DRIVER)

    @contextmanager
    def _statement(self) -> Iterator[Any]:
        connection = self._jvm.java.sql.DriverManager.getConnection(self.url)
        try:
            yield connection.createStatement()
        finally:
            connection.close()

    def run(self, *texts: str) -> None:
        with self._statement() as statement:
            for text in texts:
                statement.executeUpdate(text)

    def rows(self, text: str, width: int) -> set[tuple[str | None, ...]]:
        with self._statement() as statement:
            result, found = statement.executeQuery(text), set()
            while result.next():
                found.add(tuple(result.getString(i + 1) for i in range(width)))
            return found


def _run(spark: Any, file: Path) -> list[str]:
    driver = Driver(spark, read_pipeline(file))
    try:
        run(driver, once=True)
        compared = list(verify_pipeline(driver))
        assert not any(each.differences for each in compared)
        return [each.note for each in compared]
    finally:
        driver.close()


@pytest.mark.long
def test_new_rows_come_by_their_cursor_and_views_are_merged_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    derby, file = _Derby(spark, tmp_path), tmp_path / "p.yml"
    file.write_text(_FILE.format(url=derby.url, driver=_DRIVER))
    derby.run(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, city VARCHAR(20), total BIGINT, version BIGINT)",
        "INSERT INTO orders VALUES (1, 'Oslo', 5, 10), (2, 'Bern', 7, 11), (3, NULL, 1, 11)",
    )
    notes = _run(spark, file)
    assert "rows of JDBC are taken when they are new" in notes[0]
    merged = 'SELECT "city", "n", "total" FROM per_city'
    assert {("Oslo", "1", "5"), ("Bern", "1", "7"), (None, "1", "1")} == derby.rows(merged, 3)
    derby.run(
        "UPDATE orders SET city = 'Bern', version = 12 WHERE id = 1",
        "UPDATE orders SET total = 99 WHERE id = 2",  # a write that the cursor does not tell
        "INSERT INTO orders VALUES (4, NULL, 2, 13)",
    )
    driver = Driver(spark, read_pipeline(file))
    with monkeypatch.context() as patched:
        patched.setattr(Sinks, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            driver.step("orders")
    driver.close()
    derby.run("UPDATE orders SET total = 6, version = 14 WHERE id = 1")  # it is in no range that was read
    _run(spark, file)
    assert {("Bern", "2", "13"), (None, "2", "3")} == derby.rows(merged, 3)
    _run(spark, file)
    assert {("Bern", "2", "13"), (None, "2", "3")} == derby.rows(merged, 3)


_DAYS = """\
tables:
  sales:
    columns: {day: date, amount: int}
    load: {format: csv, path: sales.csv}
    changes: {directory: changes, format: csv}
views:
  per_day:
    sql: SELECT day, SUM(amount) AS amount FROM sales GROUP BY day
sinks:
  merged: {view: per_day, mode: merge, format: delta, path: out}
"""


@pytest.mark.long
def test_a_range_is_loaded_again_through_a_crash(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake import DeltaTable

    file = tmp_path / "p.yml"
    file.write_text(_DAYS)
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/1.csv").write_text("day,amount\n2026-11-03,4\n")
    (tmp_path / "sales.csv").write_text("day,amount\n2026-11-01,1\n2026-11-02,2\n2026-11-02,2\n,9\n")
    _run(spark, file)
    (tmp_path / "sales.csv").write_text("day,amount\n2026-11-01,100\n2026-11-02,2\n2026-11-02,3\n")
    driver = Driver(spark, read_pipeline(file))
    wanted = read_range(driver.pipeline, "sales", "day", "2026-11-02", "2026-11-03")
    with monkeypatch.context() as patched:
        patched.setattr(Sinks, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            backfill(driver, wanted)
    driver.close()
    driver = Driver(spark, read_pipeline(file))
    try:
        assert Backfilled(0, 0) == backfill(driver, wanted)
        assert "a range of its rows was loaded again" in next(verify_pipeline(driver)).note
    finally:
        driver.close()
    found = {str(row["day"]): row["amount"] for row in DeltaTable(str(tmp_path / "out")).to_pyarrow_table().to_pylist()}
    assert {"2026-11-01": 1, "2026-11-02": 5, "2026-11-03": 4, "None": 9} == found
