"""Opening a directory: its rows go into a runtime, and its views are loaded, or built from them by the bulk path."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ivme.engine.runtime.image import Image
from ivme.engine.runtime.positions import Progress
from ivme.errors import DamagedError, MemoryLimitError, StorageError
from ivme.store.broken_views import make_views
from ivme.store.contents import Contents
from ivme.store.directory import (
    DirectoryLock,
    make_directory,
    read_contents,
    refuse_other_files,
    set_aside,
    start,
    sweep,
)
from ivme.store.end_file import EndFile, make_end_file
from ivme.store.log import Durability, Log
from ivme.store.losses import Losses
from ivme.store.segment import LOG_VERSION, Tail, make_segment, segments_of
from ivme.store.snapshot import Manifest, write_manifest
from ivme.store.store import LOG_TO_TABLES, Store
from ivme.store.view_file import read_image

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions

_logger = logging.getLogger("ivme.store")

Advance = Callable[[str, int, int], None]
"""Takes the name of a stage, how much more there is to do in it, and how much more has been done."""


def open_store(path: Path, durability: str, definitions: Definitions, *, accept_loss: bool = False) -> Store:
    """Fills an empty database with what a directory holds; the store that keeps it from now on.

    With `accept_loss`, what cannot be read is done without: it is set aside, and a snapshot has what is left.
    """
    chosen: Durability | None = next((each for each in get_args(Durability) if each == durability), None)
    if chosen is None:
        raise StorageError(f"durability must be 'sync' or 'async'; it is {durability!r}")
    make_directory(path)
    refuse_other_files(path)
    lock = DirectoryLock(path)
    try:
        manifest = start(path)
        losses = Losses(path, accepted=accept_loss)
        with progress_bar() as advance:
            contents, tails = _read(path, manifest, losses, advance)
            tail = set_aside(path, manifest, tails, losses) if losses.found else tails[-1]
            sweep(path, manifest, tail)
            _fill(path, manifest, definitions, contents, losses, advance)
        found = _found(contents, tail)
        if tail.version < LOG_VERSION:
            tail = make_segment(path, manifest.identity, tail.last + 1)
        manifest, end = _mark_end(path, manifest, tail, anew=bool(losses.found))
        older = sum(each.place for each in tails if each.path != tail.path)
        log = Log(tail, manifest.identity, chosen, older, end, contents.changed)
        store = Store(path, lock, manifest, log, definitions.runtime, contents, definitions.broken, found)
        if losses.found:
            _logger.warning("what is left of %s was opened: %s", path, "; ".join(losses.found))
            store.snapshot()
        return store
    except MemoryLimitError as error:
        lock.release()
        raise MemoryLimitError(f"{path} cannot be opened: {error}") from error
    except BaseException:
        lock.release()
        raise


def _found(contents: Contents, tail: Tail) -> str:
    """How the log ended."""
    ended = f"it was closed after record {tail.last}" if contents.closed else f"its log ends with record {tail.last}"
    torn = f"; {tail.torn} bytes after that are not a committed record and were cut off" if tail.torn else ""
    return ended + torn


def find_losses(path: Path) -> list[str]:
    """What cannot be read of a directory, without changing it."""
    lock = DirectoryLock(path)
    try:
        losses = Losses(path, accepted=True)
        with progress_bar() as advance:
            _read(path, start(path), losses, advance)
        return losses.found
    finally:
        lock.release()


def _read(path: Path, manifest: Manifest, losses: Losses, advance: Advance) -> tuple[Contents, list[Tail]]:
    advance("reading", manifest.size + _logged(path, manifest), 0)
    return read_contents(path, manifest, lambda read: advance("reading", 0, read), losses)


def _logged(path: Path, manifest: Manifest) -> int:
    """The bytes of the log behind the snapshot."""
    return sum(file.stat().st_size for first, file in segments_of(path).items() if first > manifest.last)


def _mark_end(path: Path, manifest: Manifest, tail: Tail, *, anew: bool) -> tuple[Manifest, EndFile]:
    """States that the log reaches its tail, which is durable; the manifest of an older directory learns of the file."""
    if anew or not manifest.has_end:
        make_end_file(path, manifest.identity, tail.end)
    if not manifest.has_end:
        manifest = replace(manifest, has_end=True)
        write_manifest(path, manifest)
    end = EndFile(path, manifest.identity)
    end.move(tail.end)
    return manifest, end


def _fill(
    path: Path, manifest: Manifest, definitions: Definitions, contents: Contents, losses: Losses, advance: Advance
) -> None:
    loads = _logged(path, manifest) <= LOG_TO_TABLES * manifest.size and not losses.found
    image = _image(path, manifest, definitions) if loads else None
    try:
        fill(definitions, contents, image, advance)
    except DamagedError as error:
        file = "" if manifest.image is None else manifest.image.file
        raise DamagedError(f"{path / file} is damaged: {error}; remove it") from error
    if image is not None and image.missing:
        _logger.warning("%d maps of views were not in the snapshot of %s and were built", image.missing, path)
    for name, reason in definitions.broken.items():
        _logger.warning("view %s of %s is broken: %s", name, path, reason)


def _image(path: Path, manifest: Manifest, definitions: Definitions) -> Image | None:
    """The views' maps of the snapshot; None, with a notice, if they cannot be used, as they follow from the tables."""
    try:
        return read_image(path, manifest, definitions.runtime.backend)
    except StorageError as error:
        _logger.warning("all views of %s are built from its tables: %s", path, error)
        return None


def fill(definitions: Definitions, contents: Contents, image: Image | None, advance: Advance) -> None:
    """Makes the tables with their rows, and the views in the order in which they were made.

    Without an image, rows are those of the snapshot and the log together, and all views are built from them. With one,
    views that were in the snapshot are loaded over its rows, and then take the changes of the log as one batch.
    """
    runtime = definitions.runtime
    advance("filling tables", len(contents.tables), 0)
    advance("building views", len(contents.views), 0)
    runtime.catalog.image = image
    if image is not None:
        image.load_values(runtime.domains)
    for stored in contents.tables.values():
        with runtime.lock:
            runtime.installation.add_table(stored.table)
            runtime.load({stored.table.name: stored.take_rows() if image is None else stored.take_snapshot()})
        advance("filling tables", 0, 1)
    for source, position in contents.positions.items():
        runtime.catalog.positions.advance(Progress(source, position))
    if image is not None:
        _load_views(definitions, contents, advance)
    views = [view for view in contents.views.values() if view.name not in definitions.views]
    make_views(definitions, views, contents.views, lambda: advance("building views", 0, 1))


def _load_views(definitions: Definitions, contents: Contents, advance: Advance) -> None:
    """Loads the views of the snapshot, and lets them take the changes of the log.

    If one of them cannot, all of them are taken away again: they are then built one by one, each for itself.
    """
    runtime = definitions.runtime
    old = [view for view in contents.views.values() if view.name not in contents.new_views]
    make_views(definitions, old, contents.views, lambda: advance("building views", 0, 1))
    runtime.catalog.image = None
    changed = [stored for name, stored in contents.tables.items() if name in contents.changed]
    changes = {stored.table.name: stored.take_changes() for stored in changed}
    try:
        runtime.load(changes)
    except Exception as error:
        _logger.warning("views cannot take the changes of the log, and are built: %s", error)
        for name in reversed(tuple(definitions.views)):
            definitions.drop_view(name)
        runtime.load(changes)


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
