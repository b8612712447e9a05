"""All versions of rows: events in any order and any cut give the history that a sorted walk has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import PipelineError
from ivme.pipeline import read_pipeline
from ivme.pipeline.history import HISTORY, events_walked, history_changes
from ivme.pipeline.journal import Planned, RunJournal
from ivme.pipeline.keyed_events import DELETE, UPSERT, KeyedEvents
from ivme.pipeline.plan_changes import planned_steps
from ivme.pipeline.read import declare_all

_FILE = """\
tables:
  t:
    columns: {a: int, b: string, v: int}
    primary_key: [a, b]
    changes: {directory: changes, format: csv, operation: op, upsert: true, sequence_by: lsn, history: versions}
views:
  open:
    sql: SELECT a, COUNT(*) AS n FROM versions WHERE __END_AT IS NULL GROUP BY a
"""

_Event = tuple[int, str, int | None, int, int]


def _written(folder: Path, text: str = _FILE) -> Path:
    (folder / "p.yml").write_text(text)
    return folder / "p.yml"


def _versions(given: list[_Event]) -> set[tuple[Any, ...]]:
    """The rules as they are told: at one sequence an upsert counts before a delete, and the later one."""
    counted: dict[tuple[int, str], dict[int, tuple[int, int, int | None]]] = {}
    for place, (a, b, v, kind, at) in enumerate(given):
        times = counted.setdefault((a, b), {})
        if at not in times or (kind, place) > times[at][:2]:
            times[at] = (kind, place, v)
    found = set()
    for (a, b), times in counted.items():
        current: tuple[Any, ...] | None = None
        for at in sorted(times):
            kind, _, v = times[at]
            if current is not None and kind == UPSERT and v == current[2]:
                continue
            if current is not None:
                found.add((*current, at))
            current = (a, b, v, at) if kind == UPSERT else None
        if current is not None:
            found.add((*current, None))
    return found


def _events(table: Any, given: list[_Event]) -> KeyedEvents:
    rows = [{"a": a, "b": b, "v": v} for a, b, v, _, _ in given]
    kinds = np.array([event[3] for event in given], np.int8)
    sequences = (pa.array([event[4] for event in given], pa.int64()),)
    return KeyedEvents(pa.Table.from_pylist(rows, arrow_schema(table)), kinds, sequences)


@pytest.mark.parametrize("seed", range(4))
def test_events_in_any_order_and_cut_give_all_versions(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    pipeline = read_pipeline(_written(tmp_path))
    table = pipeline.tables[0].table
    given: list[_Event] = [
        (chance.randrange(3), "x", chance.choice([None, 1, 2]), chance.choice([UPSERT, UPSERT, DELETE]), at)
        for at in (chance.randrange(40) for _ in range(80))
    ]
    with Database() as database:
        declare_all(pipeline, database)
        at = 0
        while at < len(given):
            part = given[at : at + chance.choice([1, 3, 20])]
            changes = history_changes(table, _events(table, part), database.table(HISTORY + "t").of_keys)
            database.apply(HISTORY + "t", changes.rows, changes.weights)
            at += len(part)
            assert _versions(given[:at]) == set(database.view("versions"))
        walked = set(events_walked(table, _events(table, given)))
        assert set(database.table(HISTORY + "t")) == walked
        database.view("versions").verify()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("sequence_by: lsn, ", "", "one sequence_by"),
        ("sequence_by: lsn,", "sequence_by: [lsn, v],", "one sequence_by"),
        ("  open:", "  versions:", "the name of a table's history"),
        ("    changes:", "    load: {format: csv, path: t.csv}\n    changes:", "have no sequence"),
    ],
)
def test_a_history_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        read_pipeline(_written(tmp_path, _FILE.replace(old, new)))


def test_a_history_of_events_that_were_taken_without_it_is_refused(tmp_path: Path) -> None:
    pipeline = read_pipeline(_written(tmp_path))
    journal = RunJournal(None)
    journal.note("owner", "x")
    journal.note("table t", "(a int)")
    journal.plan(Planned(1, "t", {}))
    refused = [step.what for step in planned_steps(pipeline, journal) if step.refused and step.name == HISTORY + "t"]
    assert ["events of table t were taken without a history; use another state"] == refused
