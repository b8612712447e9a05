"""What others see of a pipeline: figures for Prometheus, lines of JSON, and its status."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from ivme.cli import app
from ivme.pipeline import read_pipeline
from ivme.pipeline.journal import ChangeFile, Planned, RunJournal
from ivme.pipeline.quarantine import Quarantine
from ivme.pipeline.status import WAITING, status, told_status
from ivme.spark.pipeline.events import Applied, Refused
from ivme.spark.pipeline.metrics import RunMetrics, json_lines, served_metrics
from ivme.spark.pipeline.progress import Progress, line

_FILE = """\
tables:
  t:
    columns: {id: int}
    changes: {directory: changes, format: csv}
views:
  v:
    sql: SELECT COUNT(*) AS n FROM t
sinks:
  s: {view: v, format: parquet, path: out}
"""

_BATCH = Applied(3, "t", 100, 2, 0.5, 0.1, 7)


def _counted(folder: Path) -> RunMetrics:
    metrics = RunMetrics('odd "name"', folder)
    metrics(_BATCH)
    metrics(Applied(4, "t", 50, 1, 0.25, 0.05, 6))
    metrics(Refused("t", "5.csv", "malformed"))
    return metrics


def test_sinks_that_are_rewritten_are_counted_where_nobody_gets_changes(tmp_path: Path) -> None:
    whole = Applied(5, "t", 3, 0, 0.25, 0.05, 0, rewritten=1)
    assert "batch 5  t  3 rows in  1 sink rewritten  0.25 s  0 waiting" == line(whole)
    assert "batch 5  t  3 rows in  2 changes out  1 sink rewritten" in line(replace(whole, changes_out=2))
    assert "batch 5  t  3 rows in  0 changes out  0.25 s" in line(replace(whole, rewritten=0))
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    progress = Progress(console)
    progress(whole)
    assert "1 batch, 3 rows in, sinks rewritten 2 times, 0 rows quarantined" in progress.summary(2)
    assert "3 rows in, 0 changes out, 0 rows" in progress.summary()
    progress(Refused("t", "rows-1.parquet", "malformed", rows=2))
    assert " 2 rows quarantined" in progress.summary()
    progress(Refused("u", "5.csv", "malformed"))
    assert " 2 rows and 1 file quarantined" in progress.summary()
    console.print(progress._table())
    assert "changes out │ sinks rewritten" in " ".join(shown.getvalue().replace("┃", "│").split())
    metrics = RunMetrics("p", tmp_path)
    metrics(whole)
    assert 'ivme_pipeline_rewrites_total{pipeline="p",table="t"} 1' in metrics.prometheus()


def test_figures_add_up_over_batches(tmp_path: Path) -> None:
    lines = _counted(tmp_path).prometheus().splitlines()
    label = '{pipeline="odd \\"name\\"",table="t"}'
    for name, value in [
        ("batches_total", 2),
        ("rows_total", 150),
        ("changes_total", 3),
        ("refusals_total", 1),
        ("seconds_total", 0.75),
        ("lag", 6),
        ("last_batch", 4),
    ]:
        assert f"ivme_pipeline_{name}{label} {value}" in lines
    assert "# TYPE ivme_pipeline_lag gauge" in lines


def test_figures_are_served_while_it_runs(tmp_path: Path) -> None:
    with served_metrics(_counted(tmp_path), 0) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"ivme_pipeline_rows_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)


def test_events_are_lines_of_json() -> None:
    stream = io.StringIO()
    report = json_lines(stream)
    report(_BATCH)
    report(Refused("t", "5.csv", "malformed"))
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert ("applied", 3, 100) == (first["event"], first["number"], first["rows_in"])
    assert ("refused", "5.csv") == (second["event"], second["name"])


def test_the_status_is_read_from_the_state_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(_FILE)
    pipeline = read_pipeline(file)
    ran = CliRunner().invoke(app, ["status", str(file)])
    assert 2 == ran.exit_code
    assert "it has never run" in ran.output
    journal = RunJournal(pipeline.state / "journal.sqlite")
    journal.plan(Planned(4, "t", {}), [ChangeFile("a.csv", "x"), ChangeFile("b.csv", "y")])
    journal.refuse("t", ChangeFile("c.csv", "z"), "malformed")
    journal.wrote(["s"], 3)
    journal.note(WAITING, json.dumps({"transactions": 2, "events": 5, "first": "571:3"}))
    journal.close()
    Quarantine(pipeline.state / "quarantine").keep_letters("t", 4, pa.table({"id": [1, 2]}))
    _counted(pipeline.state)
    found = status(pipeline)
    assert {"batch": 4, "files": 2, "refused_files": 1, "waiting_rows": 2} == found["tables"]["t"]
    assert {"s": 3} == found["sinks"]
    assert found["run"]["running"]
    lines = list(told_status(found))
    assert "table t: batch 4, 6 waiting at the source, 200 rows/s, 2 rows and 1 file in quarantine" in lines
    assert "sink s: batch 3" in lines
    assert "transactions that lack events: 2, the first is 571:3; events waiting for them: 5" in lines
    assert "p" == json.loads(CliRunner().invoke(app, ["status", str(file), "--json"]).output)["pipeline"]
