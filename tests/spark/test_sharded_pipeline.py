"""`engine: {shards: 2}` in a pipeline file: everything else in the file stays, and so do tables, views and sinks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ivme.errors import PipelineError, SparkError
from ivme.pipeline import read_pipeline
from ivme.shards.state import ShardedState
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Event, Refused
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline
from ivme.spark.shards.database import SparkDatabase
from tests.spark.flights import Flights, net
from tests.spark.killed_pipeline import PLACES
from tests.test_docs import ROOT

ENGINE = "engine: {shards: 2, hosts: 1}\n"


@contextmanager
def opened(spark: SparkSession, file: Path, events: list[Event] | None = None) -> Iterator[Driver]:
    driver = Driver(spark, read_pipeline(file), (events if events is not None else []).append)
    try:
        yield driver
    finally:
        driver.close()


@pytest.mark.long
def test_a_pipeline_over_shards_has_the_views_and_sinks_that_spark_says(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
        assert isinstance(driver.database, ShardedState)
        assert 2 == len(driver.database.status())
        assert flights.per_city() == set(driver.database.view("per_city"))
        assert [("A",), ("D",)] == sorted(driver.database.view("search")(origin="London", dest="Zurich"))
        assert [()] * 5 == [compared.differences for compared in verify_pipeline(driver)]
    flights.check_sinks()
    flights.change("2", ("delete", "D", 1, 2), ("insert", "F", 3, 3))
    with opened(spark, flights.file) as driver:
        driver.resume()
        run(driver, once=True)
        assert 2 == driver.reached
        assert flights.per_city() == set(driver.database.view("per_city"))
    flights.check_sinks()


RICH = """\
{engine}tables:
  customers:
    columns: {{id: int, city: string, paid: "decimal(10, 2)"}}
    primary_key: id
    changes: {{directory: customers, format: csv, operation: op, upsert: true, sequence_by: lsn, history: versions,
      files_per_batch: 1}}
  orders:
    columns: {{id: int, customer: int, amount: int}}
    load: {{format: csv, path: orders.csv}}
    changes: {{directory: orders, format: csv, operation: op}}
functions:
  larger: {{call: "builtins:max", arguments: [int, int], returns: int}}
