"""`python -m tests.spark.connect_driver FOLDER`: a pipeline over Spark Connect, on a server that PySpark starts here.

It is loaded from a DataFrame, changed by a directory of Parquet and by a Delta feed, named in the catalog, and asked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import ivme
from ivme.errors import SparkError

_FILE = """\
tables:
  orders:
    columns: {id: int, customer: int, amount: int}
    primary_key: id
    load: {frame: orders}
    changes: {directory: orders, format: parquet, operation: op, upsert: true}
  customers:
    columns: {id: int, city: string}
    load: {format: delta, path: customers}
    changes: {delta: customers}
views:
  per_city:
    sql: |
      SELECT c.city, COUNT(*) AS n, SUM(o.amount) AS total
      FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city
  of_city:
    sql: SELECT o.id, o.amount FROM orders o JOIN customers c ON o.customer = c.id WHERE c.city = :city
sinks:
  merged: {view: per_city, mode: merge, format: delta, path: out/merged}
  changes: {view: per_city, format: parquet, path: out/changes}
"""


def main(folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the server's Python needs ivme for names
    spark: Any = SparkSession.builder.remote("local[2]").getOrCreate()
    assert not hasattr(spark, "_jvm")
    (folder / "p.yml").write_text(_FILE)
    (folder / "orders").mkdir()
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(folder / "customers", pa.table({"id": [1, 2], "city": ["Oslo", "Bern"]}), configuration=feed)
    orders = spark.createDataFrame([(1, 1, 10), (2, 2, 20)], "id long, customer long, amount long")
    with ivme.Pipeline(folder / "p.yml", spark=spark, frames={"orders": orders}) as pipeline:
        check(pipeline, folder, {("Oslo", 1, 10), ("Bern", 1, 20)})
        events = {"op": ["u", "d"], "id": [3, 2], "customer": [1, 0], "amount": [5, 0]}
        pq.write_table(pa.table(events), folder / "orders/part-0000-1c2f.parquet")
        write_deltalake(folder / "customers", pa.table({"id": [2], "city": ["Rome"]}), mode="append")
        DeltaTable(folder / "customers").delete("id = 1 AND city = 'Bern'")
        pipeline.run()
        check(pipeline, folder, {("Oslo", 2, 15)})
        assert [] == [compared.name for compared in pipeline.verify() if compared.differences]
        named(spark, pipeline)
    (folder / "q.yml").write_text(
        _FILE.replace("tables:", "state: q\ntables:", 1)
        .replace("directory: orders, format: parquet, operation: op", "frame: events")
        .replace("path: out/", "path: other/")
    )
    frames = {"orders": orders, "events": spark.readStream.format("rate").load().selectExpr("value AS id")}
    with (
        ivme.Pipeline(folder / "q.yml", spark=spark, frames=frames) as pipeline,
        pytest.raises(SparkError, match="over Spark Connect batches go to another one"),
    ):
        pipeline.run()
    spark.stop()


def check(pipeline: ivme.Pipeline, folder: Path, expected: set[tuple[Any, ...]]) -> None:
    merged = DeltaTable(folder / "out/merged").to_pyarrow_table().to_pylist()
    assert expected == {tuple(row.values()) for row in merged} == set(pipeline.view("per_city"))


def named(spark: Any, pipeline: ivme.Pipeline) -> None:
    """Names, filters, requests, a temporary view and a stream of changes."""
    assert {"per_city": "ivme.per_city", "of_city": "ivme.of_city"} == pipeline.register()
    assert [("Oslo", 15)] == [
        tuple(r) for r in spark.sql("SELECT city, total FROM ivme.per_city WHERE n > 1").collect()
    ]
    asked = spark.sql("SELECT id FROM ivme.of_city WHERE city = 'Oslo' AND amount < 7").collect()
    assert [(3,)] == [tuple(row) for row in asked]
    assert 2 == spark.sql("SELECT * FROM ivme_of_city('Oslo')").count()
    assert [3] == [row.id for row in pipeline.frame("of_city", city="Oslo").where("amount = 5").collect()]
    stream = pipeline.changes("per_city").writeStream.format("memory").queryName("followed").trigger(availableNow=True)
    stream.start().awaitTermination()
    found = spark.sql("SELECT city, n, total FROM followed GROUP BY ALL HAVING SUM(ivme_weight) > 0").collect()
    assert [("Oslo", 2, 15)] == [tuple(row) for row in found]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    print("done", flush=True)
    os._exit(0)  # the session closes its channel in __del__, which may wait for ever when Python ends
