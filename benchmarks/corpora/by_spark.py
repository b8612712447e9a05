"""Whether all views of a corpus are what Spark says, after each change; all are kept by one database."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import ivme
from benchmarks.corpora.comparing import Row
from benchmarks.corpora.material import corpus
from benchmarks.corpora.measuring import apply, differs, loaded
from ivme.spark.session.session import open_session


class SparkAnswers:
    """Spark over Parquet files, read as a connection to DuckDB is."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.rows: list[Row] = []

    def hold(self, tables: dict[str, pa.Table], state: str) -> None:
        for name, table in tables.items():
            (self.folder / state).mkdir(exist_ok=True)
            path = self.folder / state / f"{name}.parquet"
            pq.write_table(table, path)
            self.session.read.parquet(str(path)).createOrReplaceTempView(name)

    def execute(self, text: str) -> SparkAnswers:
        self.rows = [tuple(row) for row in self.session.sql(text).collect()]
        return self

    def fetchall(self) -> list[Row]:
        return self.rows


def by_spark(corpora: Sequence[str], scale: str, numbers: Sequence[int] | None) -> int:
    """Prints what differs after each change; 1 if something does."""
    session = open_session("corpora", master="local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        answers = SparkAnswers(session, Path(folder))
        for name in corpora:
            wrong += _compare(name, scale, numbers, answers)
    session.stop()
    return int(wrong > 0)


def _compare(name: str, scale: str, numbers: Sequence[int] | None, answers: SparkAnswers) -> int:
    given = loaded(corpus(name, scale))
    texts = {number: given.corpus.queries[number] for number in numbers or sorted(given.corpus.queries)}
    views = {}
    for number, text in texts.items():
        try:
            views[number] = given.database.create_view(f"q{number}", text)
        except ivme.IvmeError as error:
            print(f"{name} {number}: refused: {str(error).splitlines()[0]}", flush=True)
    contents, wrong = given.contents, 0
    steps = (contents.unchanged, contents.inserts, contents.deletes, contents.updates)
    for step in (*steps, contents.emptied, contents.refilled):
        start = perf_counter()
        batch = step()
        apply(given.database, batch)
        answers.hold(contents.now, batch.name)
        found = {n: differs([tuple(row) for row in view], texts[n], answers) for n, view in views.items()}
        for number, difference in found.items():
            if difference:
                print(f"{name} {number}: WRONG after {batch.name}: {difference}", flush=True)
                wrong += 1
        right = sum(not each for each in found.values())
        print(
            f"{name} after {batch.name}: {right} of {len(views)} as Spark, {perf_counter() - start:.0f} s", flush=True
        )
    return wrong