views:
  per_city: {{sql: "SELECT c.city, COUNT(*) AS n, SUM(o.amount) AS total, MAX(larger(o.amount, 0)) AS most
    FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"}}
  cities: {{sql: "SELECT city, SUM(paid) AS paid, SUM(1 / (id - 7)) AS odd FROM customers GROUP BY city"}}
  best: {{sql: "SELECT city, n FROM per_city ORDER BY n DESC, city LIMIT 2"}}
sinks:
  changes: {{view: per_city, format: parquet, path: out/changes}}
  rows: {{view: cities, what: rows, format: parquet, path: out/rows}}
  merged: {{view: per_city, mode: merge, format: delta, path: out/merged}}
  best: {{view: best, format: parquet, path: out/best}}
  versions: {{view: versions, format: parquet, path: out/versions}}
"""


class Rich:
    """A pipeline with events by key, a history, dead letters, a function, a view on a view, and sinks of each mode."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder, self.file = folder, folder / "rich.yml"
        for name in ("customers", "orders"):
            (folder / name).mkdir(parents=True)
        self.file.write_text(RICH.format(engine=engine), "utf-8")
        (folder / "orders.csv").write_text("id,customer,amount\n1,1,10\n2,2,20\n3,1,30\n")
        head = "op,id,city,paid,lsn\n"
        self.put("customers/1.csv", head + "u,1,Oslo,1.50,10\nu,2,Bern,2.00,11\nu,1,Rome,3.00,9\nu,7,Bonn,1.00,12\n")
        self.put("customers/2.csv", head + "d,2,,,15\nu,3,Oslo,4.25,16\nu,1,Lima,9.00,8\nu,x,Bonn,1.00,1\n")
        self.put("customers/3.csv", head + "u,2,Bern,7.00,17\nu,3,Oslo,4.25,16\nd,4,,,20\nu,4,Bonn,1.00,19\n")
        self.put("orders/1.csv", "op,id,customer,amount\ninsert,4,3,5\ninsert,5,2,6\ndelete,9,9,9\ndelete,3,1,30\n")

    def put(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")

    def ran(self, spark: SparkSession) -> dict[str, Any]:
        """Everything that can be seen of it after it has caught up."""
        events: list[Event] = []
        with opened(spark, self.file, events) as driver:
            run(driver, once=True)
            database = driver.database
            tables = {name: sorted(database.table(name)) for name in ("customers", "orders")}
            views = {name: sorted(database.view(name)) for name in database.views}
            compared = [(each.name, each.rows, each.differences) for each in verify_pipeline(driver)]
            waiting = driver.quarantine.waiting()
        refused = sorted((event.source, event.reason.split(",")[0]) for event in events if isinstance(event, Refused))
        return {
            "tables": tables,
            "views": views,
            "compared": compared,
            "waiting": waiting,
            "refused": refused,
            "merged": self.merged(),
            "rows": self.rows(),
            **{name: self.net(name) for name in ("changes", "best", "versions")},
        }

    def merged(self) -> list[tuple[Any, ...]]:
        from deltalake import DeltaTable

        found = DeltaTable(str(self.folder / "out/merged")).to_pyarrow_table()
        return sorted(zip(*(found.column(name).to_pylist() for name in ("city", "n", "total")), strict=True))

    def rows(self) -> list[str]:
        return sorted(map(str, pq.read_table(self.folder / "out/rows/rows.parquet").to_pylist()))

    def net(self, sink: str) -> dict[Any, int]:
        partitioning = ds.partitioning(pa.schema([("ivme_batch", pa.int64())]), flavor="hive")
        found = ds.dataset(self.folder / "out" / sink, format="parquet", partitioning=partitioning).to_table()
        names = tuple(name for name in found.column_names if name not in ("ivme_batch", "ivme_weight"))
        return net(found, names)


def test_a_pipeline_with_and_without_shards_has_equal_tables_views_letters_and_sinks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IVME_FUNCTIONS", "builtins")
    found = [Rich(tmp_path / str(number), engine).ran(spark) for number, engine in enumerate(("", ENGINE))]
    for what, expected in found[0].items():
        assert expected == found[1][what], what
    assert not any(differences for _, _, differences in found[1]["compared"])
    assert found[1]["waiting"]
    assert found[1]["changes"]


TASKS = """\
{engine}tables:
  sales:
    columns: {{item: string, shop: int, price: int}}
    changes: {{directory: sales, format: csv, operation: op, files_per_batch: 1}}
views:
  totals: {{sql: "SELECT item, COUNT(*) AS n, SUM(price) AS price FROM sales GROUP BY item"}}
  whole: {{sql: "SELECT COUNT(*) AS n, SUM(price) AS price FROM sales"}}
  prices: {{sql: "SELECT price FROM sales UNION ALL SELECT shop FROM sales"}}
sinks:
  totals: {{view: totals, format: json, path: "file://{folder}/out/totals"}}
  whole: {{view: whole, format: json, path: "file://{folder}/out/whole"}}
  prices: {{view: prices, format: json, path: "file://{folder}/out/prices"}}
  parquet: {{view: prices, format: parquet, path: "file://{folder}/out/parquet"}}
  rows: {{view: totals, what: rows, format: json, path: "file://{folder}/out/rows"}}
  summed: {{view: whole, what: rows, format: json, path: "file://{folder}/out/summed"}}
"""


def sales(folder: Path, number: int) -> Counter[tuple[str, int, int]]:
    """Writes a file of changes; what it changes."""
    new = Counter((f"item {i % 5}", i % 3, number + i % 4) for i in range(12))
    gone = Counter((f"item {i % 5}", i % 3, number - 1 + i % 4) for i in range(1, 12, 2) if number)
    both = [("insert", row) for row in new.elements()] + [("delete", row) for row in gone.elements()]
    lines = [f"{kind},{item},{shop},{price}\n" for kind, (item, shop, price) in both]
    (folder / f"sales/{number}.csv").write_text("op,item,shop,price\n" + "".join(lines))
    new.subtract(gone)
    return new


def written(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What the sinks have: the sums of changes, and rows."""
    found: dict[str, Any] = {}
    for name in ("totals", "whole", "prices", "parquet"):
        changes = spark.read.format("parquet" if name == "parquet" else "json").load(str(folder / "out" / name))
        columns = sorted(set(changes.columns) - {"ivme_weight", "ivme_batch"})
        total = changes.groupBy(*columns).agg({"ivme_weight": "sum"}).collect()
        found[name] = {tuple(row[:-1]): row[-1] for row in total if row[-1]}
    for name in ("rows", "summed"):
        rows = spark.read.json(str(folder / "out" / name))
        found[name] = sorted(tuple(row) for row in rows.select(*sorted(rows.columns)).collect())
    return found


def computed(rows: Counter[tuple[str, int, int]]) -> dict[str, Any]:
    """The same from the rows of the table."""
    listed = list(rows.elements())
    items = sorted({item for item, _, _ in listed})
    of_item = {item: [price for each, _, price in listed if each == item] for item in items}
    totals = [(item, len(prices), sum(prices)) for item, prices in of_item.items()]
    whole = (len(listed), sum(price for _, _, price in listed))
    prices = Counter((value,) for _, shop, price in listed for value in (shop, price))
    changes = {"totals": dict.fromkeys(totals, 1), "whole": {whole: 1}, "prices": dict(prices), "parquet": dict(prices)}
    return {**changes, "rows": totals, "summed": [whole]}


@pytest.mark.long
def test_tasks_write_what_spark_writes_from_the_shards(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sales").mkdir()
    (tmp_path / "p.yml").write_text(TASKS.format(engine=ENGINE, folder=tmp_path), "utf-8")
    rows: Counter[tuple[str, int, int]] = Counter()
    monkeypatch.setattr(ShardedState, "change_of_batch", not_computed_again)
    monkeypatch.setattr(type(spark), "createDataFrame", few_rows(type(spark).createDataFrame))
    with opened(spark, tmp_path / "p.yml") as driver:
        rows.update(sales(tmp_path, 0))
        rows.update(sales(tmp_path, 1))
        run(driver, once=True)
    rows.update(sales(tmp_path, 2))
    crashed(spark, tmp_path / "p.yml", crash, monkeypatch)
    with opened(spark, tmp_path / "p.yml") as driver:
        run(driver, once=True)
    assert computed(rows) == written(spark, tmp_path)


def few_rows(create: Callable[..., Any]) -> Callable[..., Any]:
    """Refuses DataFrames of Arrow rows, but for the one row of an aggregate of no rows, which sinks get first."""

    def created(session: Any, data: Any, *others: Any, **options: Any) -> Any:
        assert not isinstance(data, pa.Table) or data.num_rows <= 1, "rows passed through the driver"
        return create(session, data, *others, **options)

    return created


class CrashError(Exception):
    """What stands in for a crash."""


def crashed(spark: SparkSession, file: Path, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a pipeline whose writing of sinks goes wrong after the database has the batch."""
    with opened(spark, file) as driver, monkeypatch.context() as patched:
        patched.setattr(Sinks, "write", broken)
        with pytest.raises((CrashError, SparkError)):
            run(driver, once=True)
        assert driver.reached > 0


def crash(*_: object) -> int:
    raise CrashError


def not_computed_again(*_: object, **__: object) -> Any:
    raise AssertionError("shards keep the changes of a batch")


def put_event(flights: Flights, name: str, *changes: tuple[str, str, int, int]) -> None:
    """The same changes as lines of JSON, which a directory and a stream read alike."""
    flights.change(name, *changes)
    lines = [json.dumps(dict(zip(("op", "no", "src", "dst"), change, strict=True))) for change in changes]
    (flights.folder / "events" / f"{name}.json").write_text("\n".join(lines), "utf-8")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("directory: events, format: json", id="a directory"),
        pytest.param("stream: {format: json, path: events}", id="a stream", marks=pytest.mark.long),
    ],
)
def test_sinks_get_a_batch_once_that_the_shards_had_when_the_driver_died(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    (tmp_path / "events").mkdir()
    text = flights.file.read_text("utf-8").replace("directory: changes, format: csv", source)
    flights.file.write_text(text, "utf-8")
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    put_event(flights, "1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    crashed(spark, flights.file, crash, monkeypatch)
    monkeypatch.setattr("ivme.spark.pipeline.sinks.replay", not_computed_again)
    with opened(spark, flights.file) as driver:
        assert not driver.outlets.lacks_changes(driver.reached)
        flights.check_sinks()
        put_event(flights, "2", ("insert", "E", 4, 5))
        run(driver, once=True)
    flights.check_sinks()


@pytest.mark.long
def test_a_host_that_is_killed_between_the_record_and_the_sinks_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    flights.change("2", ("insert", "E", 4, 5))
    written, killed = Sinks.write, []
    with opened(spark, flights.file) as driver:
        assert driver.sharded is not None

        def kill(sinks: Sinks, batch: int) -> int:
            assert driver.sharded is not None
            killed.append(driver.sharded.status()[0]["pid"])
            os.kill(killed[-1], signal.SIGKILL)
            return written(sinks, batch)

        monkeypatch.setattr(Sinks, "write", kill)
        run(driver, once=True)
        assert flights.per_city() == set(driver.database.view("per_city"))
        assert driver.sharded.status()[0]["pid"] not in killed
    assert killed
    flights.check_sinks()


@pytest.mark.long
def test_changes_that_no_sink_has_stay_in_the_checkpoint_while_steps_are_compacted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ivme.shards.coordinator.LONGEST_LOG", 0)
    flights = Flights(tmp_path, head=ENGINE)
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    flights.change("1", ("insert", "D", 1, 2))
    crashed(spark, flights.file, crash, monkeypatch)
    text = flights.file.read_text("utf-8")
    more = "  more:\n    sql: SELECT src, COUNT(*) AS n FROM routes GROUP BY src\nsinks:\n"
    flights.file.write_text(text.replace("sinks:\n", more), "utf-8")  # making it takes a step, which compacts
    with opened(spark, flights.file):
        pass
    flights.check_sinks()


@pytest.mark.long
def test_another_number_of_shards_places_the_rows_anew_and_sinks_still_get_what_they_lack(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    crashed(spark, flights.file, crash, monkeypatch)
    flights.file.write_text(flights.file.read_text("utf-8").replace("shards: 2", "shards: 3"), "utf-8")
    flights.change("2", ("insert", "E", 4, 5))
    with opened(spark, flights.file) as driver:
        assert driver.sharded is not None
        assert 3 == len(driver.sharded.status())
        run(driver, once=True)
        assert 2 == driver.reached
        assert flights.per_city() == set(driver.database.view("per_city"))
    flights.check_sinks()


@pytest.mark.long
def test_a_changed_view_gives_its_sinks_the_difference(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    text = flights.file.read_text("utf-8")
    flights.file.write_text(text.replace("ON r.src = a.id GROUP BY", "ON r.dst = a.id GROUP BY"), "utf-8")
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
        assert {("Zurich", 1, "A"), ("Oslo", 3, "B")} == set(driver.database.view("per_city"))
    assert {("Zurich", 1, "A"): 1, ("Oslo", 3, "B"): 1} == flights.counted()


def test_a_state_stays_with_the_engine_that_it_was_made_with(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    flights.file.write_text(ENGINE + flights.file.read_text("utf-8"), "utf-8")
    with pytest.raises(PipelineError, match="was made without shards, and the file says with shards"):
        Driver(spark, read_pipeline(flights.file))


def test_a_memory_limit_is_refused_with_shards(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    with pytest.raises(PipelineError, match="a memory limit applies to the engine in the driver"):
        Driver(spark, read_pipeline(flights.file), memory_limit="1GB")


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_pipeline_whose_driver_and_hosts_are_killed_gives_its_sinks_each_batch_once(
    spark: SparkSession, archives: Path, tmp_path: Path, place: str
) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    command = [sys.executable, "-m", "tests.spark.killed_pipeline", str(flights.file), str(archives), place]
    ended = subprocess.run(command, cwd=ROOT, start_new_session=True, capture_output=True, text=True, check=False)
    assert -signal.SIGKILL == ended.returncode, ended.stderr[-3000:]
    flights.change("2", ("insert", "E", 4, 5))
    with opened(spark, flights.file) as driver:
        run(driver, once=True)
        assert flights.per_city() == set(driver.database.view("per_city"))
        assert not any(compared.differences for compared in verify_pipeline(driver))
    flights.check_sinks()


@pytest.mark.long
def test_a_state_stays_with_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head=ENGINE)
    with opened(spark, flights.file):
        pass
    text = flights.file.read_text("utf-8")
    flights.file.write_text(text.replace("hosts: 1", "hosts: 1, checkpoint: other"), "utf-8")
    with pytest.raises(PipelineError, match="there is no checkpoint in"):
        Driver(spark, read_pipeline(flights.file))
    with SparkDatabase(spark, 2, tmp_path / "other", hosts=1):
        pass
    with pytest.raises(PipelineError, match="is not the one that the state"):
        Driver(spark, read_pipeline(flights.file))
    flights.file.write_text(text.replace(ENGINE, ""), "utf-8")
    with pytest.raises(PipelineError, match="was made with shards, and the file says without shards"):
        Driver(spark, read_pipeline(flights.file))
