"""SQLite's triggers over the streams of `benchmarks/tpch.py`, for the queries whose triggers can be written by rule.

In SQLite's favour, its tables have only the columns that these queries read, prices are in cents and dates are numbers.
Only the end of a stream is timed, as much as SQLite does in some seconds; all rows before it are loaded first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from benchmarks.peers.contenders import Sqlite, canonical
from benchmarks.peers.tpch_workloads import COLUMNS, GROUPS, INDEXES, JOINED, KEYS, LARGE, QUERIES, TABLES, integers
from benchmarks.peers.workload import Change, Round, Table, Workload
from benchmarks.tpch_stream import Part, Stream


class SqliteOutcome(NamedTuple):
    """What the end of a stream took, and how many rows it had."""

    cpu: float
    wall: float
    changes: int


def sqlite_run(query: str, tables: Mapping[str, pa.Table], stream: Stream, most: int) -> SqliteOutcome | None:
    """The end of a stream through SQLite's triggers; None of a query that has none. Answers are checked."""
    if query not in QUERIES or most < 1:
        return None
    needed = {name: integers(tables[name].select(list(COLUMNS[name]))) for name in TABLES[query]}
    start = _start(stream, most)
    timed = stream.batches[start:]
    counts = Counter(dict.fromkeys(needed, 0))
    for part in (part for batch in stream.batches[:start] for part in batch):
        counts[part.table] += part.sign * part.rows
    loaded = {name: table.slice(0, counts[name]) for name, table in needed.items()}
    kept = f"SELECT {GROUPS}, quantity FROM kept WHERE quantity > {LARGE}" if query == "q18" else ""
    triggers = f"{JOINED} GROUP BY {GROUPS}" if kept else QUERIES[query]
    declared = tuple(Table(name, COLUMNS[name], KEYS[name], INDEXES.get(name, ())) for name in needed)
    rounds = tuple(Round(tuple(_change(part, needed) for part in batch)) for batch in timed)
    work = Workload(query, query, QUERIES[query], declared, loaded, rounds, triggers=triggers, kept=kept)
    return _timed(Sqlite(work), work)


def _timed(sqlite: Sqlite, work: Workload) -> SqliteOutcome:
    cpu, wall = time.process_time(), time.perf_counter()
    for each in work.rounds:
        sqlite.apply(each)
    taken = time.process_time() - cpu, time.perf_counter() - wall
    if canonical(sqlite.answer({})) != canonical(sqlite.connection.execute(work.sql).fetchall()):
        raise AssertionError(f"{work.key}: SQLite's triggers keep another answer than its query has")
    sqlite.close()
    return SqliteOutcome(*taken, sum(len(change.tuples) for each in work.rounds for change in each.changes))


def _start(stream: Stream, most: int) -> int:
    """Where the last batches begin that have at most so many rows, but at least one; in pairs where rows come again."""
    start, rows = len(stream.batches), 0
    deletes = any(part.sign < 0 for batch in stream.timed for part in batch)
    while start > stream.loaded:
        rows += sum(part.rows for part in stream.batches[start - 1])
        if rows > most and start < len(stream.batches) and (not deletes or (start - stream.loaded) % 2 == 0):
            break
        start -= 1
    return start


def _change(part: Part, tables: Mapping[str, pa.Table]) -> Change:
    rows = tables[part.table].slice(part.start, part.rows)
    return Change(part.table, rows, part.sign, list(zip(*(c.to_pylist() for c in rows.columns), strict=True)))
