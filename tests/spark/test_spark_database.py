"""`SparkDatabase` on a local session: the same answers as the embedded database, on 2 and on 8 shards."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ivme
from ivme.errors import DataError, PlanError, SparkError, StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "R": {"a": "int", "b": "int"},
    "S": {"b": "int", "c": "int"},
    "T": {"c": "int", "a": "int"},
    "U": {"a": "int", "name": "string"},
    "W": {"c": "int", "price": "decimal(10, 2)"},
}
VIEWS = {
    "triangles": "SELECT COUNT(*) AS n FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c AND T.a = R.a",
    "c3": "Q(A, B, C | .) = R(A, B), S(B, C), T(C, A)",
    "cqap0": "Q(B, C | A) = R(A, B), T(C, A)",
    "revenue": """SELECT U.name, SUM(W.price) AS total, COUNT(*) AS n, MIN(W.price) AS least
        FROM U JOIN R ON U.a = R.a JOIN S ON R.b = S.b JOIN T ON S.c = T.c JOIN W ON T.c = W.c GROUP BY U.name""",
}


def filled(db: Any) -> None:
    chance = random.Random(1)
    with db.batch() as batch:
        for table in "RST":
            batch.insert(table, [(chance.randrange(12), chance.randrange(12)) for _ in range(120)])
        batch.insert("U", [(i, f"name {i % 5}") for i in range(12)])
        batch.insert("W", [(i % 12, Decimal(i) / 4) for i in range(40)])


def declared(db: Any) -> Any:
    for name, schema in TABLES.items():
        db.create_table(name, schema)
    for name, text in VIEWS.items():
        db.create_view(name, text)
    return db


@pytest.fixture(scope="module")
def embedded() -> ivme.Database:
    made: ivme.Database = declared(ivme.Database())
    filled(made)
    return made


@pytest.fixture(scope="module")
def two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ivme.SparkDatabase]:
    db = ivme.SparkDatabase(spark, shards=2, checkpoint=tmp_path_factory.mktemp("two"))
    declared(db)
    filled(db)
    yield db
    db.close()


@pytest.fixture(scope="module")
def eight(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ivme.SparkDatabase]:
    """Filled before its views are made, where the other is filled after."""
    db = ivme.SparkDatabase(spark, shards=8, checkpoint=tmp_path_factory.mktemp("eight"))
    for name, schema in TABLES.items():
        db.create_table(name, schema)
    filled(db)
    for name, text in VIEWS.items():
        db.create_view(name, text)
    yield db
    db.close()


def check_same(db: ivme.SparkDatabase, embedded: ivme.Database) -> None:
    for name in ("triangles", "c3", "revenue"):
        expected = sorted(embedded.view(name))
        assert expected
        assert expected == sorted(db.view(name)), name
        assert expected == sorted(map(tuple, db.table(name).collect())), name
    for a in range(13):
        assert sorted(embedded.view("cqap0")(A=a)) == sorted(db.view("cqap0")(A=a))


def test_two_shards_answer_as_the_embedded_database(two: ivme.SparkDatabase, embedded: ivme.Database) -> None:
    check_same(two, embedded)


@pytest.mark.long
def test_eight_shards_answer_as_the_embedded_database(eight: ivme.SparkDatabase, embedded: ivme.Database) -> None:
    check_same(eight, embedded)
    assert 8 == len({status["pid"] for status in eight.status()})


def test_no_process_holds_more_than_seven_tenths_of_the_state(two: ivme.SparkDatabase) -> None:
    entries = {status["pid"]: sum(status["entries"].values()) for status in two.status()}
    assert 2 == len(entries)
    assert os.getpid() not in entries, "the driver holds none"
    assert max(entries.values()) <= 0.7 * sum(entries.values())


def test_a_batch_is_all_or_nothing(two: ivme.SparkDatabase, embedded: ivme.Database) -> None:
    with pytest.raises(DataError, match=r"cannot delete \(99, 99\)"):
        two.apply("R", [(1, 1), (2, 2), (99, 99)], [1, 1, -1])
    check_same(two, embedded)


def test_rows_at_the_driver_run_no_spark_job(two: ivme.SparkDatabase, spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = sorted(tracker.getJobIdsForGroup())
    two.insert("R", [(50, 50)])
    assert two.view("c3").count() >= 0
    two.delete("R", [(50, 50)])
    assert before == sorted(tracker.getJobIdsForGroup())


def test_the_status_shows_host_epoch_memory_and_step_of_each_shard(two: ivme.SparkDatabase) -> None:
    found = two.status()
    assert [0, 1] == [status["shard"] for status in found]
    assert {two.step} == {status["step"] for status in found}
    assert 2 == len({status["epoch"] for status in found})
    assert all(status["host"] and status["memory"] > 0 for status in found)


def test_a_dataframe_is_placed_by_sparks_tasks(two: ivme.SparkDatabase, spark: SparkSession) -> None:
    frame = spark.createDataFrame([(i, 100 + i % 3, 1 if i % 2 else 2) for i in range(50)], "a long, b long, w int")
    before = two.view("c3").count()
    two.apply("R", frame, "w")
    two.insert("S", spark.createDataFrame([(100, 200)], "b long, c long"))
    two.insert("T", spark.createDataFrame([(200, i) for i in range(50)], "c long, a long"))
    assert before + sum(1 if i % 2 else 2 for i in range(0, 50, 3)) == two.view("c3").count()
    two.view("triangles").verify()
    two.apply("R", frame.selectExpr("a", "b", "-w as w"), "w")
    two.delete("S", [(100, 200)])
    two.delete("T", [(200, i) for i in range(50)])
    assert before == two.view("c3").count()
    with pytest.raises(DataError, match="column b"):
        two.insert("R", spark.createDataFrame([(1, "x")], "a long, b string"))


def test_views_are_read_from_sql(two: ivme.SparkDatabase, spark: SparkSession, embedded: ivme.Database) -> None:
    two.register("cqap0", "partners")
    expected = sorted(embedded.view("cqap0")(A=3))
    assert expected == sorted(map(tuple, spark.sql("SELECT * FROM partners(3)").collect()))
    assert expected == sorted(map(tuple, spark.sql("SELECT * FROM partners(A => 3)").collect()))
    lateral = spark.sql("SELECT x.id, p.* FROM range(13) x, LATERAL partners(x.id) p")
    assert sum(embedded.view("cqap0").count(A=a) for a in range(13)) == lateral.count()
    with pytest.raises(PlanError, match="has no parameters"):
        two.register("c3")


def test_views_are_read_as_a_format(two: ivme.SparkDatabase, spark: SparkSession, embedded: ivme.Database) -> None:
    two.table("c3")
    reader = spark.read.format("ivme").option("checkpoint", str(two.checkpoint.store.address))
    assert sorted(embedded.view("revenue")) == sorted(map(tuple, reader.option("view", "revenue").load().collect()))
    asked = reader.option("view", "cqap0").option("parameter.A", "3").load()
    assert sorted(embedded.view("cqap0")(A=3)) == sorted(map(tuple, asked.collect()))
    assert sorted(embedded.view("cqap0")(A=3)) == sorted(map(tuple, two.table("cqap0", A=3).collect()))


def test_names_in_spark_sql_show_every_later_change(
    two: ivme.SparkDatabase, spark: SparkSession, embedded: ivme.Database
) -> None:
    two.table("revenue").createOrReplaceTempView("revenue_now")
    root = two.checkpoint.store.address
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW c3_now USING ivme OPTIONS (checkpoint '{root}', view 'c3')")
    frame = two.table("c3")
    for change in ([(1, 2), (2, 3)], [(3, 1)]):
        for db in (two, embedded):
            db.insert("R", change)
        expected = {name: sorted(embedded.view(name)) for name in ("revenue", "c3")}
        assert expected["revenue"] == sorted(map(tuple, spark.sql("SELECT * FROM revenue_now").collect()))
        assert expected["c3"] == sorted(map(tuple, spark.sql("SELECT * FROM c3_now").collect()))
        assert expected["c3"] == sorted(map(tuple, frame.collect()))


def test_a_closure_and_a_view_on_a_view_are_kept_in_one_shard_each(
    two: ivme.SparkDatabase, spark: SparkSession, embedded: ivme.Database
) -> None:
    names = {"onward": "Q(Y | X) = closure(R)(X, Y)", "rich": "SELECT name, total FROM revenue WHERE total > 100"}
    for each in (two, embedded):
        for name, text in names.items():
            each.create_view(name, text)
    two.register("onward")
    asked = spark.sql("SELECT x.id, o.* FROM range(12) x, LATERAL onward(x.id) o").collect()
    assert sorted((x, y) for x in range(12) for (y,) in embedded.view("onward")(X=x)) == sorted(map(tuple, asked))
    assert sorted(embedded.view("onward")(X=3)) == sorted(map(tuple, two.table("onward", X=3).collect()))
    assert sorted(embedded.view("rich")) == sorted(map(tuple, two.table("rich").collect()))
    feeds = [each.view("onward").changes() for each in (two, embedded)]
    for each in (two, embedded):
        each.insert("R", [(11, 77), (77, 78)])
        each.delete("R", [(11, 77), (77, 78)])
    assert list(feeds[0]) == list(feeds[1])
    for each in (two, embedded):
        each.view("onward").verify()
        for name in names:
            each.drop_view(name)


def test_changes_are_a_stream_and_a_stream_changes_tables_once(
    two: ivme.SparkDatabase, spark: SparkSession, tmp_path: Path
) -> None:
    followed = two.changes("c3").writeStream.format("memory").queryName("c3_changes").start()
    before = two.view("c3").count()
    source = str(tmp_path / "in")
    frame = spark.createDataFrame([(300, 300, 1), (301, 301, 1)], "a long, b long, w long")
    frame.write.parquet(source)
    two.insert("S", [(300, 300)])
    two.insert("T", [(300, 300)])
    stream = spark.readStream.schema(frame.schema).parquet(source)
    query = two.stream("R", stream, name="r", weight="w")
    query.processAllAvailable()
    gone = frame.selectExpr("a", "b", "-w as w").filter("a = 301")
    gone.coalesce(1).write.mode("append").parquet(source)  # of two files, a batch may find only the first
    query.processAllAvailable()
    assert 1 == two.position("r")
    query.stop()
    again = two.stream("R", stream, name="r", weight="w")
    again.processAllAvailable()
    again.stop()
    assert before + 1 == two.view("c3").count()
    followed.processAllAvailable()
    followed.stop()
    assert [(300, 300, 300, 1)] == [tuple(row) for row in spark.sql("SELECT * FROM c3_changes").collect()]
    two.delete("R", [(300, 300)])
    two.delete("S", [(300, 300)])
    two.delete("T", [(300, 300)])
    with pytest.raises(PlanError, match="not a stream"):
        two.stream("R", frame)
    with pytest.raises(DataError, match="is a stream"):
        two.insert("R", stream)


def test_a_checkpoint_that_is_elsewhere_is_refused(spark: SparkSession) -> None:
    with pytest.raises(StorageError, match="is on ftp"):
        ivme.SparkDatabase(spark, 2, "ftp://bucket/key")
    with pytest.raises(SparkError, match="needs a checkpoint"):
        ivme.SparkDatabase(spark, 2)


def check_kills(db: ivme.SparkDatabase, embedded: ivme.Database, seed: int, batches: int) -> None:
    """Hosts die at random moments, and each batch counts once."""
    stop, chance = threading.Event(), random.Random(seed)
    started = [0]

    def kill() -> None:
        """Twice in a batch at most: a batch that fails more often is given up."""
        mine, kills = random.Random(seed), Counter[int]()
        while not stop.wait(0.3 + 2 * mine.random()):
            batch = started[-1]
            hosts: Any = db._cluster
            entry = hosts._registry.current().get(mine.randrange(2))
            if entry is not None and kills[batch] < 2:
                kills[batch] += 1
                os.kill(entry.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for number in range(batches):
            started.append(number)
            rows = [(chance.randrange(12), chance.randrange(12)) for _ in range(20)]
            for each in (db, embedded):
                with each.batch() as batch:
                    batch.insert("R", rows)
                    batch.insert("S", rows)
                    batch.delete("R", rows[:5])
    finally:
        stop.set()
        killer.join()
    check_same(db, embedded)


@pytest.mark.long
def test_a_killed_host_loses_and_doubles_nothing(two: ivme.SparkDatabase, embedded: ivme.Database) -> None:
    check_kills(two, embedded, 1, 4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_killed_hosts_lose_and_double_nothing(two: ivme.SparkDatabase, embedded: ivme.Database, seed: int) -> None:
    check_kills(two, embedded, seed, 10)


@pytest.mark.long
def test_hosts_end_with_their_database_and_everything_is_there_when_it_opens_again(
    two: ivme.SparkDatabase, spark: SparkSession, embedded: ivme.Database
) -> None:
    processes = [status["pid"] for status in two.status()]
    two.close()
    deadline = time.monotonic() + 60
    while any(_is_alive(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with ivme.SparkDatabase(spark, checkpoint=two.checkpoint.store.address) as again:
        assert sorted(embedded.view("revenue")) == sorted(again.view("revenue"))
        again.insert("R", [(1, 1)])
        again.view("triangles").verify()


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
