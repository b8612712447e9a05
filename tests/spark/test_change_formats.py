"""Changes as sources have them: upserts, deletes by key, Debezium's events, snapshots, and rows that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivme.errors import DataError
from ivme.pipeline.read import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event, Refused
from ivme.spark.pipeline.redelivery import redeliver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline
from tests.spark.flights import net

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.xdist_group("spark")

_FILE = """\
{head}tables:
  customers:
    columns: {{id: int, city: string, paid: "decimal(10,2)"}}
    primary_key: id
    changes: {{directory: changes, format: {format}{more}}}
views:
  by_city:
    sql: SELECT city, COUNT(*) AS n, SUM(paid) AS paid FROM customers GROUP BY city
sinks:
  changes: {{view: by_city, format: parquet, path: out}}
"""


class Customers:
    """The files of a pipeline with one table that is changed by key."""

    def __init__(self, folder: Path, more: str, *, format: str = "csv", head: str = "") -> None:
        self.folder, self.file = folder, folder / "customers.yml"
        self.file.write_text(_FILE.format(more=more, format=format, head=head))
        (folder / "changes").mkdir()

    def put(self, name: str, text: str) -> None:
        (self.folder / "changes" / name).write_text(text)

    def run(self, spark: Any, *, verified: bool = True) -> tuple[list[Event], set[tuple[Any, ...]]]:
        events: list[Event] = []
        driver = Driver(spark, read_pipeline(self.file), events.append)
        try:
            run(driver, once=True)
            rows = set(driver.database.table("customers"))
            assert not verified or not any(compared.differences for compared in verify_pipeline(driver))
        finally:
            driver.close()
        self.check_sink(rows)
        return events, rows

    def check_sink(self, rows: set[tuple[Any, ...]]) -> None:
        cities: dict[str, list[Any]] = {}
        for _, city, paid in rows:
            cities.setdefault(city, []).append(paid)
        found = [pq.ParquetFile(path).read() for path in sorted(self.folder.glob("out/*/changes.parquet"))]
        expected = {(city, len(paid), sum(paid)): 1 for city, paid in cities.items()}
        assert expected == (net(pa.concat_tables(found), ("city", "n", "paid")) if found else {})


def _rows(*rows: tuple[int, str, str]) -> set[tuple[Any, ...]]:
    from decimal import Decimal

    return {(key, city, Decimal(paid)) for key, city, paid in rows}


def test_upserts_take_the_newest_event_of_a_key_whenever_it_comes(spark: Any, tmp_path: Path) -> None:
    customers = Customers(tmp_path, ", operation: op, upsert: true, sequence_by: lsn, files_per_batch: 1")
    customers.put("1.csv", "op,id,city,paid,lsn\nu,1,Oslo,1.50,10\nu,2,Bern,2.00,11\nu,1,Rome,3.00,9\n")
    customers.put("2.csv", "op,id,city,paid,lsn\nd,2,,,15\nu,3,Oslo,4.25,16\nu,1,Lima,9.00,8\n")
    customers.put("3.csv", "op,id,city,paid,lsn\nu,2,Bern,7.00,12\nu,3,Oslo,4.25,16\nd,4,,,20\nu,4,Bonn,1.00,19\n")
    events, rows = customers.run(spark)
    assert _rows((1, "Oslo", "1.50"), (3, "Oslo", "4.25")) == rows
    assert [] == [event for event in events if isinstance(event, Refused)]


def test_a_row_that_is_none_goes_alone_and_a_limit_stops(spark: Any, tmp_path: Path) -> None:
    customers = Customers(tmp_path, ", operation: op, upsert: true", head="bad_limit: 5\n")
    good = "".join(f"u,{i},Oslo,1.00\n" for i in range(30))
    customers.put("1.csv", f"op,id,city,paid\n{good}u,x,Oslo,1.00\nwhat,31,Oslo,1.00\nu,,Oslo,1.00\nu,32\n")
    events, rows = customers.run(spark)
    assert 30 == len(rows)
    (refused,) = [event for event in events if isinstance(event, Refused)]
    assert "4 rows of 34" in refused.reason
    letters = pq.read_table(next((customers.folder / "customers.state/quarantine/customers").glob("*.parquet")))
    found = letters.to_pylist()
    assert {"1.csv"} == {row["ivme_source"] for row in found}
    assert all(row["ivme_reason"].startswith("malformed: ") for row in found)
    assert any("the operation what is unknown" in row["ivme_reason"] for row in found)
    assert any("primary key column id is NULL" in row["ivme_reason"] for row in found)
    assert 3 == sum(row["ivme_raw"] is not None for row in found)
    customers.put("2.csv", "op,id,city,paid\nu,40,Oslo,1.00\nu,y,Oslo,1.00\nu,z,Oslo,1.00\n")
    with pytest.raises(DataError, match="bad_limit is 5"):
        customers.run(spark)
    customers.file.write_text(customers.file.read_text().replace("bad_limit: 5", "bad_limit: 6"))
    _, rows = customers.run(spark)
    assert 31 == len(rows)


def _event(op: str, lsn: int, before: Any = None, after: Any = None, *, wrapped: bool = False) -> str:
    def row(values: Any) -> Any:
        return None if values is None else dict(zip(("id", "city", "paid"), values, strict=True))

    event = {"op": op, "ts_ms": 1, "source": {"lsn": lsn, "table": "c"}, "before": row(before), "after": row(after)}
    return json.dumps({"schema": {"type": "struct"}, "payload": event} if wrapped else event) + "\n"


def test_events_of_debezium_are_taken_in_their_order(spark: Any, tmp_path: Path) -> None:
    customers = Customers(tmp_path, ", envelope: debezium, sequence_by: source.lsn", format="json")
    customers.put(
        "1.json",
        _event("r", 1, None, (1, "Oslo", "1.00"))
        + _event("c", 2, None, (2, "Bern", "2.00"), wrapped=True)
        + "null\n"
        + _event("u", 5, (2, "Bern", "2.00"), (7, "Bern", "2.50"))
        + _event("u", 4, (1, "Oslo", "1.00"), (1, "Rome", "1.00")),
    )
    customers.put(
        "2.json",
        _event("d", 6, (1, None, None))
        + _event("u", 3, None, (1, "Lima", "1.00"))
        + _event("c", 8, None, (9, "Bonn", "3.00"))
        + _event("x", 9, None, (9, "Bonn", "4.00"))
        + '{"op": "c", "after": {"id": "no number"}}\n'
        + "no json\n",
    )
    events, rows = customers.run(spark)
    assert _rows((7, "Bern", "2.50"), (9, "Bonn", "3.00")) == rows
    (refused,) = [event for event in events if isinstance(event, Refused)]
    assert "3 rows of" in refused.reason


def test_a_snapshot_replaces_what_is_there(spark: Any, tmp_path: Path) -> None:
    customers = Customers(tmp_path, ", snapshot: replace")
    customers.put("1.csv", "id,city,paid\n1,Oslo,1.00\n2,Bern,2.00\n")
    customers.run(spark)
    customers.put("2.csv", "id,city,paid\n1,Oslo,1.00\n2,Bern,2.00\n4,Rome,1.00\n")
    customers.put("3.csv", "id,city,paid\n2,Bern,5.00\n3,Rome,1.00\n")
    _, rows = customers.run(spark)
    assert _rows((2, "Bern", "5.00"), (3, "Rome", "1.00")) == rows


class _CrashError(Exception):
    pass


def test_a_crash_after_upserts_gives_sinks_what_they_changed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers = Customers(tmp_path, ", operation: op, upsert: true")
    customers.put("1.csv", "op,id,city,paid\nu,1,Oslo,1.00\nu,2,Bern,2.00\n")
    customers.run(spark, verified=False)
    customers.put("2.csv", "op,id,city,paid\nu,1,Bern,1.00\nd,2,,\nu,x,Bern,1.00\n")

    def crash(*_: object) -> int:
        raise _CrashError

    driver = Driver(spark, read_pipeline(customers.file))
    with monkeypatch.context() as patched:
        patched.setattr(Sinks, "write", crash)
        with pytest.raises(_CrashError):
            driver.step("customers")
    driver.close()
    _, rows = customers.run(spark)
    assert _rows((1, "Bern", "1.00")) == rows


def test_events_that_were_refused_are_taken_again_by_their_sequence(spark: Any, tmp_path: Path) -> None:
    customers = Customers(tmp_path, ", operation: op, upsert: true, sequence_by: lsn")
    big = "99999999.99"
    text = customers.file.read_text().replace("SUM(paid) AS paid", "SUM(paid) AS paid, SUM(1 / (id - 7)) AS odd")
    customers.file.write_text(text)
    customers.put("1.csv", f"op,id,city,paid,lsn\nu,1,Oslo,1.00,1\nu,7,Bern,{big},2\nu,8,Bern,1.00,2\n")
    driver = Driver(spark, read_pipeline(customers.file))
    run(driver, once=True)
    assert {1, 8} == {row[0] for row in driver.database.table("customers")}
    driver.close()
    customers.file.write_text(text.replace("SUM(1 / (id - 7)) AS odd", "SUM(1 / (id - 77)) AS odd"))
    driver = Driver(spark, read_pipeline(customers.file))
    done = redeliver(driver, "customers")
    assert (1, 0) == (done.taken, done.waiting)
    assert {1, 7, 8} == {row[0] for row in driver.database.table("customers")}
    driver.close()
