"""A pipeline's views in Spark SQL: names of the catalog, filters, requests, DataFrames and streams of changes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import PipelineError
from ivme.spark.views.answers import answered
from ivme.spark.views.asking import Address, Question, ask
from ivme.spark.views.names import know_format, register_running
from tests.spark.flights import Flights

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def flights(tmp_path: Path) -> Flights:
    return Flights(tmp_path)


@pytest.fixture
def pipeline(spark: Any, flights: Flights) -> Iterator[ivme.Pipeline]:
    with ivme.Pipeline(flights.file, spark=spark) as opened:
        opened.register()
        yield opened
    spark.sql("DROP DATABASE ivme CASCADE")


def rows(spark: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


@pytest.mark.parametrize("batches", [1, pytest.param(3, marks=pytest.mark.long)])
def test_a_name_has_the_rows_of_the_last_batch_whenever_it_is_asked(
    spark: Any, flights: Flights, pipeline: ivme.Pipeline, batches: int
) -> None:
    """Defect 7: names, temporary views of DataFrames and of the format outlive changes and restarts."""
    pipeline.frame("per_city").createOrReplaceTempView("kept")
    state = flights.file.parent / "flights.state"
    options = f"state '{state}', view 'per_city'"
    spark.sql(f"CREATE TEMPORARY VIEW typed USING ivme_pipeline OPTIONS ({options})")
    names = ("ivme.per_city", "kept", "typed")
    for number in range(batches):
        for name in names:
            assert sorted(flights.per_city()) == rows(spark, f"SELECT * FROM {name}")
        flights.change(str(number), ("insert", f"N{number}", number + 1, 2), ("delete", "C", 2, 3))
        pipeline.run()
    other = spark.newSession()
    know_format(other)
    assert sorted(flights.per_city()) == rows(other, "SELECT * FROM ivme.per_city")
    pipeline.close()
    with pytest.raises(Exception, match="does not run, so its views cannot be read"):
        spark.sql("SELECT * FROM ivme.per_city").collect()
    with ivme.Pipeline(flights.file, spark=spark):
        for name in names:
            assert sorted(flights.per_city()) == rows(spark, f"SELECT * FROM {name}")
    for name in names[1:]:
        spark.catalog.dropTempView(name)


def test_filters_and_parameters_are_applied_in_the_pipeline(
    spark: Any, flights: Flights, pipeline: ivme.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Question] = []

    def noted(database: Any, question: Question) -> Any:
        assert database is pipeline.database
        asked.append(question)
        return answered(database, question)

    monkeypatch.setattr("ivme.spark.views.answers.answered", noted)
    expected = sorted(no for origin, dest, no in flights.search().elements() if (origin, dest) == ("London", "Zurich"))
    found = rows(spark, "SELECT no FROM ivme.search WHERE origin = 'London' AND dest = 'Zurich'")
    assert expected == [no for (no,) in found]
    assert [{"origin": "London", "dest": "Zurich"}] == asked[-1].requests
    found = rows(spark, "SELECT * FROM ivme.search WHERE origin IN ('London', 'Zurich') AND dest = 'Oslo' AND no > 'B'")
    wanted = [row for row in flights.search().elements() if row[0] != "Oslo" and row[1] == "Oslo" and row[2] > "B"]
    assert sorted(wanted) == found
    assert 2 == len(asked[-1].requests)
    assert {"GreaterThan", "In"} <= {condition.kind for condition in asked[-1].conditions}
    assert [("London", 2)] == rows(spark, "SELECT city, n FROM ivme.per_city WHERE city LIKE 'Lon%' AND n >= 2")
    assert {"StringStartsWith", "GreaterThanOrEqual"} <= {condition.kind for condition in asked[-1].conditions}
    with pytest.raises(Exception, match="answers requests for origin, dest: say WHERE dest = "):
        spark.sql("SELECT * FROM ivme.search WHERE origin = 'London'").collect()


@pytest.mark.long
def test_a_view_with_parameters_is_a_function_and_a_dataframe(spark: Any, pipeline: ivme.Pipeline) -> None:
    asked = "SELECT c.city, s.no FROM (VALUES ('London'), ('Zurich')) c(city), LATERAL ivme_search(c.city, 'Oslo') s"
    assert [("London", "B"), ("Zurich", "C"), ("Zurich", "C")] == rows(spark, asked)
    found = pipeline.frame("search", origin="London", dest="Zurich")
    assert ["no"] == found.columns
    assert [("A",)] == [tuple(row) for row in found.collect()]


@pytest.mark.long
def test_changes_are_a_stream_that_goes_on_where_it_was(
    flights: Flights, pipeline: ivme.Pipeline, tmp_path: Path
) -> None:
    net: Counter[tuple[Any, ...]] = Counter()

    def take(batch: Any, _number: int) -> None:
        for row in batch.collect():
            net[row.city, row.n, row.first] += row.ivme_weight

    for number in range(2):
        writer = pipeline.changes("per_city").writeStream.foreachBatch(take).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
        assert dict.fromkeys(flights.per_city(), 1) == +net
        flights.change(str(number), ("insert", f"N{number}", 3, 2))
        pipeline.run()
    changes = pipeline.changes("search")  # of a Delta table
    assert ["origin", "dest", "no", "ivme_weight", "ivme_batch"] == changes.columns
    with pytest.raises(PipelineError, match="has no sink of changes to read from"):
        pipeline.changes("pairs")


def test_names_that_cannot_be_are_told(spark: Any, flights: Flights, pipeline: ivme.Pipeline) -> None:
    assert {"per_city", "pairs", "search"} == register_running(spark, flights.file, "ivme").keys()
    spark.sql("CREATE DATABASE other")
    try:
        spark.sql("CREATE TABLE other.per_city (a INT) USING parquet")
        with pytest.raises(
            PipelineError, match=r"`other`.`per_city` is a table of the catalog and no view of a pipeline"
        ):
            pipeline.register("other")
    finally:
        spark.sql("DROP DATABASE other CASCADE")
    told = json.loads((flights.folder / "flights.state" / "answers.json").read_text())
    with pytest.raises(ivme.IvmeError, match="the token is not that of the pipeline"):
        ask(Address(told["place"], "no"), Question("per_city"))
    with pytest.raises(ivme.IvmeError, match="there is no view nothing"):
        ask(Address(**told), Question("nothing"))


_TYPED = """\
tables:
  r:
    columns: {id: int, s: string, d: "decimal(8,2)", b: bool, day: date, t: timestamp, f: float}
    load: {format: parquet, path: r.parquet}
