"""ivme beside its peers on eight workloads, each as a ratio in the same run.

    python -m benchmarks.peers [--quick] [--only join-count tpch ...] [--peers duckdb sqlite ...] [--out DIR]
        [--record] [--from results.json ...]

The workloads: join-count, tpch, triangles, hubs, access, reachability, spark-refresh, spark-stream. The peers: duckdb,
sqlite, postgres, pathway, spark, pydbsp; one that is not there is installed where that is possible, and named in the
report with the reason where it is not. Writes results.json, report.md, report.html and pictures to --out. With
--record the table of README.md and docs/peers.md are written too; --from does so from earlier runs, each of which may
have some of the workloads.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.peers import install, plots, report
from benchmarks.peers.contenders import DuckDb, Ivme, Sqlite, Start
from benchmarks.peers.missing import MissingError
from benchmarks.peers.pathway_peer import pathway_result, pathway_version
from benchmarks.peers.postgres import cluster, postgres_starts, programs, server_version
from benchmarks.peers.race import Result, race
from benchmarks.peers.report import Report
from benchmarks.peers.sizes import SIZES, Sizes
from benchmarks.peers.summary import short_table
from benchmarks.peers.workload import Workload
from benchmarks.peers.workloads import makers

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("duckdb", "sqlite", "postgres", "pathway", "spark", "pydbsp")
SPARK = ("spark-refresh", "spark-stream")
WORKLOADS = (*makers(SIZES["tiny"], Path(), Path()), *SPARK)
BEGAN = time.monotonic()


def say(text: str) -> None:
    """Progress, with the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - BEGAN), 60)
    print(f"[{minutes:02d}:{seconds:02d}] {text}", flush=True)


class Run:
    """A run of chosen workloads against chosen peers; who cannot take part is kept with the reason."""

    def __init__(self, sizes: Sizes, peers: Sequence[str], stack: ExitStack) -> None:
        self.sizes, self.peers, self.stack = sizes, peers, stack
        self.missing: dict[str, str] = {}
        self.versions = report.versions()
        self.results: list[Result] = []
        self.folder = self._prepared("postgres", self._postgres)
        self.python = self._prepared("pathway", self._pathway)
        self._prepared("pydbsp", self._pydbsp)

    def _prepared(self, peer: str, prepare: object) -> object:
        if peer not in self.peers:
            return None
        try:
            return prepare()  # type: ignore[operator]
        except MissingError as error:
            self.lacks(error)
            return None

    def lacks(self, error: MissingError) -> None:
        say(f"missing: {error}")
        self.missing[error.peer] = error.reason

    def _postgres(self) -> Path:
        install.import_psycopg()
        try:
            programs()
        except MissingError:
            install.install_postgres()
        folder = self.stack.enter_context(cluster())
        self.versions["PostgreSQL"] = server_version(folder)
        return folder

    def _pathway(self) -> str:
        say("Pathway: its environment is made on first use")
        python = install.pathway_python()
        self.versions["Pathway"] = pathway_version(python)
        return python

    def _pydbsp(self) -> None:
        install.import_pydbsp()
        raise MissingError("pydbsp", "it is installed, but no workload is written for it: it was nowhere to be tested")

    def starts(self, workload: Workload) -> list[Start]:
        """ivme first, then all that are there."""
        found: list[Start] = [Ivme]
        found += [start for name, start in (("duckdb", DuckDb), ("sqlite", Sqlite)) if name in self.peers]
        return [*found, *(postgres_starts(self.folder, workload) if isinstance(self.folder, Path) else [])]

    def measure(self, workload: Workload) -> None:
        say(f"{workload.title} ({workload.rows:,} rows)")
        found = race(workload, self.starts(workload), self.sizes.seconds, lambda text: say(f"  {text}"))
        if isinstance(self.python, str) and not workload.pathway:
            self.missing[f"Pathway ({workload.title})"] = "this workload is not implemented for Pathway"
        elif isinstance(self.python, str):
            try:
                found.append(pathway_result(self.python, workload, self.sizes.seconds))
            except MissingError as error:
                self.missing[f"{error.peer} ({workload.title})"] = error.reason
        self.keep(found)

    def keep(self, results: list[Result]) -> None:
        for result in results:
            say(f"  {result.peer}: ivme is {report.shown(result.ratio)} times as fast at {result.title}")
        self.results += results

    def spark(self, wanted: tuple[str, ...]) -> None:
        try:
            from benchmarks.peers.spark_peer import spark_results

            for results in spark_results(self.sizes, wanted, say):
                self.keep(results)
        except MissingError as error:
            self.lacks(error)


