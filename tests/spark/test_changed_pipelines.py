"""Pipelines whose file changes between two runs, and changes of which some cannot be taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivme.database import Database
from ivme.errors import DataError, PipelineError, SparkError
from ivme.pipeline.journal import Planned
from ivme.pipeline.read import read_pipeline
from ivme.shards.database import ShardedDatabase
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Applied, Event, Refused
from ivme.spark.pipeline.redelivery import Redelivered, redeliver
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline
from tests.spark.flights import Flights, net

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.xdist_group("spark")


def ran(spark: Any, file: Path) -> tuple[list[Event], Driver]:
    """The events of a run, and the driver, which is closed but for its answers."""
    events: list[Event] = []
    driver = Driver(spark, read_pipeline(file), events.append)
    try:
        run(driver, once=True)
        assert not any(compared.differences for compared in verify_pipeline(driver))
    finally:
        driver.close()
    return events, driver


def test_a_table_that_is_added_is_loaded_and_its_views_and_sinks_with_it(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    ran(spark, flights.file)
    pq.write_table(pa.table({"no": ["A", "A", "C"], "fare": [7, 8, 9]}), tmp_path / "fares.parquet")
    text = flights.file.read_text()
    text = text.replace(
        "views:\n",
        "  fares:\n    columns: {no: string, fare: int}\n    load: {format: parquet, path: fares.parquet}\n"
        "views:\n  cheapest:\n    sql: SELECT no, MIN(fare) AS fare FROM fares GROUP BY no\n",
    )
    flights.file.write_text(text + "  cheap: {view: cheapest, format: parquet, path: out/cheap}\n")
    flights.change("2", ("insert", "E", 2, 1))

    events, _ = ran(spark, flights.file)

    assert ["fares", "routes"] == [event.source for event in events if isinstance(event, Applied)]
    changes = pa.concat_tables(
        pq.ParquetFile(path).read() for path in sorted((tmp_path / "out/cheap").glob("*/changes.parquet"))
    )
    assert {("A", 7): 1, ("C", 9): 1} == net(changes, ("no", "fare"))
    flights.check_sinks()
    events, _ = ran(spark, flights.file)
    assert [] == [event for event in events if isinstance(event, Applied)]


@pytest.mark.long
def test_a_view_that_is_written_otherwise_brings_its_sinks_along(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    ran(spark, flights.file)
    _rewrite(flights)
    flights.change("1", ("insert", "D", 1, 2))
    ran(spark, flights.file)
    assert _expected(flights) == flights.counted()
    assert set(_expected(flights)) == flights.now()


@pytest.mark.parametrize(
    "point",
    [
        "after some sinks",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("before the sinks", "before the views are noted")),
    ],
)
def test_a_crash_while_sinks_are_brought_along_loses_nothing(
    spark: Any, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path)
    ran(spark, flights.file)
    _rewrite(flights)
    with monkeypatch.context() as patched:
        _crash_at(point, patched)
        with pytest.raises(_CrashError):
            ran(spark, flights.file)
    flights.change("1", ("insert", "D", 1, 2))
    ran(spark, flights.file)
    assert _expected(flights) == flights.counted()
    assert set(_expected(flights)) == flights.now()


class _CrashError(Exception):
    pass


def _crash_at(point: str, patched: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise _CrashError

    if point == "before the sinks":
        patched.setattr(Sinks, "write_difference", crash)
    elif point == "after some sinks":
        patched.setattr(Sinks, "_write_rows", crash)
    else:
        whole = Sinks.write_difference

        def then_crash(self: Sinks, *given: Any) -> None:
            whole(self, *given)
            raise _CrashError

        patched.setattr(Sinks, "write_difference", then_crash)


def _rewrite(flights: Flights) -> None:
    text = flights.file.read_text()
    flights.file.write_text(text.replace("GROUP BY a.city", "WHERE a.city <> 'Oslo' AND r.no <> 'C' GROUP BY a.city"))


def _expected(flights: Flights) -> dict[tuple[str, int, str], int]:
    found: dict[str, list[str]] = {}
    for no, src, _ in flights.routes.elements():
        if no != "C" and src in (1, 2, 4):
            found.setdefault({1: "London", 2: "Zurich", 4: "London"}[src], []).append(no)
    return {(city, len(names), min(names)): 1 for city, names in found.items()}


def test_a_view_with_other_columns_is_refused_for_a_sink_of_changes(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    ran(spark, flights.file)
    text = flights.file.read_text()
    flights.file.write_text(text.replace("COUNT(*) AS n,", "COUNT(*) AS n, MAX(r.no) AS last,"))
    with pytest.raises(PipelineError, match=r"sink counts: has changes of view per_city .* another name"):
        ran(spark, flights.file)
    flights.file.write_text(text)
    ran(spark, flights.file)
    flights.check_sinks()


def test_a_sink_that_moves_is_refused_under_its_old_name(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    ran(spark, flights.file)
    text = flights.file.read_text().replace("path: out/counts", "path: out/others")
    flights.file.write_text(text)
    with pytest.raises(PipelineError, match="give it another name"):
        ran(spark, flights.file)


def test_folders_of_partitions_give_their_values_to_rows(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path, format="parquet")
    layout = "op string, no string, src long, dst long"
    rows = spark.createDataFrame([("insert", f"N{i}", i % 3 + 1, 2) for i in range(9)], layout)
    rows.write.partitionBy("src").parquet(str(tmp_path / "changes" / "first"))
    flights.routes.update((f"N{i}", i % 3 + 1, 2) for i in range(9))
    ran(spark, flights.file)
    flights.check_sinks()
    rows.limit(2).write.partitionBy("src", "dst").mode("append").parquet(str(tmp_path / "changes" / "first"))
    flights.routes.update((row.no, row.src, row.dst) for row in rows.limit(2).collect())
    events, _ = ran(spark, flights.file)
    assert [] == [event for event in events if isinstance(event, Refused)]
    flights.check_sinks()


def test_one_bad_row_stops_no_other(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    new = [("insert", f"N{i}", 1, 2) for i in range(40)]
    flights.change("1", *new)
    flights.change("2", ("delete", "nobody", 1, 2), ("delete", "nothing", 1, 2), applied=False)
    with (tmp_path / "changes/2.csv").open("a") as file:
        file.write("insert,Z,2,3\n")
    flights.routes["Z", 2, 3] += 1

    events, driver = ran(spark, flights.file)

    (refused,) = [event for event in events if isinstance(event, Refused)]
    assert refused.reason.startswith(
        "not applicable: 2 rows of 43, the first (of 2.csv): cannot delete ('nobody', 1, 2)"
    )
    (letters,) = driver.quarantine.letters("routes", 10)
    found = pq.read_table(letters).to_pylist()
    assert [("nobody", -1), ("nothing", -1)] == sorted((row["no"], row["ivme_weight"]) for row in found)
    assert all("cannot delete" in row["ivme_reason"] for row in found)
    flights.check_sinks()


def _waiting(spark: Any, flights: Flights) -> Driver:
    """A pipeline with two deletes of what is not there in quarantine, one of which can be taken later."""
    flights.change("1", ("delete", "later", 1, 2), ("delete", "never", 1, 2), applied=False)
    ran(spark, flights.file)
    flights.change("2", ("insert", "later", 1, 2), applied=False)
    return Driver(spark, read_pipeline(flights.file))


@pytest.mark.long
def test_rows_are_taken_again_once_they_can_be(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    driver = _waiting(spark, flights)
    run(driver, once=True)
    assert Redelivered("routes", 1, 1) == redeliver(driver, "routes")
    assert Redelivered("routes", 0, 1) == redeliver(driver, "routes")
    (path,) = driver.quarantine.letters("routes", driver.reached)
    assert ["never"] == pq.read_table(path).column("no").to_pylist()
    driver.close()
    flights.check_sinks()
    ran(spark, flights.file)


@pytest.mark.parametrize("point", [pytest.param("before", marks=pytest.mark.long), "after"])
def test_a_crash_while_rows_are_taken_again_loses_nothing(
    spark: Any, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path)
    driver = _waiting(spark, flights)
    run(driver, once=True)

    def crash(*_: object, **__: object) -> int:
        raise _CrashError

    with monkeypatch.context() as patched:
        patched.setattr(*((Driver, "apply", crash) if point == "before" else (Sinks, "write", crash)))
        with pytest.raises(_CrashError):
            redeliver(driver, "routes")
    driver.close()
    driver = Driver(spark, read_pipeline(flights.file))
    assert Redelivered("routes", int(point == "before"), 1) == redeliver(driver, "routes")
    driver.close()
    flights.check_sinks()
    ran(spark, flights.file)


def test_a_redelivered_key_is_set_aside_alone(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    text = flights.file.read_text().replace(
        "load: {format: parquet, path: airports.parquet}",
        "load: {format: parquet, path: airports.parquet}\n    changes: {directory: more, format: csv}",
    )
    flights.file.write_text(text)
    (tmp_path / "more").mkdir()
    lines = [f"{i},Bern\n" for i in range(10, 50)]
    (tmp_path / "more/1.csv").write_text("id,city\n" + "".join(lines) + "3,Oslo\n")
    events, driver = ran(spark, flights.file)
    (refused,) = [event for event in events if isinstance(event, Refused)]
    assert "1 row of 41" in refused.reason
    assert [3] == pq.read_table(driver.quarantine.letters("airports", 10)[0]).column("id").to_pylist()


@pytest.mark.long
def test_a_crash_after_rows_were_set_aside_gives_sinks_the_rest(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path)
    ran(spark, flights.file)
    flights.change("1", ("insert", "D", 1, 2))
    with (tmp_path / "changes/1.csv").open("a") as file:
        file.write("delete,nobody,1,2\n")

    def crash(*_: object) -> int:
        raise _CrashError

    with monkeypatch.context() as patched:
        patched.setattr(Sinks, "write", crash)
        with pytest.raises(SparkError):
            ran(spark, flights.file)
    ran(spark, flights.file)
    flights.check_sinks()


def test_a_pipeline_that_stops_at_bad_changes_takes_none_of_the_batch(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head="on_bad: stop\n")
    flights.change("1", ("insert", "D", 1, 2), ("delete", "nobody", 1, 2), applied=False)
    with pytest.raises(DataError, match=r"a batch of table routes cannot be applied: not applicable: cannot delete"):
        ran(spark, flights.file)


def test_files_that_were_applied_are_not_read_again_at_a_start(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    driver = Driver(spark, read_pipeline(flights.file))
    run(driver, once=True)
    driver.close()

    def refuse(path: Path) -> str:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("ivme.spark.pipeline.directory.digest", refuse)
    driver = Driver(spark, read_pipeline(flights.file))
    assert driver.sources["routes"].next_plan() is None
    assert isinstance(driver.journal.last(), Planned)
    driver.close()


def test_an_applied_file_may_be_archived(spark: Any, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    path = flights.change("1", ("insert", "D", 1, 2))
    ran(spark, flights.file)
    path.unlink()
    flights.change("2", ("insert", "E", 1, 2))
    driver = Driver(spark, read_pipeline(flights.file))
    run(driver, once=True)
    found = {compared.name: compared for compared in verify_pipeline(driver)}
    driver.close()
    assert "as the database has it: 1 of its files are gone" == found["routes"].note
    assert not any(compared.differences for compared in found.values())
    flights.check_sinks()


def test_a_load_goes_past_the_limit_of_results(spark: Any, tmp_path: Path) -> None:
    """Rows that are loaded come as files: a result of a job would be all that Spark's driver keeps at once."""
    flights = Flights(tmp_path)
    flights.load([(f"N{i:09d}", i % 5 + 1, i % 3 + 1) for i in range(2000)])

    def refuse(_: object) -> None:
        raise AssertionError("it was collected")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(spark.range(1)), "toArrow", refuse)
        Driver(spark, read_pipeline(flights.file)).close()
    ran(spark, flights.file)
    flights.check_sinks()


