"""Copies of a database while it is used: a directory that can be opened as it is, or copied to where it is wanted.

Under the lock the tables' codes and the views' maps are copied, as for a snapshot; writers go on while these are
written. A copy is written beside its place and moved there when it is whole and on the disk.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.image import Image, image_of
from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import DamagedError, StorageError
from ivme.query.model import Table
from ivme.store import files, system
from ivme.store.contents import StoredView
from ivme.store.directory import DirectoryLock, holds_database, make_directory
from ivme.store.end_file import END, make_end_file
from ivme.store.opening import find_losses
from ivme.store.plain import plain_option
from ivme.store.segment import make_segment, segments_of
from ivme.store.snapshot import MANIFEST, Manifest, read_manifest, write_manifest, write_table
from ivme.store.view_file import write_image
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions


def write_backup(definitions: Definitions, path: Path) -> None:
    """Writes the database as it is now into a new directory; time and space linear in its tables and views."""
    with new_directory(path) as directory:
        runtime = definitions.runtime
        with runtime.lock:
            definitions.check_open()
            reclaim(runtime.catalog, now=True)  # an image has all values of dictionaries
            tables = {name: state.table for name, state in runtime.catalog.tables.items()}
            rows = {name: runtime.reader.all_rows(name, only_decodes=True) for name in tables}
            runtime.catalog.holders.update(rows.values())
            views = _stored_views(definitions)
            positions = tuple(runtime.catalog.positions.all().items())
            image = image_of(runtime.catalog)
        _write(directory, Manifest(uuid.uuid4().hex, 0, (), views, positions, has_end=True), tables, rows, image)


def restore_backup(backup: Path, path: Path) -> None:
    """Copies a database that is not open to a new directory; a damaged one is refused before anything is written.

    Any closed directory of a database can be copied so, not only one that `write_backup` made.
    """
    if not holds_database(backup):
        raise StorageError(f"there is no ivme database in {backup}; give a directory that db.backup has written")
    with new_directory(path) as directory:
        losses = find_losses(backup)
        if losses:
            raise DamagedError(f"{backup} is damaged, and nothing was restored: {'; '.join(losses)}")
        lock = DirectoryLock(backup)
        try:
            for name in database_files(backup):
                files.write_whole(directory / name, [files.read(backup / name)])
        finally:
            lock.release()


def database_files(directory: Path) -> list[str]:
    """The files that make a database; the manifest is the last."""
    manifest = read_manifest(directory)
    tables = [stored.file for stored in manifest.tables if stored.file is not None]
    image = [] if manifest.image is None else [manifest.image.file]
    end = [END] if manifest.has_end else []
    return [*tables, *image, *(path.name for path in segments_of(directory).values()), *end, MANIFEST]


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A directory beside the path to write into, which has the path's name once that is done; else it is gone.

    An empty directory at the path is replaced; anything else there is refused.
    """
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise StorageError(f"{path} exists already; give a new or an empty directory")
    beside = path.with_name(f".{path.name}-{uuid.uuid4().hex[:8]}{files.UNFINISHED}")
    try:
        make_directory(beside)
        yield beside
        system.sync_directory(beside)
        system.rename(beside, path)
        system.sync_directory(path.parent)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageError(f"{path} cannot be written: {error}") from error
        raise


def _stored_views(definitions: Definitions) -> tuple[StoredView, ...]:
    """The views as they were written; those of rings and of users' SQL are code, which is not stored."""
    if definitions.store is not None:
        there = {*definitions.views, *definitions.broken}
        return tuple(view for view in definitions.store.views.values() if view.name in there)
    return tuple(_stored(definitions, view) for view in definitions.views.values() if isinstance(view, View))


def _stored(definitions: Definitions, view: View) -> StoredView:
    query, options = view.made_with
    if not isinstance(query, str):
        raise StorageError(
            f"view {view.name} was not created from a string, so it cannot be stored in a directory; drop it"
        )
    kept = {option: plain_option(option, value) for option, value in options.items()}
    functions = [each.plain() for each in definitions.functions.called_by(view.name)]
    return StoredView(view.name, query, kept, None, functions)


def _write(
    directory: Path, manifest: Manifest, tables: Mapping[str, Table], rows: Mapping[str, RowBatch], image: Image | None
) -> None:
    stored = [write_table(directory, n, 0, table, rows[name]) for n, (name, table) in enumerate(tables.items())]
    maps = None if image is None else write_image(directory, manifest.identity, 0, image)
    make_end_file(directory, manifest.identity, make_segment(directory, manifest.identity, 1).end)
    write_manifest(directory, replace(manifest, tables=tuple(stored), image=maps))
