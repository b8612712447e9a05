"""One query: is it accepted, is it right after each change, how long does a batch take."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

import ivme
from benchmarks.corpora.changes import Batch, Contents
from benchmarks.corpora.comparing import (
    Row,
    difference,
    misordered,
    missing,
    ordered_by,
    with_totals_of_rows,
    without_limit,
)
from benchmarks.corpora.material import Corpus, column_type
from benchmarks.measure import now

BATCHES = 5


@dataclass
class Outcome:
    """What came of a query: refused with a reason, or right after these changes and wrong after that one."""

    corpus: str
    number: int
    refused: str = ""
    right: list[str] = field(default_factory=list)
    wrong: str = ""
    blocks: str = ""
    rows: int = 0
    batch_seconds: float = 0.0
    duckdb_seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.refused:
            return "refused"
        return "WRONG" if self.wrong else "right"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A corpus in a database, and what its tables hold."""

    corpus: Corpus
    database: Any
    contents: Contents


def loaded(corpus: Corpus) -> Loaded:
    """A database with the tables of a corpus, loaded once for all queries."""
    contents = Contents(corpus.tables)
    database = ivme.Database()
    for name, table in corpus.tables.items():
        database.create_table(name, {f.name: column_type(f.type) for f in table.schema})
    apply(database, contents.load())
    return Loaded(corpus, database, contents)


def measured(given: Loaded, number: int) -> Outcome:
    """Runs one query through all changes; the database is spent then."""
    corpus, database = given.corpus, given.database
    outcome = Outcome(corpus.name, number)
    try:
        view = database.create_view("q", corpus.queries[number])
    except ivme.IvmeError as error:
        outcome.refused = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return outcome
    outcome.blocks = blocks(database, "q")
    given.contents.keep(corpus.read_by(number))
    _follow(outcome, database, view, corpus.queries[number], given.contents)
    return outcome


def _follow(outcome: Outcome, database: Any, view: Any, text: str, contents: Contents) -> None:
    for step in (contents.unchanged, contents.inserts, contents.deletes, contents.updates):
        if not _is_right(outcome, database, view, text, step(), contents):
            return
    times = []
    for _ in range(BATCHES):
        batch = contents.mixed()
        start = now()
        apply(database, batch)
        times.append((now() - start) * 1000 / max(batch.size, 1))
    outcome.batch_seconds = statistics.median(times)
    outcome.duckdb_seconds = _recomputed(text, contents.now)
    for step in (contents.emptied, contents.refilled):
        if not _is_right(outcome, database, view, text, step(), contents):
            return


def _is_right(outcome: Outcome, database: Any, view: Any, text: str, batch: Batch, contents: Contents) -> bool:
    apply(database, batch)
    ours = [tuple(row) for row in view]
    found = differs(ours, text, connected(contents.now))
    outcome.rows = max(outcome.rows, len(ours))
    if found:
        outcome.wrong = f"after {batch.name}: {found}"
    else:
        outcome.right.append(batch.name)
    return not found


def apply(database: Any, batch: Batch) -> None:
    """A batch as one change: what an update deletes and inserts comes together."""
    with database.batch() as change:
        for name, rows in batch.deleted.items():
            change.delete(name, rows)
        for name, rows in batch.inserted.items():
            change.insert(name, rows)


def differs(ours: list[Row], text: str, connection: Any) -> str:
    """What is wrong with the rows of a view; empty if nothing is. Ties are compared on the columns of the order."""
    text = with_totals_of_rows(text)
    theirs: list[Row] = connection.execute(text).fetchall()
    if len(ours) != len(theirs):
        return f"{len(ours)} rows here, {len(theirs)} expected"
    whole = without_limit(text)
    found = missing(ours, connection.execute(whole).fetchall()) if whole else difference(ours, theirs)
    return found or misordered(ours, theirs, ordered_by(text))


def connected(tables: dict[str, pa.Table]) -> Any:
    """DuckDB over the tables, with NULLs where Spark sorts them."""
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def _recomputed(text: str, tables: dict[str, pa.Table]) -> float:
    """The median of DuckDB's times for the whole query, over tables of its own."""
    connection = connected({})
    for name, table in tables.items():
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    times = []
    for _ in range(3):
        start = now()
        connection.execute(text).fetchall()
        times.append(now() - start)
    return statistics.median(times)


def blocks(database: Any, name: str) -> str:
    """The blocks that the view has become: how many, by which strategy, with which guarantee for an update."""
    found: Counter[str] = Counter()
    for block, state in database.definitions.catalog.views.items():
        if block.rpartition("#")[0] == name or (block == name and state.plan is not None):
            found[f"{state.explanation.strategy} {state.explanation.update}"] += 1
    return ", ".join(f"{count} {guarantee}" for guarantee, count in sorted(found.items()))