@contextmanager
def tidy_when_stopped() -> Iterator[None]:
    """SIGTERM ends the run as an error does, so that a cluster that was started is stopped."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def measured(sizes: Sizes, only: Sequence[str], peers: Sequence[str], graphs: Path, data: Path, out: Path) -> Report:
    """The report of a run; what there is of it is written even if a workload fails."""
    began, where = report.today(), report.machine()
    with ExitStack() as stack:
        run = Run(sizes, peers, stack)
        try:
            for name, make in makers(sizes, graphs, data).items():
                for workload in make() if name in only else ():
                    run.measure(workload)
            wanted = tuple(name for name in SPARK if name in only)
            if wanted and "spark" in peers:
                run.spark(wanted)
        finally:
            left_out = {name: "it was not asked for" for name in PEERS if name not in peers}
            missing = tuple((run.missing | left_out).items())
            found = Report(began, where, run.versions, sizes.name, tuple(run.results), missing)
            write(found, out)
    return found


def write(found: Report, folder: Path) -> None:
    """results.json, the pictures, report.md and report.html."""
    (folder / "results.json").write_text(report.to_json(found), "utf-8")
    drawn = plots.drawings(found)
    for name, drawing in drawn.items():
        (folder / f"{name}.svg").write_text(drawing, "utf-8")
    (folder / "report.md").write_text(report.markdown(found, [f"{name}.svg" for name in drawn]), "utf-8")
    (folder / "report.html").write_text(report.html_page(found, drawn.values()), "utf-8")
    say(f"wrote {folder}/report.html, report.md and results.json")


def record(found: Report) -> None:
    """The report as a page of the documentation, and the short table in README.md and in docs/index.md."""
    folder = ROOT / "docs" / "peers"
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(report.to_json(found), "utf-8")
    drawn = plots.drawings(found)
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, drawing in drawn.items():
        (folder / f"{name}.svg").write_text(drawing, "utf-8")
    page = ROOT / "docs" / "peers.md"
    page.write_text(report.markdown(found, [f"peers/{name}.svg" for name in drawn]), "utf-8")
    for path, link in ((ROOT / "README.md", "docs/peers.md"), (ROOT / "docs" / "index.md", "peers.md")):
        path.write_text(report.replaced(path.read_text("utf-8"), short_table(found, link)), "utf-8")
    say("wrote docs/peers.md, docs/peers/, and the tables of README.md and docs/index.md")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: is everything there, and does it run?")
    parser.add_argument("--size", choices=list(SIZES), help="tiny, quick or full")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER")
    parser.add_argument("--out", type=Path, default=Path("bench-peers"))
    parser.add_argument("--record", action="store_true", help="write the tables of README.md and docs/ too")
    parser.add_argument(
        "--from",
        dest="earlier",
        type=Path,
        nargs="+",
        metavar="RESULTS",
        help="write the report of earlier runs' results.json; of a workload that several have, the last one counts",
    )
    shared = Path(os.environ.get("IVME_GRAPHS", ROOT.parent / "shared" / "data" / "graphs"))
    parser.add_argument("--graphs", type=Path, default=shared, help="where wiki-vote.txt is; otherwise a graph is made")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "tpch", help="where TPC-H is kept")
    options = parser.parse_args(arguments)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"the report cannot go to {options.out}: {error.strerror}; name another folder with --out")
    if options.earlier is not None:
        found = report.combined([report.from_json(file.read_text("utf-8")) for file in options.earlier])
        write(found, options.out)
    else:
        sizes = SIZES[options.size or ("quick" if options.quick else "full")]
        with tidy_when_stopped():
            found = measured(sizes, options.only, options.peers, options.graphs, options.data, options.out)
    if options.record:
        record(found)


if __name__ == "__main__":
    main()
