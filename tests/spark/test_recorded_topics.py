"""Topics of Kafka as they were recorded: Debezium's events and its log of transactions, through Spark's streams.

There is no broker here. The files have the columns that Spark's connector gives, with binary values and tombstones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.runner import run

_FILE = """\
transactions: {stream: {format: parquet, path: log}}
tables:
  orders:
    columns: {id: int, customer: int}
    primary_key: id
    changes: {stream: {format: parquet, path: orders}, envelope: debezium, sequence_by: source.lsn}
  items:
    columns: {id: int, order_id: int}
    primary_key: id
    changes: {stream: {format: parquet, path: items}, envelope: debezium, sequence_by: source.lsn}
views:
  both:
    sql: SELECT o.customer, COUNT(*) AS n FROM orders o JOIN items i ON i.order_id = o.id GROUP BY o.customer
"""

_SCHEMA = pa.schema(
    [
        *(("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string())),
        *(("partition", pa.int32()), ("offset", pa.int64())),
    ]
)


def _record(folder: Path, name: str, messages: list[Any]) -> None:
    """Writes messages as a file of a topic; None is a tombstone."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "key": b"{}",
            "value": None if message is None else json.dumps({"payload": message}).encode(),
            "topic": folder.name,
            "partition": 0,
            "offset": place,
        }
        for place, message in enumerate(messages)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), folder / name)


def _event(op: str, lsn: int, transaction: str | None, number: int, **row: int) -> dict[str, Any]:
    told = None if transaction is None else {"id": transaction, "total_order": number, "data_collection_order": 1}
    side = "before" if op == "d" else "after"
    return {"op": op, side: row, "source": {"lsn": lsn}, "transaction": told}


def _end(key: str, **counts: int) -> dict[str, Any]:
    told = [{"data_collection": f"shop.{name}", "event_count": count} for name, count in counts.items()]
    return {"status": "END", "id": key, "data_collections": told}


def _rows(spark: Any, file: Path) -> tuple[list[Any], list[Any], list[Any]]:
    driver = Driver(spark, read_pipeline(file))
    try:
        run(driver, once=True)
        tables = [sorted(driver.database.table(name)) for name in ("orders", "items")]
        return tables[0], tables[1], sorted(driver.database.view("both"))
    finally:
        driver.close()


@pytest.mark.long
def test_recorded_topics_are_taken_by_whole_transactions(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(_FILE)
    _record(
        tmp_path / "orders",
        "1.parquet",
        [_event("r", 1, None, 0, id=1, customer=7), _event("c", 10, "a", 0, id=2, customer=7)],
    )
    _record(tmp_path / "items", "1.parquet", [_event("r", 2, None, 0, id=1, order_id=1)])
    _record(tmp_path / "log", "1.parquet", [{"status": "BEGIN", "id": "a"}, _end("a", orders=1, items=2)])
    spark.conf.set("spark.sql.streaming.schemaInference", "true")
    try:
        assert ([(1, 7)], [(1, 1)], [(7, 1)]) == _rows(spark, file)
        more = [_event("c", 11, "a", 1, id=2, order_id=2), _event("c", 12, "a", 2, id=3, order_id=2)]
        _record(tmp_path / "items", "2.parquet", [*more, None, more[0]])
        assert ([(1, 7), (2, 7)], [(1, 1), (2, 2), (3, 2)], [(7, 3)]) == _rows(spark, file)
        _record(tmp_path / "orders", "2.parquet", [_event("d", 20, "b", 0, id=1), None])
        _record(tmp_path / "log", "2.parquet", [_end("b", orders=1)])
        assert ([(2, 7)], [(1, 1), (2, 2), (3, 2)], [(7, 2)]) == _rows(spark, file)
    finally:
        spark.conf.unset("spark.sql.streaming.schemaInference")
