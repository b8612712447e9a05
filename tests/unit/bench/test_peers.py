"""The harness of peers: equal answers before times, honest reports, and the triggers that SQLite gets."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from benchmarks.peers import report
from benchmarks.peers.__main__ import PEERS, main
from benchmarks.peers.contenders import DuckDb, Ivme, Sqlite, canonical
from benchmarks.peers.missing import MissingError
from benchmarks.peers.pathway_peer import pathway_version
from benchmarks.peers.plots import drawings
from benchmarks.peers.race import Result, race
from benchmarks.peers.sizes import TINY
from benchmarks.peers.summary import short_table
from benchmarks.peers.triggers import kept_query, trigger_statements
from benchmarks.peers.workload import Table, Workload, toggled
from benchmarks.peers.workloads import hub_toggles, join_counts, makers, reachability
from ivme.bench.peers import checkout
from ivme.cli import app
from ivme.errors import IvmeError

TRIANGLES = "SELECT COUNT(*) AS n FROM E x, E y, E z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a"
GROUPED = "SELECT x.a, COUNT(*) AS n, SUM(y.b) AS total FROM E x JOIN E y ON x.b = y.a WHERE x.a > 0 GROUP BY x.a"


def result(ratio: float) -> Result:
    return Result("join-count-1", "join count", 10, "DuckDB, recompute", "s", (ratio,) * 5, (1.0,) * 5)


def made(*results: Result) -> report.Report:
    return report.Report("2026-11-15", "a machine", {"ivme": "0"}, "tiny", results, (("pydbsp", "not there"),))


@pytest.mark.slow
@pytest.mark.parametrize("make", [join_counts, hub_toggles, reachability], ids=lambda make: make.__name__)
def test_ivme_duckdb_and_sqlite_take_part_in_a_tiny_run_with_equal_answers(make: Any) -> None:
    for workload in make(TINY):
        results = race(workload, [Ivme, DuckDb, Sqlite], TINY.seconds)
        assert 2 == len(results)
        assert all(len(each.theirs) == len(each.ours) >= 5 for each in results)


def test_a_contender_with_another_answer_stops_the_race_before_a_clock_runs() -> None:
    class Wrong(DuckDb):
        def answer(self, request: Any) -> Any:
            return [(n + 1,) for (n,) in super().answer(request)]

    workload = next(join_counts(TINY))
    with pytest.raises(AssertionError, match="DuckDB, recompute and ivme differ"):
        race(workload, [Ivme, Wrong], 1)


def test_a_slow_contender_takes_one_pair_of_rounds_a_turn_and_ends_with_the_same_answer(monkeypatch: Any) -> None:
    applied: dict[str, int] = {}

    class Counted(DuckDb):
        def apply(self, round_: Any) -> None:
            applied["rounds"] = applied.get("rounds", 0) + 1
            super().apply(round_)

    (workload,) = (w for w in join_counts(replace(TINY, single_rounds=22, turn=4)) if w.turn > 1)
    monkeypatch.setattr("benchmarks.peers.race.SLOW", 0.0)
    (found,) = race(workload, [Ivme, Counted], 1)
    # two checked rounds, then one pair of the four rounds in each of five turns
    assert 2 + 5 * 2 == applied["rounds"]
    assert 5 == len(found.theirs) == len(found.ours)


def test_too_few_turns_are_refused() -> None:
    workload = next(join_counts(TINY))
    with pytest.raises(ValueError, match="5 are needed"):
        race(replace(workload, rounds=workload.rounds[:4]), [Ivme, DuckDb], 1)


EDGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=25)


@cache
def kept(query: str) -> tuple[list[str], str]:
    """The statements that make the triggers for a query over one table of edges, and the one that reads the result."""
    edges = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    table = Table("E", {"a": "int", "b": "int"}, ("a", "b"))
    workload = Workload("k", "t", query, (table,), {"E": edges}, toggled([{"E": edges}], present=False), triggers=query)
    return trigger_statements(workload), kept_query(workload)


@pytest.mark.parametrize("query", [TRIANGLES, GROUPED], ids=["triangles", "grouped"])
@settings(deadline=None, max_examples=40)
@given(loaded=EDGES, stream=EDGES)
def test_the_triggers_keep_what_sqlite_computes_anew(query: str, loaded: list[Any], stream: list[Any]) -> None:
    """Each edge of the stream comes if it is not there, and goes if it is; loops make a row occur twice in a join."""
    statements, read = kept(query)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE E (a, b)")
    connection.executemany("INSERT INTO E VALUES (?, ?)", sorted(set(loaded)))
    for statement in statements:
        connection.execute(statement)
    there = set(loaded)
    for edge in stream:
        coming = edge not in there
        connection.execute("INSERT INTO E VALUES (?, ?)" if coming else "DELETE FROM E WHERE a = ? AND b = ?", edge)
        there ^= {edge}
        assert canonical(connection.execute(query).fetchall()) == canonical(connection.execute(read).fetchall())
    connection.close()


@pytest.mark.slow
def test_a_run_writes_json_markdown_and_html_and_names_who_was_left_out(tmp_path: Path) -> None:
    main(["--size", "tiny", "--only", "access", "--peers", "duckdb", "sqlite", "--out", str(tmp_path)])
    stored = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert {"DuckDB, recompute", "SQLite, indexed query"} == {each["peer"] for each in stored["results"]}
    assert set(PEERS) - {"duckdb", "sqlite"} == {name for name, _ in stored["missing"]}
    page, drawn = (tmp_path / "report.html").read_text("utf-8"), (tmp_path / "report.md").read_text("utf-8")
    assert "graphs.svg" in drawn
    assert "<svg" in page
    for text in (page, drawn):
        assert stored["machine"] in text
        assert all(f"{name}: it was not asked for" in text for name, _ in stored["missing"])


def test_a_report_is_the_same_after_it_was_stored() -> None:
    found = made(result(3.0), result(0.5))
    assert found == report.from_json(report.to_json(found))


def test_runs_of_some_workloads_are_combined_and_say_which_peers_are_of_which_run() -> None:
    spark = replace(result(2.0), workload="spark-refresh", peer="Spark, recompute")
    first = made(result(2.0), spark)
    second = replace(made(result(3.0)), date="2026-11-18")
    found = report.combined([first, second])
    assert (result(3.0), spark) == found.results
    assert "2026-11-18 (beside DuckDB), 2026-11-15 (beside Spark)" == found.date
    assert second == report.combined([made(result(2.0)), second])


def test_a_row_that_ivme_loses_stays_in_all_forms() -> None:
    found = made(result(0.25))
    assert "0.25 (0.25–0.25)" in report.markdown(found, [])
    assert "class=lost" in report.html_page(found, [])
    assert "| join count | 0.25 |" in short_table(found, "peers.md")
    picture = drawings(found)["joins"]
    assert all(text in picture for text in ("join count", "DuckDB, recompute", "ivme loses"))


def test_the_first_page_shows_the_largest_refresh_on_spark_over_its_whole_path() -> None:
    stream = "through the stream"
    titles = (
        f"join, 10 rows, 1.0% changed, {stream}",
        f"big join, 99 rows, 1.0% changed, {stream}",
        "big join, 1.0% changed",
    )
    results = [
        replace(result(ratio), title=title, rows=rows, peer="Spark SQL, recompute")
        for title, rows, ratio in zip(titles, (10, 99, 99), (3.0, 0.5, 7.0), strict=True)
    ]
    picture = drawings(made(*results))["refresh"]
    assert "big join, 99 rows" in picture
    assert "0.50 times as fast" in picture
    assert "7.0" not in picture
    assert "refresh" not in drawings(made(result(3.0)))


def test_the_short_table_shows_the_worst_and_the_best_query_and_a_column_for_each_share() -> None:
    given = {"TPC-H Q3, one row": 0.5, "TPC-H Q5, one row": 20.0, "TPC-H Q10, one row": 3.0}
    queries = [replace(result(ratio), title=title) for title, ratio in given.items()]
    spark = [
        replace(result(ratio), title=f"join, 10 rows, {share} changed", peer="Spark SQL, recompute")
        for share, ratio in (("0.1%", 40.0), ("1.0%", 0.9))
    ]
    stream = replace(result(4.0), title="join as a stream", peer="Spark's own streaming")
    lines = short_table(made(*queries, *spark, stream), "peers.md").splitlines()
    assert "| TPC-H Q3, Q5, Q10, one row | 0.50 to 20 |" in lines
    assert "| on Spark, beside recomputing the same SQL | 0.1% changed | 1.0% changed |" in lines
    assert "| join, 10 rows | 40 | 0.90 |" in lines
    assert "The join as a stream: 4.0 times as fast as Spark's own streaming of the same SQL." in lines


def test_a_system_has_one_column_of_the_short_table_with_the_fastest_of_its_ways() -> None:
    ways = [replace(result(ratio), peer=f"PostgreSQL, {way}") for way, ratio in (("query", 8.0), ("REFRESH", 5.0))]
    lines = short_table(made(*ways), "peers.md").splitlines()
    assert "|  | PostgreSQL |" in lines
    assert "| join count | 5.0 |" in lines


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(SystemExit):
        main(["--size", "tiny", "--only", "hubs", "--peers", "sqlite", "--out", str(tmp_path / "file" / "report")])
    found = capsys.readouterr()
    assert "the report cannot go to" in found.err
    assert "loaded" not in found.out


def test_the_ratio_compares_medians_and_the_spread_has_the_quartiles() -> None:
    each = Result("k", "t", 1, "p", "s", (2.0, 4.0, 6.0, 8.0, 100.0), (2.0, 2.0, 2.0, 2.0, 2.0))
    # medians 6 and 2; the ratios are 1, 2, 3, 4, 50
    assert 3.0 == each.ratio
    assert (2.0, 4.0) == each.spread


def test_the_table_goes_between_its_marks_and_nowhere_else() -> None:
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter"
    assert f"before\n{report.BEGIN}\n\nnew\n\n{report.END}\nafter" == report.replaced(page, "new")
    with pytest.raises(ValueError, match="has no"):
        report.replaced("a page without", "new")


def test_tpch_is_split_into_loaded_rows_and_rounds_that_leave_them_as_they_were() -> None:
    from benchmarks.peers.tpch_workloads import split

    tables = {"a": pa.table({"x": range(60)}), "b": pa.table({"y": range(30)})}
    loaded, parts = split(tables, 10, 10, 3)
    ends = {name: sorted(v for part in parts if name in part for v in part[name][0].to_pylist()) for name in tables}
    assert 30 == sum(len(values) for values in ends.values())
    for name, values in ends.items():
        assert not set(values) & set(loaded[name][0].to_pylist())
    assert [1] * 5 == [sum(rows.num_rows for rows in part.values()) for part in split(tables, 10, 1, 5)[1]]


def test_a_python_without_pathway_is_missing_with_the_reason() -> None:
    with pytest.raises(MissingError, match="does not run"):
        pathway_version("/nowhere/python")


def test_the_command_needs_a_checkout_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(IvmeError, match="checkout of ivme"):
        checkout([tmp_path])
    assert (checkout() / "benchmarks" / "peers").is_dir()


def test_the_command_refuses_names_it_does_not_know(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["bench", "peers", "--only", "joins", "--out", str(tmp_path)])
    assert 2 == ran.exit_code
    assert "there is no joins; there are join-count" in ran.output


def test_the_command_runs_a_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers import __main__ as harness

    given: list[list[str]] = []
    monkeypatch.setattr(harness, "main", given.append)
    ran = CliRunner().invoke(
        app, ["bench", "peers", "--quick", "--only", "hubs,access", "--peers", "duckdb", "--out", str(tmp_path)]
    )
    assert 0 == ran.exit_code, ran.output
    assert [["--out", str(tmp_path), "--quick", "--only", "hubs", "access", "--peers", "duckdb"]] == given


def test_there_are_eight_workloads() -> None:
    from benchmarks.peers.__main__ import WORKLOADS

    assert 8 == len(WORKLOADS)
    assert set(makers(TINY, Path(), Path())) < set(WORKLOADS)
