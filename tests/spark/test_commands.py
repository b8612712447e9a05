"""The commands on a pipeline, in this process and on the tests' session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ivme.cli import app
from ivme.demo.network import AIRPORTS, CHANGES, FILES, ROUTES, make_network
from ivme.demo.pipeline import VIEWS, pipeline_text
from ivme.pipeline import read_pipeline
from tests.spark.flights import Flights


def ivme(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("spark")
def test_run_and_verify_say_what_they_did(tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.change("1", ("insert", "D", 1, 2))
    flights.change("2", ("upsert", "E", 1, 2), applied=False)
    ran = ivme("run", flights.file, "--once")
    assert 0 == ran.exit_code, ran.output
    assert "malformed: 1 row of 2, the first (of 2.csv): the operation upsert" in " ".join(ran.output.split())
    assert "1 batch, 1 row in" in ran.output
    verified = ivme("verify", flights.file)
    assert 0 == verified.exit_code, verified.output
    assert 5 == verified.output.count(": equal, ")
    (tmp_path / "routes.csv").write_text("no,src,dst\nA,1,2\n")
    wrong = ivme("verify", flights.file)
    assert 1 == wrong.exit_code
    assert "per_city: DIFFERS" in wrong.output
    assert "airports: equal" in wrong.output


def test_explain_needs_no_spark_and_shows_the_flow_and_each_view(tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    shown = ivme("explain", flights.file)
    assert 0 == shown.exit_code, shown.output
    assert (
        f"table routes, loaded from csv {tmp_path}/routes.csv, changed by directory {tmp_path}/changes" in shown.output
    )
    assert "view search → changes to delta" in shown.output
    assert 3 == shown.output.count("strategy  ")
    found = json.loads(ivme("explain", flights.file, "--json").output)
    assert ["per_city", "pairs", "search"] == list(found["views"])


def test_a_wrong_file_is_told_with_its_place_and_exit_code_2(tmp_path: Path) -> None:
    flights = Flights(tmp_path)
    flights.file.write_text(
        flights.file.read_text().replace("format: parquet, path: airports", "fromat: csv, path: air")
    )
    for command in ("run", "verify", "explain"):
        result = ivme(command, flights.file)
        assert (2, "") == (result.exit_code, result.stdout)
        assert f"ivme: {flights.file}:9:20: tables.airports.load has an unknown field fromat" in result.stderr


def test_a_demo_that_is_not_there_is_told_which_are() -> None:
    assert "there are first, gallery and flights" in ivme("demo", "trains").stderr


def test_the_flight_network_is_the_same_every_time_and_its_pipeline_is_valid(tmp_path: Path) -> None:
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    one, other = make_network(tmp_path / "data"), make_network(tmp_path / "again")
    assert one.routes.read_bytes() == other.routes.read_bytes()
    routes = pq.read_table(one.routes).to_pylist()
    assert (ROUTES, AIRPORTS) == (len(routes), pc.read_csv(one.airports).num_rows)
    files = sorted(one.waiting.iterdir())
    assert FILES == len(files)
    changes = [change for file in files for change in pc.read_csv(file).to_pylist()]
    assert FILES * CHANGES == len(changes)
    deleted = [tuple(c.values())[1:] for c in changes if c["op"] == "delete"]
    assert len(set(deleted)) == len(deleted)
    assert set(deleted) <= {tuple(route.values()) for route in routes}
    night = sum(route["night"] for route in routes)
    assert AIRPORTS / 3 < night < AIRPORTS, "so many that some airports reach many, so few that others reach none"
    assert {True, False} == {change["night"] for change in changes}
    (tmp_path / "flights.yml").write_text(pipeline_text(), "utf-8")
    assert [view.name for view in VIEWS] == [view.name for view in read_pipeline(tmp_path / "flights.yml").views]
