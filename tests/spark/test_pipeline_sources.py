"""The other sources of changes: Spark's streams, Delta's change feed, and another pipeline's sink."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from ivme.errors import SparkError
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event, Refused
from ivme.spark.pipeline.micro_batch import MicroBatches
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline
from tests.example_counts import some_of
from tests.spark.flights import Flights, net

COUNTS = """\
tables:
  {table}:
    columns: {{{columns}}}
    {load}
    changes: {changes}
views:
  total:
    sql: {sql}
sinks:
  out: {{view: total, format: parquet, path: out}}
"""


def write(folder: Path, table: str, columns: str, changes: str, sql: str, load: str = "") -> Path:
    path = folder / "p.yml"
    text = COUNTS.format(table=table, columns=columns, changes=changes, sql=sql, load=load)
    path.write_text(text, "utf-8")
    return path


def ran(spark: SparkSession, file: Path, events: list[Event] | None = None) -> list[tuple[object, ...]]:
    """Runs a pipeline until it has caught up; the rows of its view, which Spark agrees with."""
    driver = Driver(spark, read_pipeline(file), (events if events is not None else []).append)
    try:
        run(driver, once=True)
        assert [] == [difference for compared in verify_pipeline(driver) for difference in compared.differences]
        return sorted(driver.database.view("total"))
    finally:
        driver.close()


def summed(folder: Path, columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    """The rows that the changes in the sink add up to."""
    parts = [pq.read_table(path, partitioning=None) for path in sorted((folder / "out").rglob("*.parquet"))]
    return sorted(net(pa.concat_tables(parts), columns))


def stream(folder: Path) -> Path:
    (folder / "events").mkdir()
    changes = "{stream: {format: json, path: events}, operation: op}"
    return write(folder, "events", "k: int, v: int", changes, "SELECT k, SUM(v) AS s FROM events GROUP BY k")


def send(folder: Path, name: str, *rows: tuple[str, int, int]) -> None:
    lines = [f'{{"op": "{op}", "k": {k}, "v": {v}}}\n' for op, k, v in rows]
    (folder / "events" / f"{name}.json").write_text("".join(lines))


def test_a_stream_is_applied_once_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    file = stream(tmp_path)
    send(tmp_path, "a", ("insert", 1, 10), ("insert", 2, 20))
    assert [(1, 10), (2, 20)] == ran(spark, file)
    send(tmp_path, "b", ("delete", 2, 20), ("insert", 1, 5))
    assert [(1, 15)] == ran(spark, file)
    assert [(1, 15)] == ran(spark, file)
    assert [(1, 15)] == summed(tmp_path, ("k", "s"))


def test_what_a_stream_brings_that_cannot_be_applied_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    file = stream(tmp_path)
    send(tmp_path, "a", ("insert", 1, 10), ("upsert", 2, 20))
    events: list[Event] = []
    assert [(1, 10)] == ran(spark, file, events)
    send(tmp_path, "b", ("delete", 7, 7))
    assert [(1, 10)] == ran(spark, file, events)
    reasons = [event.reason for event in events if isinstance(event, Refused)]
    known = "insert, i, c, r, +, update_postimage, delete, d, -, update_preimage"
    told = f"the operation upsert is unknown; use one of {known}; updates and upserts need `upsert: true`"
    assert f"malformed: 1 row of 2, the first (of events): {told}" == reasons[0]
    assert "cannot delete (7, 7)" in reasons[1]
    kept = sorted(path.name for path in (tmp_path / "p.state/quarantine/events").glob("*.parquet"))
    assert ["rows-000000000001.parquet", "rows-000000000002.parquet"] == kept


@pytest.mark.parametrize(
    "moment",
    some_of(["before the database has it", "before the sinks have it", "before Spark knows"], "before Spark knows"),
)
def test_a_stream_whose_batch_crashed_is_exact_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    file = stream(tmp_path)
    send(tmp_path, "a", ("insert", 1, 10), ("insert", 2, 20))
    assert [(1, 10), (2, 20)] == ran(spark, file)
    send(tmp_path, "b", ("delete", 2, 20), ("insert", 1, 5))
    places = {
        "before the database has it": (Driver, "take_stream", False),
        "before the sinks have it": (Sinks, "write", False),
        "before Spark knows": (MicroBatches, "_apply", True),
    }
    kind, name, after = places[moment]
    original = getattr(kind, name)

    def crash(*arguments: object) -> None:
        if after:
            original(*arguments)
        raise RuntimeError("crash")

    with monkeypatch.context() as broken:
        broken.setattr(kind, name, crash)
        with pytest.raises(SparkError, match="crash"):
            ran(spark, file)
    assert [(1, 15)] == ran(spark, file)
    assert [(1, 15)] == summed(tmp_path, ("k", "s"))


def feed(folder: Path) -> tuple[Path, str]:
    """A pipeline that is loaded from a Delta table, and changed by its feed."""
    table = str(folder / "table")
    rows = pa.table({"k": [1, 2, 3], "name": ["a", "b", "c"]})
    write_deltalake(table, rows, configuration={"delta.enableChangeDataFeed": "true"})
    sql = "SELECT name, COUNT(*) AS n FROM t GROUP BY name"
    load = "load: {format: delta, path: table}"
    return write(folder, "t", "k: int, name: string", "{delta: table}", sql, load), table


def test_a_delta_table_is_loaded_and_its_change_feed_followed(spark: SparkSession, tmp_path: Path) -> None:
    file, table = feed(tmp_path)
    assert [("a", 1), ("b", 1), ("c", 1)] == ran(spark, file)
    DeltaTable(table).delete("k = 3")
    DeltaTable(table).update(updates={"name": "'a'"}, predicate="k = 2")
    write_deltalake(table, pa.table({"k": [4], "name": ["d"]}), mode="append")
    assert [("a", 2), ("d", 1)] == ran(spark, file)
    assert [("a", 2), ("d", 1)] == ran(spark, file)
    assert [("a", 2), ("d", 1)] == summed(tmp_path, ("name", "n"))


def test_a_feed_with_a_new_column_goes_on_and_the_column_comes_when_it_is_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    file, table = feed(tmp_path)
    ran(spark, file)
    more = pa.table({"k": [5], "name": ["e"], "colour": ["red"]})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    assert [("a", 1), ("b", 1), ("c", 1), ("e", 1)] == ran(spark, file)
    text = file.read_text().replace("name: string}", "name: string, colour: string}")
    text = text.replace(
        "views:\n", "views:\n  colours:\n    sql: SELECT colour, COUNT(*) AS n FROM t GROUP BY colour\n"
    )
    file.write_text(text + "  merged: {view: colours, mode: merge, format: delta, path: merged}\n")
    ran(spark, file)
    merged = DeltaTable(str(tmp_path / "merged"))
    assert {(None, 3), ("red", 1)} == {tuple(row.values()) for row in merged.to_pyarrow_table().to_pylist()}
    write_deltalake(table, more, mode="append")
    DeltaTable(table).delete("k = 1")
    assert [("b", 1), ("c", 1), ("e", 2)] == ran(spark, file)
    merged = DeltaTable(str(tmp_path / "merged"))
    assert {(None, 2), ("red", 2)} == {tuple(row.values()) for row in merged.to_pyarrow_table().to_pylist()}


@pytest.mark.parametrize("kind", some_of(["parquet", "delta"], "delta"))
def test_the_changes_of_one_pipelines_view_feed_another(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    first = tmp_path / "first"
    first.mkdir()
    flights = Flights(first)
    flights.change("1", ("insert", "D", 4, 2))
    sink, columns = ("counts", "city: string, n: int, first: string")
    if kind == "delta":
        sink, columns = ("found", "origin: string, dest: string, no: string")
    (tmp_path / "second").mkdir()
    sql = "SELECT COUNT(*) AS cities FROM rows"
    file = write(tmp_path / "second", "rows", columns, f"{{view: ../first/out/{sink}}}", sql)

    def run_first() -> int:
        driver = Driver(spark, read_pipeline(flights.file))
        try:
            run(driver, once=True)
        finally:
            driver.close()
        return len(flights.per_city()) if kind == "parquet" else sum(flights.search().values())

    assert [(run_first(),)] == ran(spark, file)
    flights.change("2", ("insert", "E", 3, 2), ("delete", "C", 2, 3))
    assert [(run_first(),)] == ran(spark, file)


def test_a_stream_stops_between_batches_and_leaves_none_half_done(spark: SparkSession, tmp_path: Path) -> None:
    file = stream(tmp_path)
    stop = threading.Event()
    driver = Driver(spark, read_pipeline(file), lambda _: stop.set())
    worker = threading.Thread(target=run, args=(driver,), kwargs={"once": False, "stop": stop})
    worker.start()
    try:
        for number in range(5):
            send(tmp_path, str(number), ("insert", 1, number))
        worker.join(60)
        assert not worker.is_alive()
    finally:
        stop.set()
        worker.join()
        driver.close()
    assert [(1, 10)] == ran(spark, file)
    assert [(1, 10)] == summed(tmp_path, ("k", "s"))


def test_a_directory_goes_on_after_a_stream_that_owed_its_last_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stream(tmp_path)
    (tmp_path / "more").mkdir()
    other = "  more:\n    columns: {k: int, v: int}\n    changes: {directory: more, format: csv}\nviews:"
    text = file.read_text().replace("views:", other)
    file.write_text(
        text.replace("sinks:", "  both:\n    sql: SELECT e.k, m.v FROM events e JOIN more m ON e.k = m.k\nsinks:")
    )
    ran(spark, file)
    send(tmp_path, "a", ("insert", 1, 10))

    def crash(*_: object) -> int:
        raise RuntimeError("crash")

    with monkeypatch.context() as broken:
        broken.setattr(Sinks, "write", crash)
        with pytest.raises(SparkError, match="crash"):
            ran(spark, file)
    (tmp_path / "more" / "1.csv").write_text("k,v\n1,7\n")
    assert [(1, 10)] == ran(spark, file)
    assert [(1, 10)] == summed(tmp_path, ("k", "s"))
    driver = Driver(spark, read_pipeline(file))
    assert [(1, 7)] == list(driver.database.view("both"))
    driver.close()


@pytest.mark.long
def test_a_stream_of_csv_whose_header_has_another_order_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would give the values of one column to another, by their places."""
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2), applied=False)
    stream = "stream: {format: csv, path: changes, options: {header: true}}"
    flights.file.write_text(flights.file.read_text().replace("directory: changes, format: csv", stream))
    driver = Driver(spark, read_pipeline(flights.file))
    with pytest.raises(SparkError, match="CSV header does not conform to the schema"):
        run(driver, once=True)
    driver.close()
    flights.check_sinks()
