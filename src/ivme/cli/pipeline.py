"""The commands that take a pipeline file: run, plan, status, replay, serve, verify and explain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ivme.cli.directory import is_directory, verify_directory
from ivme.cli.errors import errors_shown
from ivme.cli.open_pipeline import answering, opened, whole_files
from ivme.errors import PipelineError, ServeError

if TYPE_CHECKING:
    from ivme.database import Database
    from ivme.pipeline import Pipeline
    from ivme.serve.settings import Settings
    from ivme.shards.state import ShardedState
    from ivme.spark.pipeline.driver import Driver
    from ivme.spark.pipeline.events import Event, Refused, Report
    from ivme.spark.pipeline.verify import Compared

_FILE = typer.Argument(metavar="PIPELINE", help="A pipeline file (.yml).")
MASTER = typer.Option(help="Spark's master, such as local[4] or spark://host:7077; local[*] if not given.")
MEMORY_LIMIT = typer.Option(
    metavar="SIZE", help="The most memory of the database, such as 2GB; a batch or view beyond it is refused."
)
REMOTE = typer.Option(help="The address of a Spark Connect server, such as sc://host.")


def add_pipeline_commands(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command()(run)
    app.command()(plan)
    app.command()(status)
    app.command()(replay)
    app.command()(backfill)
    app.command()(verify)


def run(
    pipeline: Annotated[Path, _FILE],
    once: Annotated[bool, typer.Option("--once", help="Catch up with all sources, then stop.")] = False,
    master: Annotated[str | None, MASTER] = None,
    remote: Annotated[str | None, REMOTE] = None,
    memory_limit: Annotated[str | None, MEMORY_LIMIT] = None,
    every: Annotated[str | None, typer.Option(help="How often to look for changes, such as '5 minutes'.")] = None,
    metrics: Annotated[int | None, typer.Option(metavar="PORT", help="Serve Prometheus on this port.")] = None,
    json_log: Annotated[bool, typer.Option("--json", help="Report each batch as a line of JSON.")] = False,
) -> None:
    """Run a pipeline on Spark.

    It loads the tables, maintains the views, and writes the sinks, each change exactly once.

    Stop it with Ctrl-C or SIGTERM; the next run continues where it stopped.
    """
    from rich.console import Console

    with errors_shown(failure=1):
        from ivme.pipeline import read_pipeline
        from ivme.pipeline.delays import read_delay

        found = read_pipeline(pipeline)
        pause = None if every is None else read_delay(every).total_seconds()
        from ivme.spark.pipeline.events import Refused
        from ivme.spark.pipeline.metrics import RunMetrics, json_lines, served_metrics
        from ivme.spark.pipeline.progress import Progress
        from ivme.spark.pipeline.runner import run as run_driver
        from ivme.spark.pipeline.runner import stopped_by_signals

        console = Console(stderr=json_log)
        progress, counted = Progress(console), RunMetrics(found.name, found.state)
        shown: Report = json_lines() if json_log else progress

        refused: list[Refused] = []

        def report(event: Event) -> None:
            counted(event)
            shown(event)
            if isinstance(event, Refused) and not event.rows:
                refused.append(event)

        with (
            opened(found, master, remote, report, memory_limit, progress.opening()) as driver,
            answering(driver),
            stopped_by_signals() as stop,
            served_metrics(counted, metrics) as port,
        ):
            console.print(
                f"{found.name} is at batch {driver.reached}; its state is in {found.state}",
                markup=False,
                soft_wrap=True,
            )
            if port is not None:
                console.print(f"metrics are on http://127.0.0.1:{port}/metrics", markup=False)
            with progress.shown():
                run_driver(driver, once=once, stop=stop, pause=pause)
            told_end = "caught up" if json_log else progress.summary(driver.outlets.rewritten)
            console.print(f"{told_end}; at batch {driver.reached}", markup=False, highlight=False, soft_wrap=True)
            for line in whole_files(refused, pipeline):
                console.print(line, markup=False, highlight=False, soft_wrap=True, style="bold red")


def status(
    pipeline: Annotated[Path, _FILE],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show batches, sinks and quarantine of a pipeline.

    Needs neither Spark nor Java, and does not disturb a run.
    """
    with errors_shown(failure=1):
        from ivme.pipeline import read_pipeline
        from ivme.pipeline.status import status as known_status
        from ivme.pipeline.status import told_status

        found = known_status(read_pipeline(pipeline))
        print(json.dumps(found, indent=2) if as_json else "\n".join(told_status(found)))


