"""Watermarks: the clock goes by what was seen, with the batch, and rows leave views that expire."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import PipelineError
from ivme.pipeline import Pipeline, read_pipeline
from ivme.pipeline.read import declare_all
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.watermarks import WATERMARKS, clock_changes, create_watermarks, without_old
from ivme.query.names import CLOCK
from ivme.spark.pipeline.replay import replay

_FILE = """\
tables:
  clicks:
    columns: {page: string, ts: timestamp}
    watermark: {column: ts, delay: 10 minutes}
  sales:
    columns: {amount: int, day: date}
    watermark: {column: day}
views:
  hour:
    sql: SELECT page, COUNT(*) AS n FROM clicks GROUP BY page
    expire: ts + INTERVAL '1' HOUR
"""
_NOON = datetime(2026, 11, 17, 12)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "p.yml").write_text(_FILE)
    return read_pipeline(tmp_path / "p.yml")


def _clicks(pipeline: Pipeline, *minutes: int, weight: int = 1) -> dict[str, TableChanges]:
    rows = [{"page": f"p{minute}", "ts": _NOON + timedelta(minutes=minute)} for minute in minutes]
    table = pa.Table.from_pylist(rows, arrow_schema(pipeline.table("clicks").table))
    return {"clicks": TableChanges(table, np.full(len(rows), weight, np.int64))}


def _sale(pipeline: Pipeline, day: int) -> dict[str, TableChanges]:
    rows = [{"amount": 1, "day": datetime(2026, 11, day).date()}]
    schema = arrow_schema(pipeline.table("sales").table)
    return {"sales": TableChanges(pa.Table.from_pylist(rows, schema), np.ones(1, np.int64))}


def _take(database: Database, pipeline: Pipeline, changes: dict[str, TableChanges]) -> dict[str, TableChanges]:
    whole = {**changes, **clock_changes(database, pipeline.tables, changes)}
    with database.batch() as batch:
        for name, delta in whole.items():
            batch.apply(name, delta.rows, delta.weights)
    return whole


def test_the_clock_is_the_least_of_what_was_seen_less_the_delays(pipeline: Pipeline) -> None:
    with Database() as database:
        create_watermarks(database, pipeline.tables)
        declare_all(pipeline, database)
        _take(database, pipeline, _clicks(pipeline, 0, 30))
        assert datetime(1970, 1, 1) == database.now  # nothing was seen of sales
        _take(database, pipeline, _sale(pipeline, 18))
        assert _NOON + timedelta(minutes=20) == database.now
        assert {("p0", 1), ("p30", 1)} == set(database.view("hour"))
        assert CLOCK not in _take(database, pipeline, _clicks(pipeline, 25))  # late: nothing moves
        assert WATERMARKS not in _take(database, pipeline, _clicks(pipeline, 500, weight=0))
        _take(database, pipeline, _clicks(pipeline, 80))
        assert {("p25", 1), ("p30", 1), ("p80", 1)} == set(database.view("hour"))


def test_a_sink_gets_again_what_the_clock_changed(pipeline: Pipeline) -> None:
    with Database() as database:
        create_watermarks(database, pipeline.tables)
        declare_all(pipeline, database)
        _take(database, pipeline, _sale(pipeline, 20))
        _take(database, pipeline, _clicks(pipeline, 0, 30))
        feed = database.view("hour").changes()
        changes = _take(database, pipeline, _clicks(pipeline, 80))
        told = dict(next(iter(feed)).items())
        assert {("p0", 1): -1, ("p80", 1): 1} == told
        again = replay(pipeline, database, changes, ["hour"])["hour"]
        assert again is not None
        assert told == dict(again.items())
        everything = replay(pipeline, database, None, ["hour"])["hour"]
        assert everything is not None
        assert {("p30", 1): 1, ("p80", 1): 1} == dict(everything.items())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("delay: 10 minutes", "delay: soon", "a delay is a number of"),
        ("column: ts,", "column: page,", "a column of dates or timestamps"),
        ("column: ts,", "column: at,", "a column of dates or timestamps"),
    ],
)
def test_a_watermark_that_is_none_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "p.yml").write_text(_FILE.replace(old, new))
    with pytest.raises(PipelineError, match=told):
        read_pipeline(tmp_path / "p.yml")


def test_a_table_lets_go_of_rows_that_are_older_than_it_keeps(tmp_path: Path) -> None:
    """Random batches with late rows and deletes: no row that is kept is lost, and none stays for long."""
    text = _FILE.replace("delay: 10 minutes}", "delay: 10 minutes, keep: 2 hours}")
    (tmp_path / "p.yml").write_text(text)
    pipeline = read_pipeline(tmp_path / "p.yml")
    chance, there = random.Random(4), Counter[tuple[str, datetime]]()
    with Database() as database:
        create_watermarks(database, pipeline.tables)
        declare_all(pipeline, database)
        _take(database, pipeline, _sale(pipeline, 30))
        for number in range(120):
            minutes = [5 * number - chance.randrange(300 if chance.random() < 0.1 else 20) for _ in range(3)]
            changes = _clicks(pipeline, *minutes)
            before, moved = database.now, clock_changes(database, pipeline.tables, changes)
            whole = without_old(database, pipeline.tables, {**changes, **moved})
            with database.batch() as batch:
                for name, delta in whole.items():
                    batch.apply(name, delta.rows, delta.weights)
            there.update((f"p{minute}", _NOON + timedelta(minutes=minute)) for minute in minutes)
            assert before is not None
            assert database.now is not None
            found, limit = Counter(database.table("clicks")), database.now - timedelta(hours=2)
            sweeps = [(now - datetime(1970, 1, 1)) // timedelta(minutes=7.5) for now in (before, database.now)]
            assert all(found[row] == count for row, count in there.items() if row[1] >= limit)
            assert not found - there
            assert sweeps[0] == sweeps[1] or all(row[1] >= limit for row in found)
        assert len(there) > 2 * len(found)


@pytest.mark.parametrize(("keep", "told"), [("0 hours", "the time is zero"), ("soon", "soon")])
def test_a_keep_that_is_none_is_refused(tmp_path: Path, keep: str, told: str) -> None:
    (tmp_path / "p.yml").write_text(_FILE.replace("delay: 10 minutes}", f"delay: 10 minutes, keep: {keep}}}"))
    with pytest.raises(PipelineError, match=told):
        read_pipeline(tmp_path / "p.yml")
