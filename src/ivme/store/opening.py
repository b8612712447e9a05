"""Opening a directory: its rows go into a runtime, and its views are built from them by the bulk path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ivme.engine.positions import Progress
from ivme.errors import IvmeError, StorageError
from ivme.store.contents import Contents
from ivme.store.directory import DirectoryLock, make_directory, read_contents, start, sweep
from ivme.store.log import Durability, Log
from ivme.store.segment import segments_of
from ivme.store.store import Store

if TYPE_CHECKING:
    from ivme.database import Database

Advance = Callable[[str, int, int], None]
"""Takes the name of a stage, how much more there is to do in it, and how much more has been done."""


def open_store(path: Path, durability: str, database: Database) -> Store:
    """Fills an empty database with what a directory holds; the store that keeps it from now on."""
    chosen: Durability | None = next((each for each in get_args(Durability) if each == durability), None)
    if chosen is None:
        raise StorageError(f"durability must be 'sync' or 'async'; it is {durability!r}")
    make_directory(path)
    lock = DirectoryLock(path)
    try:
        manifest = start(path)
        logged = sum(file.stat().st_size for first, file in segments_of(path).items() if first > manifest.last)
        with progress_bar() as advance:
            advance("reading", manifest.size + logged, 0)
            contents, tails = read_contents(path, manifest, lambda read: advance("reading", 0, read))
            sweep(path, manifest, tails[-1])
            fill(database, contents, advance)
        older = sum(tail.place for tail in tails[:-1])
        log = Log(tails[-1], manifest.identity, chosen, older)
        return Store(path, lock, manifest, log, database._runtime, contents)
    except BaseException:
        lock.release()
        raise


def fill(database: Database, contents: Contents, advance: Advance) -> None:
    """Makes the tables with their rows, and the views in the order in which they were made."""
    runtime = database._runtime
    advance("filling tables", len(contents.tables), 0)
    advance("building views", len(contents.views), 0)
    for stored in contents.tables.values():
        with runtime.lock:
            runtime.add_table(stored.table)
            runtime.load(stored.table.name, *stored.changes())
        advance("filling tables", 0, 1)
    for source, position in contents.positions.items():
        runtime.positions.advance(Progress(source, position))
    for view in contents.views.values():
        try:
            database.create_view(view.name, view.query, **view.read_options())
        except IvmeError as error:
            raise StorageError(f"view {view.name} cannot be built again: {error}") from error
        advance("building views", 0, 1)


@contextmanager
def progress_bar() -> Iterator[Advance]:
    """Shows how far the stages are, if a person looks at a terminal."""
    if not sys.stderr.isatty():
        yield lambda _stage, _more, _done: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def advance(stage: str, more: int, done: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=0)
            task = bar.tasks[tasks[stage]]
            bar.update(tasks[stage], total=(task.total or 0) + more, advance=done)

        yield advance
