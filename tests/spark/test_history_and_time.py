"""Versions of rows (SCD type 2) and rows that expire, from files to sinks, with a crash between database and sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline

_FILE = """\
tables:
  customers:
    columns: {id: int, city: string}
    primary_key: id
    changes:
      directory: customers
      format: csv
      operation: op
      upsert: true
      sequence_by: lsn
      history: customer_history
      files_per_batch: 1
  clicks:
    columns: {page: string, ts: timestamp}
    changes: {directory: clicks, format: csv, files_per_batch: 1}
    watermark: {column: ts, delay: 10 minutes}
views:
  recent:
    sql: SELECT page, COUNT(*) AS n FROM clicks GROUP BY page
    expire: ts + INTERVAL '1' HOUR
sinks:
  history: {view: customer_history, mode: merge, format: delta, path: history, key: [id, __START_AT]}
  recent: {view: recent, mode: merge, format: delta, path: recent}
"""


def _rows(path: Path) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in DeltaTable(str(path)).to_pyarrow_table().to_pylist()}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["", "engine: {shards: 2, hosts: 1}\n"], ids=["one engine", "shards"])
def test_versions_and_rows_that_expire_reach_sinks_through_a_crash(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    (tmp_path / "p.yml").write_text(engine + _FILE)
    for folder in ("customers", "clicks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "customers/1.csv").write_text("op,id,city,lsn\nu,1,Oslo,10\nu,1,Bern,20\nu,2,Rome,5\nd,2,,30\n")
    (tmp_path / "clicks/1.csv").write_text("page,ts\na,2026-11-17 12:00:00\nb,2026-11-17 12:30:00\n")
    driver = Driver(spark, read_pipeline(tmp_path / "p.yml"))
    run(driver, once=True)
    driver.close()
    assert {(1, "Oslo", 10, 20), (1, "Bern", 20, None), (2, "Rome", 5, 30)} == _rows(tmp_path / "history")
    (tmp_path / "customers/2.csv").write_text("op,id,city,lsn\nu,1,Lima,15\nu,2,Rome,40\nu,1,Oslo,10\n")
    (tmp_path / "clicks/2.csv").write_text("page,ts\nc,2026-11-17 13:15:00\n")
    for _ in range(2):  # once for each table
        driver = Driver(spark, read_pipeline(tmp_path / "p.yml"))
        with monkeypatch.context() as patched:
            patched.setattr(Sinks, "write", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                _ = driver.step("clicks") or driver.step("customers")
        driver.close()
    driver = Driver(spark, read_pipeline(tmp_path / "p.yml"))
    try:
        run(driver, once=True)
        assert not any(compared.differences for compared in verify_pipeline(driver))
    finally:
        driver.close()
    versions = {(1, "Oslo", 10, 15), (1, "Lima", 15, 20), (1, "Bern", 20, None), (2, "Rome", 5, 30)}
    assert versions | {(2, "Rome", 40, None)} == _rows(tmp_path / "history")
    assert {("b", 1), ("c", 1)} == _rows(tmp_path / "recent")
