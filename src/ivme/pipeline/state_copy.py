"""A copy of a pipeline's state in an object store, from which another machine goes on.

The copy is brought up to date before sinks write a batch: it then has all that any sink may have, and a driver that
starts from it gives sinks what they lack, as after any crash. Logs of the database are append-only, so that a batch
costs the bytes that it added to them, a copy of the journal, and what was stored of the batch. A copy is a list of
files, each made of objects that never change; the newest list that is whole counts. Two drivers would write to the same
sinks: each has an epoch, and one that meets a greater epoch stops before it writes anything more.

With shards the tables are in their checkpoint. One in the state is copied with it; one elsewhere stays there, and is
ahead of a copy: so the copy is brought up to date before shards take a batch, too, and knows all that they may have.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from ivme.errors import PipelineError
from ivme.pipeline.journal import RunJournal
from ivme.store.backup import database_files
from ivme.store.snapshot import MANIFEST

_JOURNAL, _DATABASE = "journal.sqlite", "database"
_FOLDERS = ("taken", "quarantine", "streams", "widening")
_SHARDS = "shards"
_STEPS = ("database.json", "records", "steps", "catalogs", "snapshots", "consumers")
"""What belongs to the checkpoint of shards; the rest of its folder is about processes that run."""
_LOG = "log-"
_KEPT = 2
"""How many lists are stored; objects that none of them names are deleted."""

_ATTEMPTS = 5
_SMALL = 1 << 16
"""Files up to this size are copied each time: whether they were written again is not asked of the clock."""


@dataclass(frozen=True, slots=True)
class _Copied:
    """A file as it was copied: its objects, its size, and when it was written."""

    objects: tuple[str, ...]
    size: int
    written: int


class StateCopy:
    """The copy of one state. `claim` comes first, and `save` whenever sinks are about to write."""

    def __init__(self, address: str, state: Path) -> None:
        self._state = state
        try:
            is_address = "://" in address
            found = fs.FileSystem.from_uri(address) if is_address else (fs.LocalFileSystem(), address)
        except (ValueError, OSError) as error:
            raise PipelineError(f"the state cannot be copied to {address}: {error}") from error
        self._store, self._root = found[0], found[1].rstrip("/")
        self._files: dict[str, _Copied] = {}
        self._epoch = self._objects = self._lists = 0

    # On another machine

    def restore(self) -> bool:
        """Makes the state from the copy, if there is a copy and no state; whether it did."""
        if (self._state / _JOURNAL).exists():
            return False
        found = next(iter(self._whole_lists()), None)
        if found is None:
            return False
        beside = self._state.with_name(f".{self._state.name}.restoring")
        shutil.rmtree(beside, ignore_errors=True)
        for name, objects in found["files"].items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for each in objects:
                    file.write(self._read(f"objects/{each}"))
                file.flush()
                os.fsync(file.fileno())
        if self._state.exists():
            shutil.rmtree(self._state)
        beside.rename(self._state)
        return True

    def claim(self) -> None:
        """Takes the next epoch: a driver that had the state before stops."""
        self._epoch = max(self._epochs(), default=0) + 1
        self._write(f"epochs/{self._epoch:012d}", b"")
        self._lists = max((number for number, _ in self._list_names()), default=0)

    # While it runs

    def save(self, journal: RunJournal) -> None:
        """Brings the copy up to date; between two batches, when nothing is written."""
        if max(self._epochs(), default=0) > self._epoch:
            raise PipelineError(
                f"another driver has taken over the state that is copied to {self._root}; nothing more is written here"
            )
        now = {_JOURNAL: _Copied((self._put(journal.contents()),), 0, 0)}
        for name, path in self._present():
            now[name] = self._copied(name, path)
        self._lists += 1
        whole = {"epoch": self._epoch, "files": {name: copied.objects for name, copied in now.items()}}
        self._write(f"lists/{self._lists:012d}.json", json.dumps(whole).encode())
        self._files = now
        self._forget()

    def _present(self) -> Iterator[tuple[str, Path]]:
        """The files of the state; a database that writes a snapshot meanwhile is looked at again."""
        for attempt in range(_ATTEMPTS):
            folder = self._state / _DATABASE
            names = _files(folder)
            if names == _files(folder) and all((folder / name).exists() for name in names):
                break
            if attempt == _ATTEMPTS - 1:
                raise PipelineError(f"the files of {folder} change all the time and cannot be copied")
        yield from ((f"{_DATABASE}/{name}", self._state / _DATABASE / name) for name in names)
        for part in (*_FOLDERS, *(f"{_SHARDS}/{each}" for each in _STEPS)):
            found = [self._state / part] if (self._state / part).is_file() else (self._state / part).rglob("*")
            for path in sorted(path for path in found if path.is_file()):
                yield path.relative_to(self._state).as_posix(), path

    def _copied(self, name: str, path: Path) -> _Copied:
        """A file with the objects that it consists of; of one that only grows, what is new is one more."""
        stat, before = path.stat(), self._files.get(name)
        is_same = before is not None and (stat.st_size, stat.st_mtime_ns) == (before.size, before.written)
        never_changes = name.startswith((f"{_SHARDS}/records/", f"{_SHARDS}/steps/", f"{_SHARDS}/snapshots/"))
        if before is not None and is_same and (stat.st_size > _SMALL or never_changes):
            return before
        start = before.size if before is not None and path.name.startswith(_LOG) and stat.st_size > before.size else 0
        with path.open("rb") as file:
            file.seek(start)
            made = self._put(file.read(stat.st_size - start))
        objects = (*before.objects, made) if before is not None and start else (made,)
        return _Copied(objects, stat.st_size, stat.st_mtime_ns)

    def _put(self, content: bytes) -> str:
        self._objects += 1
        name = f"{self._epoch:06d}-{self._objects:012d}"
        self._write(f"objects/{name}", content)
        return name

    def _forget(self) -> None:
        """Deletes what no list of the last ones names."""
        lists = sorted(self._list_names())
        for _, name in lists[:-_KEPT]:
            self._store.delete_file(f"{self._root}/lists/{name}")
        used = {each for found in self._whole_lists() for objects in found["files"].values() for each in objects}
        for name in self._names("objects"):
            if name not in used:
                self._store.delete_file(f"{self._root}/objects/{name}")

    # The store

    def _whole_lists(self) -> Iterator[dict[str, Any]]:
        """The lists that can be read, the newest first; one that was being written when a machine ended cannot."""
        for _, name in sorted(self._list_names(), reverse=True):
            try:
                yield json.loads(self._read(f"lists/{name}"))
            except json.JSONDecodeError:
                continue

    def _list_names(self) -> Iterator[tuple[int, str]]:
        return ((int(name.removesuffix(".json")), name) for name in self._names("lists"))

    def _epochs(self) -> list[int]:
        return [int(name) for name in self._names("epochs")]

    def _names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True)
        return [info.base_name for info in self._store.get_file_info(selector) if info.type == fs.FileType.File]

    def _read(self, name: str) -> bytes:
        with self._store.open_input_stream(f"{self._root}/{name}") as file:
            content: bytes = file.read()
            return content

    def _write(self, name: str, content: bytes) -> None:
        if isinstance(self._store, fs.LocalFileSystem):
            Path(f"{self._root}/{name}").parent.mkdir(parents=True, exist_ok=True)
        with self._store.open_output_stream(f"{self._root}/{name}") as file:
            file.write(content)


def _files(folder: Path) -> list[str]:
    """The files of an embedded database; none if shards have the tables."""
    return database_files(folder) if (folder / MANIFEST).exists() else []
