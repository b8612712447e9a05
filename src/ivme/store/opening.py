"""Opening a directory: its rows go into a runtime, and its views are loaded, or built from them by the bulk path."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ivme.engine.image import Image
from ivme.engine.positions import Progress
from ivme.errors import DamagedError, IvmeError, StorageError
from ivme.store.contents import Contents, StoredView
from ivme.store.directory import DirectoryLock, make_directory, read_contents, start, sweep
from ivme.store.log import Durability, Log
from ivme.store.segment import segments_of
from ivme.store.snapshot import Manifest
from ivme.store.store import Store
from ivme.store.view_file import read_image

if TYPE_CHECKING:
    from ivme.database import Database

_logger = logging.getLogger("ivme.store")

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
            image = _image(path, manifest, database) if logged <= manifest.size else None
            try:
                fill(database, contents, image, advance)
            except DamagedError as error:
                file = "" if manifest.image is None else manifest.image.file
                raise DamagedError(f"{path / file} is damaged: {error}; remove it") from error
        if image is not None and image.missing:
            _logger.warning("%d maps of views were not in the snapshot of %s and were built", image.missing, path)
        older = sum(tail.place for tail in tails[:-1])
        log = Log(tails[-1], manifest.identity, chosen, older)
        return Store(path, lock, manifest, log, database._runtime, contents)
    except BaseException:
        lock.release()
        raise


def _image(path: Path, manifest: Manifest, database: Database) -> Image | None:
    """The views' maps of the snapshot; None, with a notice, if they cannot be used, as they follow from the tables."""
    try:
        return read_image(path, manifest, database._runtime.backend)
    except StorageError as error:
        _logger.warning("all views of %s are built from its tables: %s", path, error)
        return None


def fill(database: Database, contents: Contents, image: Image | None, advance: Advance) -> None:
    """Makes the tables with their rows, and the views in the order in which they were made.

    Without an image, rows are those of the snapshot and the log together, and all views are built from them. With one,
    views that were in the snapshot are loaded over its rows, and then take the changes of the log as one batch.
    """
    runtime = database._runtime
    advance("filling tables", len(contents.tables), 0)
    advance("building views", len(contents.views), 0)
    if image is not None:
        image.load_values(runtime.domains)
    for stored in contents.tables.values():
        with runtime.lock:
            runtime.add_table(stored.table)
            runtime.load({stored.table.name: stored.take_rows() if image is None else stored.take_snapshot()})
        advance("filling tables", 0, 1)
    for source, position in contents.positions.items():
        runtime.positions.advance(Progress(source, position))
    if image is not None:
        runtime.image = image
        known = [view for view in contents.views.values() if view.name not in contents.new_views]
        _make_views(database, known, contents.views, advance)
        runtime.image = None
        changed = [stored for name, stored in contents.tables.items() if name in contents.changed]
        runtime.load({stored.table.name: stored.take_changes() for stored in changed})
    missing = [view for view in contents.views.values() if view.name not in database.views]
    _make_views(database, missing, contents.views, advance)


def _make_views(
    database: Database, views: Iterable[StoredView], stored: dict[str, StoredView], advance: Advance
) -> None:
    for view in views:
        try:
            _restore(database, view, stored)
        except DamagedError:
            raise
        except IvmeError as error:
            raise StorageError(f"view {view.name} cannot be built again: {error}") from error
        advance("building views", 0, 1)


def _restore(database: Database, view: StoredView, stored: dict[str, StoredView]) -> None:
    """Makes a view again, by its stored plan if that can be used; the next snapshot has the plan that it has now."""

    def keep(plan: str) -> None:
        stored[view.name] = replace(view, plan=plan)

    database._create_view(view.name, view.query, view.read_options(), view.plan, keep)


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
