"""TPC-H's queries kept fresh while its tables change, beside triggers in C++, SQLite's triggers and DuckDB.

    python -m benchmarks.tpch [--sf 0.1] [--batch 1 100 1000 10000] [--query 1 3 4 5 10 12 18 | all] [--runs 3]
        [--stream inserts refreshes] [--most 200000] [--sqlite 20000] [--ahead] [--no-rows] [--no-peers] [--beside]
        [--out FILE] [--data DIRECTORY]

All tables are declared as TPC-H has them, with their keys. The stream of inserts has all rows of the tables that a
query reads, interleaved; that of refreshes deletes orders with their lines (RF2) and inserts them again (RF1) over
loaded tables. Batches of more than one row are Arrow columns in memory, cut before the clock starts; single rows are
tuples, the last `--most` rows of the stream after the others came as one batch.

Seven queries are written without ORDER BY and LIMIT (`tpch_schema.py`); these also run as two sets of C++ triggers,
compiled in this run (`peers/compiled_triggers.py`): flat hash maps, doubles, no tables, no transactions. "Derived" are
those that a compiler of triggers derives, which knows no keys; "by hand" are those of an expert who knows them.
The triggers keep no rows of tables. With `--no-rows` ivme's tables do not either (`keep_rows=False`), which takes the
stream of inserts only; their keys are promised then, as nobody could enforce them.
SQLite's triggers keep five of the seven, over the last `--sqlite` rows of a stream (`peers/sqlite_stream.py`). The
other queries are taken from DuckDB's extension as they are. DuckDB computes the query anew over the tables at the end:
what a batch would cost at least. The answers of all are compared before anything is printed. With `--beside`,
PostgreSQL, Pathway and @tanstack/db-ivm follow in the same run (`tpch_beside.py`). `--out` writes the tables to a page,
too, with the load of the machine before and after.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.corpora.comparing import difference
from benchmarks.corpora.material import corpus
from benchmarks.corpora.measuring import connected, differs
from benchmarks.measure import parse
from benchmarks.peers.compiled_triggers import CompiledTriggers
from benchmarks.peers.report import machine
from benchmarks.peers.sqlite_stream import sqlite_run
from benchmarks.tpch_beside import lines_beside
from benchmarks.tpch_schema import COLUMNS, KEYS, QUERIES
from benchmarks.tpch_stream import Part, Stream, generated, inserts, read, refreshes
from ivme.database import Database
from ivme.errors import UnsupportedError

Tables = Mapping[str, pa.Table]
Change = tuple[str, int, Any]

TRIGGERS = ("derived-", "")
"""What the names of the compiled triggers begin with: as a compiler derives them, and by hand."""


@dataclass(frozen=True, slots=True)
class Taken:
    """CPU and wall seconds of a stream."""

    cpu: float
    wall: float


def text_of(query: int) -> str:
    """A query's text."""
    if f"q{query}" in QUERIES:
        return QUERIES[f"q{query}"]
    return corpus("tpch", "0.01").queries[query]


def tables_of(text: str, tables: Tables) -> dict[str, pa.Table]:
    """The tables that a query names; no name is a part of another column's or table's."""
    words = set(text.lower().replace(",", " ").replace("(", " ").replace(")", " ").split())
    return {name: table for name, table in tables.items() if name in words}


def as_given(stream: Stream, tables: Tables, single: bool) -> list[list[Change]]:
    """The batches as ivme takes them: single rows as tuples, others as record batches."""
    columns = {name: table.to_batches()[0] for name, table in tables.items()}

    def given(part: Part, as_tuples: bool) -> Change:
        rows = columns[part.table].slice(part.start, part.rows)
        if as_tuples:
            return part.table, part.sign, list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        return part.table, part.sign, rows

    return [
        [given(part, single and number >= stream.loaded) for part in batch]
        for number, batch in enumerate(stream.batches)
    ]


def apply(database: Database, changes: Sequence[Change]) -> None:
    """A batch, as one transaction."""
    if len(changes) == 1:
        ((name, sign, rows),) = changes
        (database.insert if sign > 0 else database.delete)(name, rows)
        return
    with database.batch() as batch:
        for name, sign, rows in changes:
            (batch.insert if sign > 0 else batch.delete)(name, rows)


