"""`ivme status`: how far a pipeline is, from its state alone; a run that is under way is not disturbed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ivme.errors import PipelineError
from ivme.extras import refuse_windows
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.model import Pipeline
from ivme.pipeline.quarantine import Quarantine
from ivme.shown_table import counted

WAITING = "waiting"
"""The fact that says which transactions wait for events."""


def status(pipeline: Pipeline, now: float | None = None) -> dict[str, Any]:
    """What is known of a pipeline, as plain data."""
    path = pipeline.state / "journal.sqlite"
    if not path.exists():
        raise PipelineError(f"{pipeline.file}: there is no state in {pipeline.state}; it has never run")
    journal, quarantine = RunJournal(path), Quarantine(pipeline.state / "quarantine")
    try:
        last = journal.last()
        return {
            "pipeline": pipeline.name,
            "state": str(pipeline.state),
            "engine": {"shards": pipeline.shards, "checkpoint": pipeline.checkpoint} if pipeline.engine else None,
            "batch": 0 if last is None else last.number,
            "run": _run(pipeline.state, time.time() if now is None else now),
            "tables": {s.table.name: _table(s.table.name, journal, quarantine) for s in pipeline.tables},
            "waiting": json.loads(journal.fact(WAITING) or "null"),
            "sinks": {sink.name: journal.written(sink.name) for sink in pipeline.sinks},
        }
    finally:
        journal.close()


def _run(state: Path, now: float) -> dict[str, Any] | None:
    """The run that is under way, or the last one; None if there was none that reported."""
    path = state / "status.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return {**found, "running": _is_alive(found["pid"]), "seconds_ago": now - found["at"]}


def _is_alive(process: int) -> bool:
    """Whether a process runs. On Windows `os.kill` would end it."""
    refuse_windows("ivme status")
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _table(name: str, journal: RunJournal, quarantine: Quarantine) -> dict[str, Any]:
    last = journal.last_of(name)
    return {
        "batch": None if last is None else last.number,
        "files": len(journal.names(name)),
        "refused_files": sum(source == name for source, _, _ in journal.refused()),
        "waiting_rows": quarantine.waiting(name),
    }


def told_status(found: dict[str, Any]) -> Iterator[str]:
    """The same in lines."""
    run = found["run"]
    yield f"{found['pipeline']} is at batch {found['batch']}; its state is in {found['state']}"
    if found.get("engine") is not None:
        engine = found["engine"]
        shards = counted(engine["shards"], "shard")
        yield f"its tables and views are in {shards}; their steps are in {engine['checkpoint']}"
    if run is not None:
        what = f"runs as process {run['pid']}" if run["running"] else "is not running"
        yield f"it {what}; its last batch ended {run['seconds_ago']:,.0f} s ago"
    for name, table in found["tables"].items():
        seen = {} if run is None else run["tables"].get(name, {})
        lag = f", {seen['lag']:,} waiting at the source" if seen else ""
        speed = f", {seen['rows'] / seen['seconds']:,.0f} rows/s" if seen and seen["seconds"] else ""
        yield (
            f"table {name}: {'no batch' if table['batch'] is None else 'batch ' + str(table['batch'])}{lag}{speed}, "
            f"{counted(table['waiting_rows'], 'row')} and {counted(table['refused_files'], 'file')} in quarantine"
        )
    waiting = found.get("waiting")
    if waiting is not None and (waiting["transactions"] or waiting["events"]):
        first = "" if waiting["first"] is None else f", the first is {waiting['first']}"
        yield (
            f"transactions that lack events: {waiting['transactions']:,}{first}; "
            f"events waiting for them: {waiting['events']:,}"
        )
    for name, batch in found["sinks"].items():
        yield f"sink {name}: {'nothing yet' if batch is None else 'batch ' + str(batch)}"