def _fares(flights: Flights) -> None:
    """The pipeline with a column more, a wider one, and a view of both."""
    text = flights.file.read_text()
    text = text.replace("{no: string, src: int, dst: int}", '{no: string, src: int, dst: "decimal(19,0)", fare: int}')
    text = text.replace(
        "    load: {format: csv, path: routes.csv}\n",
        "    load: {format: csv, path: routes.csv}\n    defaults: {fare: 7}\n",
    )
    text = text.replace("JOIN airports b ON r.dst = b.id", "JOIN airports b ON CAST(r.dst AS BIGINT) = b.id")
    text = text.replace(
        "rule: Q(A, B) = routes(N, X, Y), airports(X, A), airports(Y, B)",
        "rule: Q(A) = routes(N, X, Y, F), airports(X, A)",
    )
    text = text.replace(
        "views:\n", "views:\n  fares:\n    sql: SELECT dst, SUM(fare) AS fare FROM routes GROUP BY dst\n"
    )
    flights.file.write_text(text + "  fares: {view: fares, mode: merge, format: delta, path: out/fares}\n")


_SHARDED = "engine: {shards: 2, hosts: 1}\n"
_POINTS = ("none", "add_column", "_write_rows")


@pytest.mark.parametrize(
    ("point", "engine"),
    [
        *(pytest.param(each, "", marks=pytest.mark.long) for each in _POINTS),
        *(pytest.param(each, _SHARDED, marks=pytest.mark.long) for each in (*_POINTS, "create_table")),
        ("create_table", ""),
    ],
)
def test_a_column_is_added_and_another_gets_wider(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, engine: str
) -> None:
    from deltalake import DeltaTable

    flights = Flights(tmp_path, head=engine)
    database = ShardedDatabase if engine else Database
    flights.change("1", ("insert", "D", 1, 2))
    ran(spark, flights.file)
    _fares(flights)
    (tmp_path / "changes/2.csv").write_text("op,no,src,dst,fare\ninsert,E,2,1,5\ndelete,A,1,2,7\n")
    flights.routes.update([("E", 2, 1)])
    flights.routes.subtract([("A", 1, 2)])

    def crash(*_: object, **__: object) -> None:
        raise _CrashError

    if point != "none":
        with monkeypatch.context() as patched:
            patched.setattr(Sinks if point == "_write_rows" else database, point, crash)
            with pytest.raises(_CrashError):
                ran(spark, flights.file)
    ran(spark, flights.file)
    flights.check_sinks()
    found = DeltaTable(str(tmp_path / "out/fares")).to_pyarrow_table().to_pylist()
    assert {(1, 5), (2, 7), (3, 21)} == {(int(row["dst"]), row["fare"]) for row in found}