def clocked(work: Callable[[], None]) -> Taken:
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Taken(time.process_time() - cpu, time.perf_counter() - wall)


def maintained(
    text: str,
    tables: Tables,
    batches: Sequence[list[Change]],
    loaded: int,
    ahead: bool = False,
    keep_rows: bool = True,
) -> tuple[Taken, list[Any]]:
    """What the timed batches took, and the view's rows at the end."""
    database = Database()
    for name in tables:
        if keep_rows:
            database.create_table(name, COLUMNS[name], primary_key=KEYS[name])
        else:
            database.create_table(name, COLUMNS[name], unique=[KEYS[name]], not_null=KEYS[name], keep_rows=False)
    view = database.create_view("v", text)
    for changes in batches[:loaded]:
        apply(database, changes)

    def work() -> None:
        if ahead:
            database.apply_batches([(name, rows, sign) for name, sign, rows in changes] for changes in batches[loaded:])
            return
        for changes in batches[loaded:]:
            apply(database, changes)

    taken = clocked(work)
    rows = [tuple(row) for row in view]
    database.close()
    return taken, rows


def recomputed(text: str, tables: Tables) -> Taken:
    """DuckDB's time for the query over tables of its own."""
    connection = connected({})
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    times = [clocked(lambda: connection.execute(text).fetchall()) for _ in range(3)]
    return Taken(statistics.median(t.cpu for t in times), statistics.median(t.wall for t in times))


def compared(ours: Taken, theirs: Taken | None, changes: int) -> list[str]:
    """A peer's rates, and ivme's as multiples of them; empty without a peer."""
    if theirs is None:
        return [""] * 4
    rates = [f"{changes / each / 1e6:.2f}" for each in (theirs.cpu, theirs.wall)]
    return [*rates, f"{theirs.cpu / ours.cpu:.3f}", f"{theirs.wall / ours.wall:.3f}"]


class Race:
    """One query over one stream."""

    def __init__(
        self,
        query: int,
        tables: Tables,
        runs: int,
        triggers: CompiledTriggers | None,
        sqlite: int = 0,
        ahead: bool = False,
        keep_rows: bool = True,
    ) -> None:
        self.query, self.text, self.runs, self.sqlite, self.ahead = query, text_of(query), runs, sqlite, ahead
        self.keep_rows = keep_rows
        self.tables = tables_of(self.text, tables)
        self.triggers = triggers if f"q{query}" in QUERIES else None
        self.duckdb = recomputed(self.text, self.tables)

    def row(self, stream: Stream, size: int) -> str:
        """A row of the table; raises if somebody's answer is another one."""
        batches = as_given(stream, self.tables, single=size == 1)
        ours = []
        for run in range(self.runs):
            ahead = self.ahead and size > 1
            taken, rows = maintained(self.text, self.tables, batches, stream.loaded, ahead, self.keep_rows)
            ours.append(taken)
            if run == 0:
                self._check("ivme", differs(rows, self.text, connected(dict(self.tables))))
        best = min(ours, key=lambda taken: taken.wall)
        cells = [f"{stream.changes / each / 1e6:.3f}" for each in (best.cpu, best.wall)]
        for triggers in TRIGGERS:
            cells += compared(best, self._compiled(triggers, stream, rows), stream.changes)
        kept = sqlite_run(f"q{self.query}", self.tables, stream, self.sqlite)
        cells += ["", ""] if kept is None else [f"{kept.changes / each / 1e6:.4f}" for each in (kept.cpu, kept.wall)]
        a_batch = best.cpu / len(stream.timed)
        cells += [f"{self.duckdb.cpu / a_batch:,.1f}", f"{self.duckdb.wall * len(stream.timed) / best.wall:,.1f}"]
        return " | ".join(cells)

    def _compiled(self, prefix: str, stream: Stream, rows: list[Any]) -> Taken | None:
        """What the compiled triggers with a prefix took at best."""
        if self.triggers is None:
            return None
        outcomes = [self.triggers.run(f"{prefix}q{self.query}", stream) for _ in range(self.runs)]
        self._check(f"C++ triggers {prefix}q{self.query}", difference(outcomes[0].rows, rows))
        return min((Taken(each.cpu, each.wall) for each in outcomes), key=lambda taken: taken.wall)

    def _check(self, who: str, wrong: str) -> None:
        if wrong:
            raise AssertionError(f"Q{self.query}, {who}: {wrong}")