views:
  v:
    sql: SELECT id, s, d, b, day, t, f FROM r
"""


@pytest.mark.parametrize("count", [3, pytest.param(300, marks=pytest.mark.long)])
def test_filters_mean_what_spark_means(spark: Any, tmp_path: Path, count: int) -> None:
    """Random conditions over columns of all types with NULL, asked of the name and of a plain copy."""
    made = spark.range(60).selectExpr(
        "id",
        "CASE WHEN id % 7 > 0 THEN concat(CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END, id % 5) END AS s",
        "CASE WHEN id % 5 > 0 THEN CAST(id % 4 + 0.25 AS decimal(8,2)) END AS d",
        "CASE WHEN id % 3 > 0 THEN id % 2 = 0 END AS b",
        "CASE WHEN id % 11 > 0 THEN date_add(DATE'2026-01-01', CAST(id % 6 AS int)) END AS day",
        "CASE WHEN id % 13 > 0 THEN TIMESTAMP_NTZ'2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id % 6) END AS t",
        "CASE WHEN id % 4 > 1 THEN id / 8 END AS f",
    )
    made.write.parquet(str(tmp_path / "r.parquet"))
    (tmp_path / "p.yml").write_text(_TYPED)
    chance = random.Random(7)
    with ivme.Pipeline(tmp_path / "p.yml", spark=spark) as pipeline:
        pipeline.register("typed_names")
        spark.read.parquet(str(tmp_path / "r.parquet")).createOrReplaceTempView("plain")
        for _ in range(count):
            condition = f" {chance.choice(['AND', 'AND', 'OR'])} ".join(_condition(chance) for _ in range(2))
            query = "SELECT id, s, d, b, day, t, coalesce(f, -1) AS f FROM {} WHERE {}"
            expected = sorted(map(str, spark.sql(query.format("plain", condition)).collect()))
            found = sorted(map(str, spark.sql(query.format("typed_names.v", condition)).collect()))
            assert expected == found, condition
    spark.sql("DROP DATABASE typed_names CASCADE")


def _condition(chance: random.Random) -> str:
    column, values = chance.choice(
        [
            ("id", ["7", "30", "-1", "9999999999"]),
            ("s", ["'a1'", "'b'", "''", "'a'"]),
            ("d", ["1.25", "0.25", "2", "99999.99"]),
            ("b", ["true", "false"]),
            ("day", ["DATE'2026-01-03'", "DATE'2020-01-01'"]),
            ("t", ["TIMESTAMP_NTZ'2026-01-01 03:00:00'", "TIMESTAMP_NTZ'1999-01-01 00:00:00'"]),
            ("f", ["double('NaN')", "1.5", "0.0"]),
        ]
    )
    value = chance.choice(values)
    forms = [f"{column} {op} {value}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")]
    forms += [f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} IN ({', '.join(values)})"]
    forms += [f"{column} NOT IN ({', '.join(values)})", f"{column} IN ({value}, NULL)", f"{column} <=> NULL"]
    if column == "s":
        forms += ["s LIKE 'a%'", "s LIKE '%1'", "s LIKE '%1%'", "s NOT LIKE 'b%'"]
    return chance.choice(forms)
