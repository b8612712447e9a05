"""Pipelines on one session: batches, sinks, quarantine, drift, restarts, and every place where a crash may happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ivme.errors import DataError, PipelineError, SchemaError, SparkError
from ivme.pipeline import read_pipeline
from ivme.pipeline.journal import RunJournal
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.events import Applied, Event, Refused
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.sink import DeltaWriter, ParquetChanges
from ivme.spark.pipeline.sinks import Sinks
from ivme.spark.pipeline.verify import verify_pipeline
from tests.example_counts import some_of
from tests.spark.flights import Flights


class Ran:
    """A pipeline that ran once: its events, and its views as they were then."""

    def __init__(self, spark: SparkSession, file: Path, *, verify: bool = False) -> None:
        self.events: list[Event] = []
        driver = Driver(spark, read_pipeline(file), self.events.append)
        try:
            run(driver, once=True)
            self.reached = driver.reached
            self.per_city = set(driver.database.view("per_city"))
            self.search = sorted(driver.database.view("search")(origin="London", dest="Zurich"))
            self.differences = [compared.differences for compared in verify_pipeline(driver)] if verify else []
        finally:
            driver.close()

    @property
    def refused(self) -> dict[str, str]:
        return {event.name: event.reason for event in self.events if isinstance(event, Refused)}

    @property
    def batches(self) -> list[Applied]:
        return [event for event in self.events if isinstance(event, Applied)]


def check(flights: Flights, ran: Ran) -> None:
    assert flights.per_city() == ran.per_city
    assert not any(ran.differences)
    flights.check_sinks()


def test_changes_reach_views_and_sinks_and_spark_agrees(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3))
    flights.change("2", ("insert", "E", 4, 5))
    ran = Ran(spark, flights.file, verify=True)
    check(flights, ran)
    assert [()] * 5 == ran.differences
    assert [("A",), ("D",)] == ran.search
    assert [(1, "routes", 3)] == [(batch.number, batch.source, batch.rows_in) for batch in ran.batches]


FUNCTIONS = """\
functions:
  larger: {call: "builtins:max", arguments: [int, int], returns: int}
"""

BLOCKS = """\
  legs:
    sql: SELECT DISTINCT src, dst FROM routes
  served:
    sql: |
      SELECT a.city, COUNT(r.no) AS n FROM airports a LEFT JOIN routes r ON r.src = a.id
      GROUP BY a.city HAVING COUNT(*) > 1
  unserved:
    sql: SELECT city FROM airports a WHERE NOT EXISTS (SELECT 1 FROM routes r WHERE r.dst = a.id)
  both:
    sql: SELECT src AS id FROM routes INTERSECT SELECT dst FROM routes
  above:
    sql: SELECT no, src + (SELECT COUNT(*) FROM airports) AS x FROM routes WHERE src > (SELECT AVG(dst) FROM routes)
  largest:
    sql: SELECT no, larger(src, dst) AS x FROM routes
  per_largest:
    sql: SELECT x, COUNT(*) AS n FROM largest GROUP BY x
  one_way:
    rule: Q(a, b) = routes(_, a, b), not routes(_, b, a); Q(a, b) = routes(no, a, b), no < 'B', a != b
  unreachable:
    rule: Q(a, b, n) = airports(a, _), airports(b, n), not closure(legs)(a, b), a < b
  legs_of:
    rule: Q(n, SUM(a * b)) = routes(_, a, b), airports(a, n)
  busiest:
    sql: SELECT src, COUNT(*) AS n FROM routes GROUP BY src ORDER BY n DESC, src LIMIT 2