def replay(
    pipeline: Annotated[Path, _FILE],
    table: Annotated[str | None, typer.Option(help="Only the changes of this table.")] = None,
    master: Annotated[str | None, MASTER] = None,
    remote: Annotated[str | None, REMOTE] = None,
) -> None:
    """Try refused rows and files of a pipeline's quarantine again.

    Rows that can be applied now are applied, exactly once, and reach the sinks; the others stay in quarantine, each
    with its reason. Fix the cause first: add the row that a delete needs, or delete the row with the same key.

    Files that were refused whole are tried again if they are where they were: correct the pipeline's file first.
    """
    with errors_shown(failure=1):
        from ivme.pipeline import read_pipeline

        found = read_pipeline(pipeline)
        names = [source.table.name for source in found.tables]
        if table is not None and table not in names:
            raise PipelineError(f"{found.file} has no table {table}; there are: {', '.join(names)}")
        from ivme.shown_table import counted
        from ivme.spark.pipeline.redelivery import redeliver, retry_files

        with opened(found, master, remote, lambda _: None) as driver:
            for name in names if table is None else [table]:
                done = redeliver(driver, name)
                if done.taken or done.waiting:
                    folder = driver.quarantine.folder / name
                    print(f"{name}: {done.taken:,} taken, {done.waiting:,} waiting in {folder}")
                files = retry_files(driver, name)
                if files.tried:
                    taken = counted(files.tried - files.refused, "file")
                    print(f"{name}: {taken} taken, {files.refused:,} refused again")
            driver.outlets.flush(driver.reached)


def backfill(
    pipeline: Annotated[Path, _FILE],
    table: Annotated[str, typer.Argument(help="The table to load again.")],
    column: Annotated[str, typer.Option(help="The column of dates or timestamps that selects the rows.")],
    start: Annotated[str, typer.Option("--from", help="The start of the range, such as 2026-11-01.")],
    end: Annotated[str, typer.Option("--to", help="The end of the range, exclusive.")],
    master: Annotated[str | None, MASTER] = None,
    remote: Annotated[str | None, REMOTE] = None,
) -> None:
    """Load a time range of a table again from its source.

    The difference is one batch, which the sinks get once. Stop the pipeline first; it continues afterwards.
    """
    with errors_shown(failure=1):
        from ivme.pipeline import read_pipeline

        found = read_pipeline(pipeline)
        from ivme.spark.pipeline.backfill import backfill as load_again
        from ivme.spark.pipeline.backfill import read_range

        wanted = read_range(found, table, column, start, end)
        with opened(found, master, remote, lambda _: None) as driver:
            done = load_again(driver, wanted)
            from ivme.shown_table import counted

            removed = counted(done.removed, "row")
            print(f"{table}: {removed} removed and {done.added:,} added; at batch {driver.reached}")


def plan(pipeline: Annotated[Path, _FILE]) -> None:
    """Show what the next run of a pipeline will change.

    It compares the pipeline's file with its state: what will be created, built, loaded and rewritten.

    Needs neither Spark nor Java, and changes nothing. The exit status is 1 if the run would be refused.
    """
    with errors_shown(failure=1):
        from ivme.pipeline import read_pipeline
        from ivme.pipeline.journal import RunJournal
        from ivme.pipeline.plan_changes import missing_sources, planned_steps

        found = read_pipeline(pipeline)
        path = found.state / "journal.sqlite"
        journal = RunJournal(path if path.exists() else None)
        try:
            steps = [*planned_steps(found, journal), *missing_sources(found, journal)]
        finally:
            journal.close()
        print(*map(str, steps), sep="\n", end="\n" if steps else "nothing differs from the state\n")
        if any(step.refused for step in steps):
            raise typer.Exit(1)


def serve_pipeline(
    path: Path,
    settings: Settings,
    durability: str,
    master: str | None,
    remote: str | None,
    memory_limit: str | None = None,
) -> None:
    """Runs a pipeline, and serves its database meanwhile; both end between two batches."""
    from rich.console import Console

    from ivme.pipeline import read_pipeline
    from ivme.serve.server import serving

    if durability != "sync":
        raise ServeError("a pipeline's state is always written at once; leave --durability out")
    found = read_pipeline(path)
    from ivme.spark.pipeline.progress import Progress
    from ivme.spark.pipeline.runner import run as run_driver
    from ivme.spark.pipeline.runner import stopped_by_signals

    console = Console()
    progress = Progress(console)
    with (
        opened(found, master, remote, progress, memory_limit, progress.opening()) as driver,
        answering(driver),
        stopped_by_signals() as stop,
        serving(_served(driver), replace(settings, owner=_owner(path, found))) as address,
    ):
        console.print(f"serving {found.name} on {address}; it is at batch {driver.reached}", markup=False)
        with progress.shown():
            run_driver(driver, once=False, stop=stop)
        told = progress.summary(driver.outlets.rewritten)
        console.print(f"{told}; at batch {driver.reached}", markup=False, highlight=False, soft_wrap=True)