def refused(race: Race) -> str:
    """Why ivme does not take a query over these tables; nothing if it does."""
    try:
        maintained(race.text, race.tables, [], 0)
    except UnsupportedError as error:
        return str(error).splitlines()[0].replace("|", "\\|")
    return ""


HEAD = """\
| query | stream | batch | ivme, M/s CPU | M/s wall \
| C++ derived, M/s CPU | M/s wall | ivme / derived, CPU | wall \
| C++ by hand, M/s CPU | M/s wall | ivme / by hand, CPU | wall \
| SQLite, M/s CPU | M/s wall | times DuckDB, CPU | wall |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", default="0.1")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 100, 1000, 10_000])
    parser.add_argument("--query", nargs="+", default=[name[1:] for name in QUERIES])
    parser.add_argument("--stream", nargs="+", default=["inserts", "refreshes"], choices=["inserts", "refreshes"])
    parser.add_argument("--most", type=int, default=50_000, help="rows that come one by one, or are refreshed")
    parser.add_argument("--sqlite", type=int, default=20_000, help="rows that SQLite's triggers take, at most")
    parser.add_argument("--ahead", action="store_true", help="batches by apply_batches, which encodes the next one")
    parser.add_argument("--no-rows", action="store_true", help="ivme's tables keep no rows, as triggers keep none")
    parser.add_argument("--no-peers", action="store_true", help="without C++ and SQLite triggers")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "tpch")
    parser.add_argument("--beside", action="store_true", help="PostgreSQL, Pathway and @tanstack/db-ivm as well")
    parser.add_argument("--seconds", type=float, default=3, help="what each of these gets for a workload")
    parser.add_argument("--node-modules", type=Path, default=Path(tempfile.gettempdir()) / "ivme-node")
    parser.add_argument("--out", type=Path, help="the page to write")
    options = parse(parser)
    page = Page(options.out)
    page.say(f"SF {options.sf}, the best of {options.runs} runs. {machine()}.\n")
    for line in lines(options):
        page.say(line)
    page.say(f"\nAt the end the load was {os.getloadavg()[0]:.1f}.")


class Page:
    """What is printed, and written line by line if there is a page."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._text = path, "# TPC-H beside its peers\n\n`python -m benchmarks.tpch`\n\n"

    def say(self, line: str) -> None:
        print(line, flush=True)
        self._text += f"{line}\n"
        if self._path is not None:
            self._path.write_text(self._text, "utf-8")


def lines(options: argparse.Namespace) -> Iterator[str]:
    """The tables."""
    tables = read(generated(options.sf, options.data), COLUMNS)
    queries = list(range(1, 23)) if options.query == ["all"] else [int(each) for each in options.query]
    yield HEAD
    with CompiledTriggers() as triggers:
        triggers.write_tables(tables)
        for query in queries:
            compiled, sqlite = (None, 0) if options.no_peers else (triggers, options.sqlite)
            race = Race(query, tables, options.runs, compiled, sqlite, options.ahead, not options.no_rows)
            if refusal := refused(race):
                yield f"| {query} | refused: {refusal} |{' |' * 15}"
                continue
            for kind in ["inserts"] if options.no_rows else options.stream:
                for size in options.batch:
                    if kind == "inserts":
                        stream = inserts(race.tables, size, options.most if size == 1 else None)
                    else:
                        stream = refreshes(race.tables, size, options.most if size < 1000 else 40 * size)
                    if stream.timed:  # a query that reads neither orders nor their lines has no refreshes
                        yield f"| {query} | {kind} | {size:,} | {race.row(stream, size)} |"
    if options.beside:
        yield ""
        yield from lines_beside(options.sf, options.data, options.node_modules, options.seconds)


if __name__ == "__main__":
    main()
