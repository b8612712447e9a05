"""DataFrames of Python as sources of a pipeline, and pipelines that run in a thread."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ivme
from ivme.errors import DataError, PipelineError
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver

pytestmark = pytest.mark.xdist_group("spark")

_FILE = """\
tables:
  orders:
    columns: {id: int, customer: int, amount: int}
    primary_key: id
    load: {frame: orders}
    changes: {frame: order_events, operation: op, upsert: true}
  customers:
    columns: {id: int, city: string}
    primary_key: id
    load: {frame: customers, select: {id: number}, where: number < 10}
views:
  per_city:
    sql: |
      SELECT c.city, COUNT(*) AS n, SUM(o.amount) AS total
      FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city
sinks:
  merged: {view: per_city, mode: merge, format: delta, path: out/merged}
"""


class Shop:
    """The file, its frames, and a folder that a stream reads."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.file = spark, folder, folder / "shop.yml"
        self.file.write_text(_FILE)
        (folder / "events").mkdir()
        self._written = 0

    def frames(self) -> dict[str, Any]:
        layout = "op string, id long, customer long, amount long"
        return {
            "orders": self.spark.createDataFrame([(1, 1, 10), (2, 2, 20)], "id long, customer long, amount long"),
            "customers": self.spark.createDataFrame(
                [(1, "Oslo"), (2, "Bern"), (11, "Rome")], "number long, city string"
            ),
            "order_events": self.spark.readStream.schema(layout).parquet(str(self.folder / "events")),
        }

    def add(self, *events: tuple[str, int, int, int]) -> None:
        columns = dict(zip(("op", "id", "customer", "amount"), map(list, zip(*events, strict=True)), strict=True))
        pq.write_table(pa.table(columns), self.folder / "events" / f"{self._written}.parquet")
        self._written += 1

    def merged(self) -> list[tuple[Any, ...]]:
        from deltalake import DeltaTable

        return sorted(
            tuple(r.values()) for r in DeltaTable(str(self.folder / "out/merged")).to_pyarrow_table().to_pylist()
        )


def test_dataframes_load_tables_and_a_streaming_one_changes_them_once(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    shop.add(("u", 2, 1, 25), ("u", 3, 2, 30))
    with ivme.Pipeline(shop.file, spark=spark, frames=shop.frames()) as pipeline:
        assert [("Bern", 1, 20), ("Oslo", 1, 10)] == shop.merged()
        pipeline.run()
        assert [("Bern", 1, 30), ("Oslo", 2, 35)] == shop.merged()
        assert [] == [compared.name for compared in pipeline.verify() if compared.differences]
    shop.add(("d", 1, 0, 0))
    with ivme.Pipeline(shop.file, spark=spark, frames=shop.frames()) as pipeline:
        pipeline.run()
        pipeline.run()
        assert [("Bern", 1, 30), ("Oslo", 1, 25)] == shop.merged() == sorted(pipeline.view("per_city"))


@pytest.mark.long
def test_a_pipeline_follows_a_stream_in_a_thread(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    with ivme.Pipeline(shop.file, spark=spark, frames=shop.frames()) as pipeline:
        pipeline.start()
        with pytest.raises(PipelineError, match=r"runs in a thread already; stop\(\) it before run\(\)"):
            pipeline.run()
        shop.add(("u", 4, 1, 40))
        until = time.monotonic() + 90
        while ("Oslo", 2, 50) not in shop.merged() and time.monotonic() < until:
            time.sleep(0.1)
        pipeline.stop()
        assert [("Bern", 1, 20), ("Oslo", 2, 50)] == shop.merged()
        shop.add(("u", 5, 2, 1))
        pipeline.run()
        assert ("Bern", 2, 21) in shop.merged()


@pytest.mark.long
def test_what_ends_a_pipeline_in_a_thread_is_raised_when_it_is_stopped(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    shop.file.write_text("on_bad: stop\n" + _FILE)
    shop.add(("what", 1, 1, 1))
    pipeline = ivme.Pipeline(shop.file, spark=spark, frames=shop.frames())
    pipeline.start()
    until = time.monotonic() + 60
    while pipeline.failure is None and time.monotonic() < until:
        time.sleep(0.05)
    with pytest.raises(DataError, match="the operation what is unknown"):
        pipeline.close()


@pytest.mark.long
def test_events_of_debezium_may_be_the_values_of_a_streaming_dataframe(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    events = [{"op": "c", "after": {"id": i, "city": "Oslo"}} for i in range(3)] + [{"op": "d", "before": {"id": 1}}]
    (tmp_path / "events/1.txt").write_text("".join(json.dumps(event) + "\n" for event in events))
    (tmp_path / "p.yml").write_text(
        "tables:\n  t:\n    columns: {id: int, city: string}\n    primary_key: id\n"
        "    changes: {frame: topic, envelope: debezium}\n"
        "views:\n  v:\n    sql: SELECT city, COUNT(*) AS n FROM t GROUP BY city\n"
    )
    topic = spark.readStream.text(str(tmp_path / "events"))
    with ivme.Pipeline(tmp_path / "p.yml", spark=spark, frames={"topic": topic}) as pipeline:
        pipeline.run()
        assert [("Oslo", 2)] == list(pipeline.view("v"))


def test_frames_that_cannot_be_are_refused(spark: Any, tmp_path: Path) -> None:
    shop = Shop(spark, tmp_path)
    frames = shop.frames()
    with pytest.raises(PipelineError, match=r"shop.yml:10:\d+: table customers reads the DataFrame customers, which"):
        read_pipeline(shop.file, {name: frames[name] for name in ("orders", "order_events")})
    with pytest.raises(PipelineError, match="no table of the pipeline reads the frame others; its tables read: cust"):
        read_pipeline(shop.file, {**frames, "others": frames["orders"]})
    with pytest.raises(PipelineError, match=r"which only Python can give: ivme.Pipeline\(file, frames="):
        Driver(spark, read_pipeline(shop.file))
    with pytest.raises(PipelineError, match="table orders is loaded from a DataFrame that is not a stream"):
        Driver(spark, read_pipeline(shop.file, {**frames, "orders": frames["order_events"]}))
    with (
        ivme.Pipeline(shop.file, spark=spark, frames={**frames, "order_events": frames["orders"]}) as pipeline,
        pytest.raises(PipelineError, match="table orders is changed by a streaming DataFrame; the frame order_events"),
    ):
        pipeline.run()
    shop.file.write_text(_FILE.replace("{frame: orders}", "{frame: orders, format: csv}"))
    with pytest.raises(PipelineError, match="is a DataFrame, which knows its own columns; leave format out"):
        read_pipeline(shop.file)