def _served(driver: Driver) -> Database | ShardedState:
    from ivme.database import Database as Embedded

    if driver.sharded is not None:
        return driver.sharded
    assert isinstance(driver.database, Embedded), "there is no third one"
    return driver.database


def _owner(path: Path, pipeline: Pipeline) -> str:
    """What is said to others: a change of theirs would be in no batch, so that sinks and `verify` would go wrong."""
    return (
        f"this server belongs to the pipeline {pipeline.name}, which alone can change its tables and views: write "
        f"to its sources, or change {path.name} and start it again"
    )


def verify(
    target: Annotated[Path, typer.Argument(metavar="PIPELINE|DIR", help="A pipeline file, or a database's directory.")],
    master: Annotated[str | None, MASTER] = None,
    remote: Annotated[str | None, REMOTE] = None,
) -> None:
    """Recompute every view, and compare.

    For a pipeline, plain Spark SQL recomputes the views from the sources. For the directory of a database, every
    checksum is tested, and another engine recomputes the views from the tables.
    """
    with errors_shown(failure=1):
        if is_directory(str(target)):
            for line in verify_directory(target):
                print(line)
            return
        from ivme.pipeline import read_pipeline

        found = read_pipeline(target)
        from ivme.spark.pipeline.verify import verify_pipeline

        wrong = False
        with opened(found, master, remote, lambda _: None) as driver:
            for compared in verify_pipeline(driver):
                wrong |= bool(compared.differences)
                print(told(compared))
        if wrong:
            raise typer.Exit(1)


def told(compared: Compared) -> str:
    """The outcome for one view, and the rows that only one side has."""
    from ivme.shown_table import counted

    verdict = "DIFFERS" if compared.differences else "equal"
    how = f"computed by Spark in {compared.seconds:.1f} s" if not compared.note else compared.note
    first = f"{compared.name}: {verdict}, {counted(compared.rows, 'row')}, {how}"
    asked = [f"  in Spark's words: {' '.join(compared.text.split())}"] if compared.text else []
    return "\n".join([first, *asked, *(f"  {difference}" for difference in compared.differences)])


def is_pipeline(text: str) -> bool:
    """Whether an argument names a pipeline file."""
    return text.lower().endswith((".yml", ".yaml")) and "\n" not in text


def explain_pipeline(path: Path, *, as_json: bool) -> None:
    """Prints what a pipeline does, and how each of its views is maintained."""
    from ivme.database import Database
    from ivme.pipeline import read_pipeline
    from ivme.pipeline.read import declare_all
    from ivme.plan.explain.as_text import lower_bound_lines, summary_lines

    pipeline = read_pipeline(path)
    with Database(functions=pipeline.functions) as database:
        declare_all(pipeline, database)
        found = {view.name: database.view(view.name).explain() for view in pipeline.views}
        spread = _spread(pipeline, database)
    found = {name: replace(each, remarks=(*each.remarks, *spread.get(name, ()))) for name, each in found.items()}
    if as_json:
        content = {"flow": list(flow(pipeline)), "views": {name: e.to_dict() for name, e in found.items()}}
        print(json.dumps(content, ensure_ascii=False, indent=2))
        return
    print(*flow(pipeline), sep="\n")
    for view in pipeline.views:
        print(f"\n{view.name}\n{'─' * len(view.name)}")
        explanation = found[view.name]
        shares = list(spread.get(view.name, ()))
        said = (view.query.strip().split("\n"), summary_lines(explanation), shares, lower_bound_lines(explanation))
        for lines in said:
            print(*(f"  {line}" for line in lines), sep="\n", end="\n\n" if lines else "")


def _spread(pipeline: Pipeline, database: Database) -> dict[str, tuple[str, ...]]:
    """How views are spread over the shards of a pipeline, if it has some."""
    if pipeline.engine is None:
        return {}
    from ivme.pipeline.read_engine import explained

    return dict(explained(pipeline, database))


def flow(pipeline: Pipeline) -> Iterator[str]:
    """The pipeline as lines: where rows come from, and where they go."""
    if pipeline.engine is not None:
        yield f"{pipeline.shards} shards on Spark's hosts, checkpoint in {pipeline.checkpoint}"
    for source in pipeline.tables:
        parts: list[Any] = [f"table {source.table.name}"]
        if source.load is not None:
            parts.append(f"loaded from {source.load.format} {source.load.path or ''}".rstrip())
        if source.changes is not None:
            rows = source.changes.rows
            parts.append(f"changed by {source.changes.kind} {rows.path or rows.format}")
        yield ", ".join(parts)
    for view in pipeline.views:
        sinks = [f"{sink.mode} to {sink.format} {sink.path or ''}".rstrip() for sink in pipeline.sinks_of(view.name)]
        yield f"view {view.name}{' → ' if sinks else ''}{'; '.join(sinks)}"
