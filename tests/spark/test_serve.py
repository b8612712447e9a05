"""A pipeline that runs while its views are served."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ivme.cli import app
from ivme.pipeline import read_pipeline
from ivme.spark.pipeline.driver import Driver
from tests.serve.running import following
from tests.spark.flights import Flights


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def eventually(found: Callable[[], Any], wanted: Any) -> None:
    """Asks until the answer is what is wanted; a minute and a half is more than it ever takes."""
    until = time.monotonic() + 90
    last: Any = None
    while time.monotonic() < until:
        try:
            last = found()
        except httpx.TransportError as error:
            last = error
        if last == wanted:
            return
        time.sleep(0.05)
    raise AssertionError(f"{last!r} is not {wanted!r}")


class Visitor(threading.Thread):
    """Runs a function beside the server. The process is told to stop once: by the function, or because it failed."""

    def __init__(self, visit: Callable[[], None], number: signal.Signals) -> None:
        super().__init__()
        self._visit, self._number = visit, number
        self._told = False
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._visit()
        except BaseException as error:
            self._error = error
        finally:
            self.tell()

    def tell(self) -> None:
        if not self._told:
            self._told = True
            os.kill(os.getpid(), self._number)

    def check(self) -> None:
        self.join()
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pipeline_is_served_while_it_runs_and_both_stop_together(
    spark: Any, tmp_path: Path, number: signal.Signals
) -> None:
    flights = Flights(tmp_path)
    port = free_port()
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    ends: list[str] = []

    def search() -> set[str]:
        found = client.get("/views/search", params={"origin": "London", "dest": "Zurich"}).json()
        return {row[0] for row in found["rows"]}

    def visit() -> None:
        eventually(search, {"A"})
        flights.change("1", ("insert", "D", 1, 2), ("delete", "A", 1, 2))
        eventually(search, {"D"})
        assert {"pipeline": 1} == client.get("/stats").json()["sources"]
        assert 200 == client.get("/").status_code
        for path, body in (
            ("/tables/routes/changes", {"insert": [["E", 1, 2]]}),
            ("/batch", {"changes": {"airports": {"insert": [[9, "Rome"]]}}}),
            ("/views", {"name": "more", "query": "Q(A) = routes(A, B, C)"}),
        ):
            refused = client.post(path, json=body)
            assert (403, True) == (refused.status_code, "flights" in refused.json()["error"])
        assert 200 == client.post("/explain", json={"query": "Q(A) = routes(A, B, C)"}).status_code
        with httpx.Client(base_url=client.base_url, timeout=30) as other, following(other, "per_city") as events:
            next(events)
            visitor.tell()
            ends.extend(name for name, _, _ in events)

    visitor = Visitor(visit, number)
    visitor.start()
    result = CliRunner().invoke(app, ["serve", str(flights.file), "--port", str(port)])
    visitor.check()
    assert 0 == result.exit_code, result.output
    assert f"serving flights on http://127.0.0.1:{port}; it is at batch 0" in result.output
    assert "1 batch, 2 rows in" in result.output
    assert "end" == ends[-1]
    with pytest.raises(httpx.ConnectError):
        client.get("/healthz")
    driver = Driver(spark, read_pipeline(flights.file))
    assert 1 == driver.reached
    driver.close()
    flights.check_sinks()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_pipeline_over_shards_is_served_while_it_runs(tmp_path: Path) -> None:
    flights = Flights(tmp_path, head="engine: {shards: 2, hosts: 1}\n")
    port = free_port()
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    seen: list[Any] = []

    def search() -> set[str]:
        found = client.get("/views/search", params={"origin": "London", "dest": "Zurich"}).json()
        return {row[0] for row in found["rows"]}

    def visit() -> None:
        eventually(search, {"A"})
        with httpx.Client(base_url=client.base_url, timeout=30) as other, following(other, "per_city") as events:
            next(events)
            flights.change("1", ("insert", "D", 1, 2), ("delete", "A", 1, 2))
            eventually(search, {"D"})
            assert {"pipeline": 1} == client.get("/stats").json()["sources"]
            refused = client.post("/batch", json={"changes": {}})
            assert (403, True) == (refused.status_code, "flights" in refused.json()["error"])
            _, _, change = next(events)
            seen.append(change["changes"])
            visitor.tell()

    visitor = Visitor(visit, signal.SIGTERM)
    visitor.start()
    result = CliRunner().invoke(app, ["serve", str(flights.file), "--port", str(port)])
    visitor.check()
    assert 0 == result.exit_code, result.output
    assert [[[["London", 2, "A"], -1], [["London", 2, "B"], 1]]] == [sorted(each) for each in seen]
    flights.check_sinks()


def test_a_pipeline_is_refused_what_a_server_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IVME_TOKEN", raising=False)
    flights = Flights(tmp_path)
    for arguments, said in (
        (["--host", "0.0.0.0"], "IVME_TOKEN"),
        (["--durability", "async"], "leave --durability out"),
    ):
        result = CliRunner().invoke(app, ["serve", str(flights.file), *arguments])
        assert (2, True) == (result.exit_code, said in result.stderr)
    assert not read_pipeline(flights.file).state.exists()
    result = CliRunner().invoke(app, ["serve", str(tmp_path), "--master", "local[2]"])
    assert (2, True) == (result.exit_code, "--master" in result.stderr)
