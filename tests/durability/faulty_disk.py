"""A file system that fails: it stands in for `ivme.store.system` over a real directory.

Calls go through to the real files, so that a process that is killed and started again finds what it wrote. Beside them
the disk keeps what would survive a loss of power: the contents of each file as of its last sync, and the names as of
the last sync of the directory. What came later may have reached the disk in any part and order: any subset of the
names' changes, and any subset of the sectors that were written.

A sync that fails loses what it was to write, as Linux does: later reads still see it, and later syncs do not write it.
"""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ivme.store import system

CALLS = (
    "read",
    "create",
    "open_to_write",
    "write",
    "truncate",
    "sync",
    "sync_data",
    "rename",
    "remove",
    "sync_directory",
)
SECTOR = 512
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC}


class Crash(BaseException):
    """The end of the process."""


class File:
    """A file: what the disk has for sure, and what was done to it since."""

    def __init__(self, content: bytes = b"") -> None:
        self.durable = content
        self.pending: list[tuple[str, int, bytes]] = []

    def sync(self) -> None:
        for change in self.pending:
            self.durable = _applied(self.durable, change)
        self.pending = []

    def some(self, choose: random.Random, share: float) -> bytes:
        """What the disk may have after a loss of power."""
        content = self.durable
        for kind, place, data in self.pending:
            if kind == "truncate":
                if choose.random() < share:
                    content = _applied(content, (kind, place, data))
                continue
            start = place
            while start < place + len(data):
                stop = min((start // SECTOR + 1) * SECTOR, place + len(data))
                if choose.random() < share:
                    content = _applied(content, (kind, start, data[start - place : stop - place]))
                start = stop
        return content


def _applied(content: bytes, change: tuple[str, int, bytes]) -> bytes:
    kind, place, data = change
    if kind == "truncate":
        return content[:place].ljust(place, b"\0")
    return content[:place].ljust(place, b"\0") + data + content[place + len(data) :]


class Disk:
    """The files of one directory. `faults` are what happens at a call, by its number counted from now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls = 0
        self.faults: dict[int, str] = {}
        self.happened: Counter[str] = Counter()
        self.dead = False
        self._real = {name: getattr(system, name) for name in (*CALLS, "close")}
        self._open: dict[int, File] = {}
        found = [each for each in path.iterdir() if each.name != "lock"] if path.exists() else []
        self.names = {each.name: File(each.read_bytes()) for each in found}
        self.durable_names = dict(self.names)
        self.pending: list[tuple[str, str, File | None]] = []

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """The store works on this disk."""
        with pytest.MonkeyPatch.context() as patch:
            for name in (*CALLS, "close"):
                patch.setattr(system, name, getattr(self, name))
            yield

    def plan(self, faults: Mapping[int, str]) -> None:
        """What is to happen at the calls from now on."""
        self.calls, self.faults = 0, dict(faults)

    def without_power(self, image: Path, choose: random.Random) -> Disk:
        """Another disk, with what may be left of this one after a loss of power."""
        share = choose.choice([0.0, 0.5, 0.9, 1.0])
        names: dict[str, File] = dict(self.durable_names)
        for kind, name, file in self.pending:
            if choose.random() < share:
                if kind == "unlink":
                    names.pop(name, None)
                else:
                    assert file is not None
                    names[name] = file
        image.mkdir()
        for name, file in names.items():
            (image / name).write_bytes(file.some(choose, share))
        return Disk(image)

    # The calls

    def _fault(self, call: str, *allowed: str) -> str | None:
        if self.dead:
            raise Crash
        self.calls += 1
        fault = self.faults.get(self.calls)
        if fault == "crash":
            self.dead = True
            self.happened[f"crash at {call}"] += 1
            raise Crash
        if fault == "short" and "short" in allowed:
            self.happened["short write"] += 1
            return fault
        if fault in ERRORS and fault in allowed:
            self.happened[f"{fault} at {call}"] += 1
            return fault
        return None

    def _fail(self, fault: str | None) -> None:
        if fault in ERRORS:
            assert fault is not None
            raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))

    def read(self, path: Path) -> bytes:
        self._fail(self._fault("read", "EIO"))
        content: bytes = self._real["read"](path)
        return content

    def create(self, path: Path) -> int:
        self._fail(self._fault("create", "EIO", "ENOSPC"))
        file = self.names[path.name] if path.name in self.names else File()
        if path.name in self.names:
            file.pending.append(("truncate", 0, b""))
        else:
            self.names[path.name] = file
            self.pending.append(("link", path.name, file))
        descriptor: int = self._real["create"](path)
        self._open[descriptor] = file
        return descriptor

    def open_to_write(self, path: Path) -> int:
        self._fail(self._fault("open_to_write", "EIO"))
        descriptor: int = self._real["open_to_write"](path)
        self._open[descriptor] = self.names[path.name]
        return descriptor

    def write(self, descriptor: int, data: Any, place: int) -> int:
        fault = self._fault("write", "EIO", "ENOSPC", "short")
        content = bytes(data)
        if fault is not None:
            content = content[: len(content) // 2]
        self._open[descriptor].pending.append(("write", place, content))
        written: int = self._real["write"](descriptor, content, place)
        if not written:
            fault = fault if fault in ERRORS else "EIO" if fault else None
        self._fail(fault)
        return written

    def truncate(self, descriptor: int, size: int) -> None:
        self._fail(self._fault("truncate", "EIO"))
        self._open[descriptor].pending.append(("truncate", size, b""))
        self._real["truncate"](descriptor, size)

    def sync(self, descriptor: int) -> None:
        self._sync("sync", descriptor)

    def sync_data(self, descriptor: int) -> None:
        self._sync("sync_data", descriptor)

    def _sync(self, call: str, descriptor: int) -> None:
        fault = self._fault(call, "EIO", "ENOSPC")
        file = self._open.get(descriptor)
        if file is None:  # of a database that crashed, whose thread does not know it yet
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if fault is not None:
            file.pending = []
            self._fail(fault)
        file.sync()

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        self._real["close"](descriptor)

    def rename(self, old: Path, new: Path) -> None:
        self._fail(self._fault("rename", "EIO", "ENOSPC"))
        file = self.names.pop(old.name)
        self.names[new.name] = file
        self.pending += [("link", new.name, file), ("unlink", old.name, None)]
        self._real["rename"](old, new)

    def remove(self, path: Path) -> None:
        self._fail(self._fault("remove", "EIO"))
        self._real["remove"](path)
        self.names.pop(path.name, None)
        self.pending.append(("unlink", path.name, None))

    def sync_directory(self, path: Path) -> None:
        self._fail(self._fault("sync_directory", "EIO"))
        if path == self.path:
            self.durable_names, self.pending = dict(self.names), []
