"""A directory with a database in it: who owns it, and what its files say.

lock                    held by the one process that has the database open
database.json           the snapshot: catalog, positions, names and checksums of the tables' files
table-N-L.arrow         the rows of a table when record L was the last
views-L.arrow           the maps of the views when record L was the last
log-F.ivme              the records from F on
end.ivme                how far the log is known to reach
"""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Callable
from pathlib import Path

from ivme.errors import DamagedError, StorageError
from ivme.store import system
from ivme.store.contents import Contents
from ivme.store.end_file import END, End, make_end_file, read_end
from ivme.store.files import UNFINISHED
from ivme.store.losses import Losses, copy_aside, move_aside
from ivme.store.segment import (
    NAME,
    SegmentReader,
    Tail,
    make_segment,
    segment_path,
    segments_of,
    settle,
    were_committed,
)
from ivme.store.snapshot import MANIFEST, TABLE_FILE, VIEW_FILE, Manifest, read_manifest, read_snapshot, write_manifest

_LOCK = "lock"


class DirectoryLock:
    """The right to use a directory, until it is released or the process ends."""

    def __init__(self, directory: Path) -> None:
        path = directory / _LOCK
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"{path} cannot be opened: {error}") from error
        self.release = weakref.finalize(self, os.close, descriptor)
        try:
            system.lock(descriptor)
        except BlockingIOError:
            owner = os.read(descriptor, 64).decode(errors="replace").strip()
            self.release()
            raise StorageError(
                f"{directory} is already open in process {owner or 'unknown'}; only one process at a time can open it"
            ) from None
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            self.release()
            raise StorageError(f"{path} cannot be written: {error}") from error


def make_directory(directory: Path) -> None:
    """Makes the directory, if it is not there, durably."""
    try:
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        for path in missing:
            system.sync_directory(path.parent)
    except (FileExistsError, NotADirectoryError) as error:
        raise StorageError(f"{directory} cannot be a database's directory: there is a file of that name") from error
    except OSError as error:
        raise StorageError(f"{directory} cannot be a database's directory: {error}") from error


def holds_database(directory: Path) -> bool:
    """Whether there is a database in a directory."""
    return (directory / MANIFEST).is_file()


def refuse_other_files(directory: Path) -> None:
    """Raises, before anything is written, if a directory has no database but files of somebody else."""
    if holds_database(directory):
        return
    strange = [
        name for name in _names(directory) if not NAME.fullmatch(name) and not _is_snapshot(name) and name != END
    ]
    if strange:
        raise StorageError(
            f"{directory} holds no ivme database, and {min(strange)} is in it; give an empty directory, or a new one"
        )


def _names(directory: Path) -> set[str]:
    """The files of a directory, without those that say nothing of a database."""
    return {path.name for path in directory.iterdir() if path.name != _LOCK and not path.name.endswith(UNFINISHED)}


def start(directory: Path) -> Manifest:
    """The manifest of a directory; that of an empty database, if there is none yet.

    What is there may not be durable yet, and files are removed because of it: names are synced first.
    """
    if holds_database(directory):
        manifest = read_manifest(directory)
        try:
            system.sync_directory(directory)
        except OSError as error:
            raise StorageError(f"{directory} cannot be synced: {error}") from error
        return manifest
    refuse_other_files(directory)
    if _names(directory) - {END, segment_path(directory, 1).name} or _has_records(directory):
        raise DamagedError(f"{directory / MANIFEST} is missing; restore it from a copy of the directory")
    manifest = Manifest(uuid.uuid4().hex, 0, has_end=True)
    make_end_file(directory, manifest.identity, make_segment(directory, manifest.identity, 1).end)
    write_manifest(directory, manifest)
    return manifest


def _has_records(directory: Path) -> bool:
    """Whether there is more than the first line in a log that was made just before a crash."""
    return any(path.stat().st_size > 256 for path in segments_of(directory).values())