"""


def test_views_of_several_blocks_are_what_spark_says(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    text = flights.file.read_text("utf-8").replace("sinks:\n", f"{BLOCKS}sinks:\n")
    flights.file.write_text(text.replace("views:\n", f"{FUNCTIONS}views:\n", 1), "utf-8")
    flights.change("1", ("insert", "D", 1, 2), ("delete", "B", 1, 3), ("insert", "G", 3, 1))
    ran = Ran(spark, flights.file, verify=True)
    check(flights, ran)
    assert [()] * 16 == ran.differences


def test_a_second_run_goes_on_where_the_first_was(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    assert 1 == Ran(spark, flights.file).reached
    flights.change("2", ("delete", "D", 1, 2), ("insert", "F", 3, 3))
    ran = Ran(spark, flights.file)
    check(flights, ran)
    assert [2] == [batch.number for batch in ran.batches]
    assert [] == Ran(spark, flights.file).batches


def test_verify_sees_a_view_that_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    Ran(spark, flights.file)
    driver = Driver(spark, read_pipeline(flights.file))
    try:
        driver.database.insert("routes", [("X", 2, 2)])
        found = {compared.name: compared.differences for compared in verify_pipeline(driver)}
    finally:
        driver.close()
    assert ["airports"] == [name for name, differences in found.items() if not differences]
    assert "('Zurich', 3, 'C') has 1 copy too many" in found["per_city"]
    assert "('Zurich', 'Zurich') has 1 copy too many" in found["pairs"]
    assert "('Zurich', 'Zurich', 'X') has 1 copy too many" in found["search"]
    assert "('X', 2, 2) has 1 copy too many" in found["routes"]


BAD: dict[str, tuple[Callable[[Flights], Any], str]] = {
    "a column too many": (
        lambda f: (f.folder / "changes/2.csv").write_text("op,no,src,dst,fare\ninsert,X,1,2,9\n"),
        "schema drift: the file 2.csv of table routes has fare besides",
    ),
    "a column too few": (
        lambda f: (f.folder / "changes/2.csv").write_text("op,no,src\ninsert,X,1\n"),
        "schema drift: the file 2.csv of table routes lacks dst",
    ),
    "bytes that are no text": (lambda f: (f.folder / "changes/2.csv").write_bytes(b"\xff\xfe\x00op"), "malformed"),
    "the content of another file": (
        lambda f: f.change("2", ("insert", "D", 1, 2), applied=False),
        "duplicate: it has the same content as 1.csv",
    ),
}


@pytest.mark.parametrize("kind", some_of(BAD, "a column too few", "the content of another file"))
def test_a_bad_file_is_quarantined_with_the_reason_and_the_rest_goes_on(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    make, reason = BAD[kind]
    flights = Flights(tmp_path, more=", duplicates: quarantine")
    flights.change("1", ("insert", "D", 1, 2))
    make(flights)
    flights.change("3", ("insert", "E", 2, 1))
    ran = Ran(spark, flights.file)
    assert ["2.csv"] == list(ran.refused)
    assert reason in ran.refused["2.csv"]
    check(flights, ran)
    kept = tmp_path / "flights.state/quarantine/routes"
    assert (tmp_path / "changes/2.csv").read_bytes() == (kept / "2.csv").read_bytes()
    assert ran.refused["2.csv"] in (kept / "2.csv.reason.txt").read_text()


BAD_ROWS = {
    "a value of another type": (
        "insert,X,one,2",
        "malformed: 1 row of 3, the first (of 2.csv): column src: 'one' is not of type int",
    ),
    "an unknown operation": ("upsert,X,1,2", "malformed: 1 row of 3, the first (of 2.csv): the operation upsert"),
    "a row too short": ("insert,X,1", "malformed: 1 row of 3, the first (of 2.csv): the row does not fit"),
}


@pytest.mark.parametrize("kind", some_of(BAD_ROWS, "a value of another type"))
def test_a_bad_row_is_quarantined_alone_with_its_text(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    line, reason = BAD_ROWS[kind]
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    (tmp_path / "changes/2.csv").write_text(f"op,no,src,dst\n{line}\ninsert,E,2,1\n")
    flights.routes["E", 2, 1] += 1
    ran = Ran(spark, flights.file)
    assert [True] == [found.startswith(reason) for found in ran.refused.values()], ran.refused
    check(flights, ran)
    (letters,) = (tmp_path / "flights.state/quarantine/routes").glob("rows-*.parquet")
    (letter,) = pq.read_table(letters).to_pylist()
    assert ("2.csv", 1) == (letter["ivme_source"], letter["ivme_batch"])
    assert "X" in letter["ivme_raw"]


def test_the_same_bad_file_stops_a_pipeline_that_is_told_to(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, head="on_bad: stop\n")
    flights.change("1", ("upsert", "X", 1, 2), applied=False)
    with pytest.raises(DataError, match=r"malformed: 1 row of 1, the first \(of 1\.csv\): the operation upsert"):
        Ran(spark, flights.file)
    flights.change("1", ("insert", "X", 1, 2))
    check(flights, Ran(spark, flights.file))


def test_a_late_file_and_a_file_that_was_changed_later_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path, more=", order: name")
    flights.change("5", ("insert", "D", 1, 2))
    Ran(spark, flights.file)
    flights.change("4", ("insert", "E", 1, 2), applied=False)
    flights.change("5", ("insert", "F", 1, 2), applied=False)
    ran = Ran(spark, flights.file)
    assert "late: files are applied in the order of names, and 5.csv" in ran.refused["4.csv"]
    assert "duplicate: a file named 5.csv with other content" in ran.refused["5.csv"]
    check(flights, ran)
    with pytest.raises(SparkError, match=r"5\.csv was changed after it was applied"):
        Ran(spark, flights.file, verify=True)


def test_files_are_applied_in_any_order_and_with_equal_content(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.change("5", ("insert", "D", 1, 2))
    Ran(spark, flights.file)
    flights.change("4", ("insert", "D", 1, 2))
    flights.change("10", ("delete", "D", 1, 2))
    ran = Ran(spark, flights.file)
    assert {} == ran.refused
    check(flights, ran)


def test_json_and_parquet_files_are_checked_for_drift_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "json").mkdir()
    flights = Flights(tmp_path / "json", format="json")
    changes = tmp_path / "json/changes"
    (changes / "1.json").write_text('{"op": "insert", "no": "D", "src": 1, "dst": 2}\n\n')
    (changes / "2.json").write_text('{"op": "insert", "no": "D", "src": 1, "dst": 2, "fare": 3}\n')
    (changes / "3.json").write_text('{"op": "insert", "no": "D", "src": 1}\n')
    (changes / "4.json").write_text('{"op": "insert", "no": "D", "src"\n')
    ran = Ran(spark, flights.file)
    (path,) = (tmp_path / "json/flights.state/quarantine/routes").glob("rows-*.parquet")
    reasons = {row["ivme_source"]: row["ivme_reason"] for row in pq.read_table(path).to_pylist()}
    assert ["2.json", "3.json", "4.json"] == sorted(reasons)
    assert "schema drift: the line has too much or lacks fare" in reasons["2.json"]
    assert "lacks dst" in reasons["3.json"]
    assert "malformed" in reasons["4.json"]
    assert [("A",), ("D",)] == ran.search

    (tmp_path / "parquet").mkdir()
    flights = Flights(tmp_path / "parquet", format="parquet")
    rows = pa.table({"op": ["insert"], "no": ["D"], "src": [1], "dst": [2]})
    changes = tmp_path / "parquet/changes"
    pq.write_table(rows, changes / "1.parquet")
    pq.write_table(rows.set_column(2, "src", pa.array([1.5])), changes / "2.parquet")
    pq.write_table(rows.drop_columns(["dst"]), changes / "3.parquet")
    (changes / "4.parquet").write_bytes(b"PAR1 not really")
    ran = Ran(spark, flights.file)
    assert "column src of the file 2.parquet of table routes is double now" in ran.refused["2.parquet"]
    assert "lacks dst" in ran.refused["3.parquet"]
    assert "is not a Parquet file" in ran.refused["4.parquet"]
    assert [("A",), ("D",)] == ran.search


def test_a_source_to_load_from_that_lacks_a_column_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    pq.write_table(pa.table({"id": [1], "town": ["London"]}), tmp_path / "airports.parquet")
    with pytest.raises(SchemaError, match="the source of table airports lacks city"):
        Ran(spark, flights.file)


def test_a_table_that_is_declared_otherwise_than_its_state_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    Ran(spark, flights.file)
    flights.file.write_text(flights.file.read_text().replace("    primary_key: id\n", ""))
    with pytest.raises(PipelineError, match=r"flights\.yml:7:5: table airports: its key or promises differ"):
        Ran(spark, flights.file)


def test_a_view_that_was_written_anew_is_built_anew(spark: SparkSession, tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    Ran(spark, flights.file)
    flights.file.write_text(flights.file.read_text().replace("MIN(r.no) AS first", "MAX(r.no) AS first"))
    assert {("London", 2, "B"), ("Zurich", 2, "C")} == Ran(spark, flights.file).per_city


def test_a_sink_that_another_state_wrote_to_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    import shutil

    flights = Flights(tmp_path)
    Ran(spark, flights.file)
    shutil.rmtree(tmp_path / "flights.state")
    with pytest.raises(SparkError, match="has rows that this pipeline's state did not write"):
        Ran(spark, flights.file)


class CrashError(BaseException):
    """Stands for the end of the process: nobody catches it."""


CRASHES: dict[str, tuple[type, str, bool]] = {
    "before the batch is planned": (RunJournal, "plan", False),
    "after the batch is planned": (RunJournal, "plan", True),
    "after the database has it": (Sinks, "write", False),
    "before the first sink": (ParquetChanges, "write", False),
    "between two sinks": (DeltaWriter, "write", False),
    "after the last sink": (DeltaWriter, "write", True),
    "before the journal knows that the sinks have it": (RunJournal, "wrote", False),
    "after the journal knows": (RunJournal, "wrote", True),
}


@pytest.mark.parametrize("place", some_of(CRASHES, "after the database has it", "between two sinks"))
def test_a_crash_loses_nothing_and_does_nothing_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    flights = Flights(tmp_path, more=", files_per_batch: 1")
    flights.change("1", ("insert", "D", 1, 2))
    Ran(spark, flights.file)
    flights.change("2", ("insert", "E", 2, 1), ("delete", "A", 1, 2))
    flights.change("3", ("insert", "F", 1, 2))
    kind, name, after = CRASHES[place]
    original = getattr(kind, name)

    def crash(*arguments: Any) -> None:
        if after:
            original(*arguments)
        raise CrashError

    driver = Driver(spark, read_pipeline(flights.file))
    with monkeypatch.context() as broken:
        broken.setattr(kind, name, crash)
        with pytest.raises(CrashError):
            run(driver, once=True)
    driver.close()
    check(flights, Ran(spark, flights.file))
