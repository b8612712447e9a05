"""Decimals and timestamps in files of text: nothing is rounded, zones count, and what does not fit is told."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ivme.errors import DataError
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.verify import verify_pipeline

FILE = """\
tables:
  t:
    columns: {{id: int, p: "decimal(8, 2)", at: timestamp}}
    {rows}
views:
  v: {{sql: "SELECT id, p, at FROM t"}}
"""

NOON = datetime(2026, 5, 6, 12)
SENT = {
    "csv": "id,p,at\n1,10.00500,2026-05-06T12:00:00Z\n2,10.0100,2026-05-06T14:00:00+02:00\n"
    '3,"1,000.5",2026-05-06 12:00:00\n'
    "4,1.5,06.05.2026\n5,1e1,\n6,1.5e-2,\n7,0.00000000000000000000000000000000000000000000000001,\n8,1234567.00,\nx,1,\n",
    "json": '{"id":1,"p":10.00500,"at":"2026-05-06T12:00:00Z"}\n'
    '{"id":2,"p":"10.0100","at":"2026-05-06T14:00:00+02:00"}\n'
    '{"id":3,"p":1000.5,"at":"2026-05-06 12:00:00"}\n'
    '{"id":4,"p":1.5,"at":"06.05.2026"}\n'
    '{"id":5,"p":1e1,"at":null}\n'
    '{"id":6,"p":1.5e-2,"at":null}\n{"id":7,"p":0.0000000000000000000000000001,"at":null}\n'
    '{"id":8,"p":1234567.00,"at":null}\n{"id":"x","p":1,"at":null}\n',
}
KEPT = [(2, Decimal("10.01"), NOON), (3, Decimal("1000.50"), NOON), (5, Decimal("10.00"), None)]


def ran(spark: SparkSession, file: Path) -> tuple[list[tuple[object, ...]], list[dict[str, object]]]:
    """The rows of the view, and those in quarantine."""
    events: list[Event] = []
    driver = Driver(spark, read_pipeline(file), events.append)
    try:
        run(driver, once=True)
        assert [] == [told for compared in verify_pipeline(driver) for told in compared.differences]
        letters = driver.quarantine.letters("t", driver.reached)
        return sorted(driver.database.view("v")), [row for path in letters for row in pq.read_table(path).to_pylist()]
    finally:
        driver.close()


def sent(folder: Path, kind: str, changes: str) -> Path:
    (folder / "in").mkdir()
    (folder / "in" / f"1.{kind}").write_text(SENT[kind])
    file = folder / "p.yml"
    file.write_text(FILE.format(rows=f"changes: {changes}"))
    return file


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("source", ["directory", "stream"])
def test_values_of_changes_are_exact_or_quarantined_with_column_and_value(
    spark: SparkSession, tmp_path: Path, kind: str, source: str
) -> None:
    header = ", options: {header: true}" if kind == "csv" else ""
    told = {
        "directory": f"{{directory: in, format: {kind}}}",
        "stream": f"{{stream: {{format: {kind}, path: in{header}}}}}",
    }
    kept, letters = ran(spark, sent(tmp_path, kind, told[source]))
    assert KEPT == kept
    reasons = [str(row["ivme_reason"]) for row in letters]
    more = "has more digits after the point than decimal(8,2)"
    shown = "10.00500" if kind == "csv" else "10.005"
    assert reasons[0].startswith(f"malformed: column p: '{shown}")
    assert all(reason.endswith(more) for reason in (reasons[0], *reasons[2:4]))
    assert reasons[1] == "malformed: column at: '06.05.2026' is not of type timestamp"
    assert reasons[4].startswith("malformed: column p: '1234567")
    assert "is not of type decimal(8,2)" in reasons[4]
    assert reasons[5] == "malformed: column id: 'x' is not of type int"
    assert "10.005" in str(letters[0]["ivme_raw"])


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_load_that_would_round_is_refused_with_column_and_value(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    (tmp_path / f"t.{kind}").write_text(SENT[kind])
    file = tmp_path / "p.yml"
    file.write_text(FILE.format(rows=f"load: {{format: {kind}, path: t.{kind}}}"))
    with pytest.raises(DataError, match=r"p.yml:4:11: .*column p: '10.005.*more digits after the point"):
        ran(spark, file)


def test_a_load_converts_timestamps_with_zones_to_utc(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,p,at\n1,1,2026-05-06T14:00:00+02:00\n2,2,2026-05-06 12:00:00.5Z\n")
    file = tmp_path / "p.yml"
    file.write_text(FILE.format(rows="load: {format: csv, path: t.csv}"))
    half = NOON.replace(microsecond=500_000)
    assert [(1, Decimal("1.00"), NOON), (2, Decimal("2.00"), half)] == ran(spark, file)[0]


def test_texts_in_parquet_are_not_rounded(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    at = pa.array([None], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [1], "p": ["10.005"], "at": at}), tmp_path / "in" / "1.parquet")
    file = tmp_path / "p.yml"
    file.write_text(FILE.format(rows="load: {format: parquet, path: in}"))
    with pytest.raises(DataError, match=r"column p: '10.005' has more digits after the point than decimal\(8,2\)"):
        ran(spark, file)


def test_a_file_may_say_that_numbers_are_rounded(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id,p,at\n1,10.005,\n")
    rounds = '{directory: in, format: csv, schema: "id bigint, p decimal(20, 10), at timestamp_ntz", '
    file = tmp_path / "p.yml"
    file.write_text(FILE.format(rows=f'changes: {rounds}select: {{p: "ROUND(p, 2)"}}}}'))
    assert ([(1, Decimal("10.01"), None)], []) == ran(spark, file)


def test_events_of_debezium_are_exact_or_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [
        f'{{"op": "c", "after": {{"id": {n}, "p": {p}, "at": "2026-05-06T14:00:00+02:00"}}}}\n'
        for n, p in ((1, "10.005"), (2, "10.01"))
    ]
    (tmp_path / "in" / "1.json").write_text("".join(lines))
    file = tmp_path / "p.yml"
    rows = "primary_key: id\n    changes: {directory: in, format: json, envelope: debezium, sequence_by: at}"
    file.write_text(FILE.format(rows=rows))
    kept, letters = ran(spark, file)
    assert [(2, Decimal("10.01"), NOON)] == kept
    assert "column p: '10.005" in str(letters[0]["ivme_reason"])