def read_contents(
    directory: Path, manifest: Manifest, report: Callable[[int], None], losses: Losses
) -> tuple[Contents, list[Tail]]:
    """What the snapshot and the log behind it add up to, and the ends of the log's segments."""
    contents = read_snapshot(directory, manifest, report, losses)
    end = _read_end(directory, manifest, losses)
    segments = segments_of(directory)
    behind = {first: path for first, path in segments.items() if first > manifest.last}
    tails: list[Tail] = []
    expected = manifest.last + 1
    for first, path in (behind or {expected: segment_path(directory, expected)}).items():
        try:
            if first < expected and not list(SegmentReader(path, manifest.identity, first).records()):
                continue  # it was made and never used
            _check_gap(tails[-1].path if tails else segment_path(directory, expected), expected, first)
            reader = SegmentReader(path, manifest.identity, first, end)
        except DamagedError as error:
            losses.add(error)
            return contents, tails
        whole = _read_segment(reader, contents, losses)
        tails.append(reader.tail())
        report(len(reader.data))
        expected = tails[-1].last + 1
        if not whole:
            return contents, tails
    if end is not None and end.first > manifest.last and end.first not in segments:
        missing = f"; {were_committed(expected, end.last)}" if end.last >= expected else ""
        losses.add(DamagedError(f"{segment_path(directory, end.first)} is missing{missing}"))
    return contents, tails


def _read_end(directory: Path, manifest: Manifest, losses: Losses) -> End | None:
    """How far the log is known to reach; None if it is not known, in a directory of an older version of ivme."""
    if not manifest.has_end:
        return None
    try:
        return read_end(directory, manifest.identity)[1]
    except DamagedError as error:
        losses.add(error)
        return None


def _check_gap(before: Path, expected: int, first: int) -> None:
    """Refuses a segment that does not begin where the one before it ends."""
    if first > expected:
        missing = segment_path(before.parent, expected).name
        raise DamagedError(
            f"{before} is damaged: the records from {expected} to {first - 1} are missing; "
            f"they were in it, or in {missing}"
        )
    if first < expected:
        raise DamagedError(f"{before} is damaged: a segment after it begins with record {first}, before {expected}")


def _read_segment(reader: SegmentReader, contents: Contents, losses: Losses) -> bool:
    """Takes in the records of a segment; whether all of them could be read."""
    try:
        for record in reader.records():
            contents.add(record, reader.path)
    except DamagedError as error:
        losses.add(error)
        return False
    return True


def set_aside(directory: Path, manifest: Manifest, tails: list[Tail], losses: Losses) -> Tail:
    """Takes what cannot be read out of the way, and keeps it beside: its loss was accepted. The end of the log then."""
    for stored in manifest.tables:
        if stored.table.name in losses.tables and stored.file is not None and (directory / stored.file).exists():
            copy_aside(directory / stored.file)
    last = tails[-1].last if tails else manifest.last
    for first, path in segments_of(directory).items():
        if first > last and (not tails or path != tails[-1].path):
            move_aside(path)
    if not tails:
        return make_segment(directory, manifest.identity, manifest.last + 1)
    if tails[-1].torn:
        copy_aside(tails[-1].path)
    return tails[-1]


def sweep(directory: Path, manifest: Manifest, tail: Tail) -> None:
    """Takes away what a crash left: a torn end of the log, and files that the manifest does not name."""
    settle(tail)
    for first, path in segments_of(directory).items():
        if tail.first < first <= tail.last:
            _remove(path)
    remove_unneeded(directory, manifest)


def remove_unneeded(directory: Path, manifest: Manifest) -> None:
    """Removes our own files that the manifest does not need; others are left alone."""
    needed = {stored.file for stored in manifest.tables}
    needed |= {manifest.image.file} if manifest.image is not None else set()
    old = [path for first, path in segments_of(directory).items() if first <= manifest.last]
    for path in directory.iterdir():
        unfinished = path.name.endswith(UNFINISHED)
        if unfinished or (_is_snapshot(path.name) and path.name not in needed) or path in old:
            _remove(path)


def _is_snapshot(name: str) -> bool:
    return bool(TABLE_FILE.fullmatch(name) or VIEW_FILE.fullmatch(name))


def _remove(path: Path) -> None:
    try:
        system.remove(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"{path} is not needed any more and cannot be removed: {error}") from error
