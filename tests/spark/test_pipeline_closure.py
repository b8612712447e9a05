"""Closures in a pipeline: kept beside the driver, and recomputed by Spark in rounds of joins."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ivme
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.recompute import closure_frame
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.verify import verify_pipeline
from tests.example_counts import some_of
from tests.graphs import closure_of
from tests.spark.flights import CITIES, Flights

MORE = """\
  onward:
    rule: Q(Y | X) = closure(early)(X, Y)
  connected:
    rule: Q(X, Y) = closure(early)
    graph: undirected
  cities:
    sql: SELECT a.city FROM pairs p JOIN airports a ON p.Y = a.id
    semantics: set
"""
VIEWS = """\
views:
  per_city:
    sql: SELECT a.city, COUNT(*) AS n, MIN(r.no) AS first FROM routes r JOIN airports a ON r.src = a.id GROUP BY a.city
  early:
    sql: SELECT src, dst FROM routes WHERE no < 'N'
  pairs:
    rule: Q(X, Y) = closure(early)
  reachable:
    sql: |
      WITH RECURSIVE reach(src, dst) AS (
        SELECT src, dst FROM early UNION SELECT r.src, e.dst FROM reach r JOIN early e ON r.dst = e.src
      )
      SELECT DISTINCT b.city FROM airports a JOIN reach r ON a.id = r.src JOIN airports b ON r.dst = b.id
      WHERE a.city = :city
{more}sinks:
  came: {{view: pairs, format: parquet, path: out/pairs}}
"""


@pytest.fixture(params=some_of(["", MORE], ""), ids=["two closures", "all"])
def flights(tmp_path: Path, request: pytest.FixtureRequest) -> Flights:
    made = Flights(tmp_path, more=", files_per_batch: 1")
    text = made.file.read_text()
    made.file.write_text(text[: text.index("views:")] + VIEWS.format(more=request.param))
    made.change("1", ("insert", "D", 3, 4), ("insert", "Z", 4, 5))
    made.change("2", ("insert", "E", 4, 1), ("delete", "B", 1, 3))
    made.change("3", ("delete", "C", 2, 3))
    return made


def test_closures_of_a_pipeline_follow_their_table_and_spark_recomputes_them(
    spark: SparkSession, flights: Flights
) -> None:
    driver = Driver(spark, read_pipeline(flights.file))
    try:
        run(driver, once=True)
        edges = [(src, dst) for no, src, dst in flights.routes.elements() if no < "N"]
        pairs = closure_of(edges, "digraph")
        assert len(pairs) > len(set(edges)), "there are paths of more than one flight"
        view = driver.database.view
        assert sorted(pairs) == sorted(view("pairs"))
        cities = {CITIES[dst] for src, dst in pairs if CITIES[src] == "London"}
        assert {(city,) for city in cities} == set(view("reachable")(city="London"))
        compared = {each.name: each for each in verify_pipeline(driver)}
        assert {} == {name: each.differences for name, each in compared.items() if each.differences}
        assert {len(pairs)} == {compared[name].rows for name in ("pairs", "onward") if name in compared}
        driver.database.insert("routes", [("F", 2, 5)])
        wrong = {each.name: each.differences for each in verify_pipeline(driver)}
        assert "(1, 5) has 1 copy too many" in wrong["pairs"]
        assert all(wrong[name] for name in ("onward", "connected") if name in wrong)
    finally:
        driver.close()


GRAPHS: dict[str, list[tuple[int, int]]] = {
    "nothing": [],
    "a cycle and a tail": [(1, 2), (2, 3), (3, 1), (3, 4), (3, 4)],
    "a path": [(i, i + 1) for i in range(4)],
    "a self-loop": [(1, 1), (2, 1)],
}


@pytest.mark.parametrize("name", some_of(GRAPHS, "a cycle and a tail"))
def test_spark_finds_the_closure_of_a_graph(spark: SparkSession, name: str) -> None:
    edges = GRAPHS[name]
    frame = spark.createDataFrame(edges, "a int, b int")
    found = [tuple(row) for row in closure_frame(frame).collect()]
    assert len(found) == len(set(found))
    assert closure_of(edges, "digraph") == set(found)
    both = [tuple(row) for row in closure_frame(frame, undirected=True).collect()]
    assert closure_of(edges, "undirected") == set(both)


def test_spark_goes_through_no_unknown_node_as_the_engine_does(spark: SparkSession) -> None:
    edges = [(None, 1), (1, 2), (2, 1), (2, None), (None, None)]
    frame = spark.createDataFrame(edges, "a int, b int")
    with ivme.Database() as database:
        database.create_table("edge", {"a": "int", "b": "int"})
        database.insert("edge", edges)
        for undirected, graph in ((False, "digraph"), (True, "undirected")):
            expected = Counter(database.create_view(graph, "Q(X, Y) = closure(edge)", graph=graph))
            assert expected == Counter(tuple(row) for row in closure_frame(frame, undirected=undirected).collect())
