"""Asking a shard: its daemon on this host is found, or started, and asked again if it died in between.

Asking twice is safe: a step that was applied is not applied again, and everything else only reads.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ivme.errors import SparkError
from ivme.shards.journal import StepJournal
from ivme.shards.protocol import Message, raise_error, receive, send

LEASE = 40.0
"""For how many seconds a daemon lives on that nobody asks anything: less than the minute it may outlive a query."""

_ATTEMPTS = 4
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0


def ask(
    journal: StepJournal, shard: int, head: Mapping[str, Any], tables: Sequence[pa.Table] = (), lease: float = LEASE
) -> Message:
    """The answer of a shard, whose daemon is started if there is none; raises what it reports."""
    for attempt in range(_ATTEMPTS):
        try:
            with _connected(journal, shard, lease) as connection:
                send(connection, head, tables)
                found = receive(connection)
        except (ConnectionError, BrokenPipeError) as error:
            if attempt == _ATTEMPTS - 1:
                raise SparkError(f"the daemon of shard {shard} died {_ATTEMPTS} times over one request") from error
            continue
        if found is not None:
            raise_error(found.head)
            return found
    raise SparkError(
        f"the daemon of shard {shard} ended {_ATTEMPTS} times over one request; {_last_words(journal, shard)}"
    )


def ask_running(journal: StepJournal, shard: int, head: Mapping[str, Any]) -> Message | None:
    """The answer of a daemon that is there; None if there is none."""
    try:
        with _connection(socket_path(journal, shard)) as connection:
            send(connection, head)
            found = receive(connection)
    except (OSError, ConnectionError):
        return None
    if found is not None:
        raise_error(found.head)
    return found


def stop_running(journal: StepJournal) -> None:
    """Ends the daemons of a database on this host, and forgets where they listened."""
    for shard in range(journal.shards):
        ask_running(journal, shard, {"op": "stop"})
    for identity, child in _CHILDREN:
        if identity == journal.identity:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_STOP_SECONDS)
    shutil.rmtree(socket_path(journal, 0).parent, ignore_errors=True)


def socket_path(journal: StepJournal, shard: int) -> Path:
    """Where the daemon of a shard listens, in a folder that only its owner may enter."""
    base = Path(os.environ.get("IVME_RUNTIME_DIR") or tempfile.gettempdir()) / f"ivme-{os.getuid()}"
    for folder in (base, base / journal.identity[:16]):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
            raise SparkError(f"{folder} must be a folder of this user that nobody else may enter; set IVME_RUNTIME_DIR")
    path = base / journal.identity[:16] / f"{shard}.sock"
    if len(str(path)) > 100:
        raise SparkError(f"{path} is too long for a socket; set IVME_RUNTIME_DIR to a shorter one")
    return path


@contextmanager
def _connection(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        yield connection


@contextmanager
def _connected(journal: StepJournal, shard: int, lease: float) -> Iterator[socket.socket]:
    path = socket_path(journal, shard)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with connection:
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            _start(journal, shard, path, lease, connection)
        yield connection


def _start(journal: StepJournal, shard: int, path: Path, lease: float, connection: socket.socket) -> None:
    """Starts a daemon, unless somebody else just did, and connects to it; one that was killed is started again."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection.connect(str(path))
            return
        except (FileNotFoundError, ConnectionRefusedError):
            pass
        process = _spawn(journal, shard, path, lease)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                connection.connect(str(path))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                ended = process.poll()
                if ended is not None and ended > 0:
                    break
                time.sleep(0.02 if ended is None else 0.2)
                if ended is not None:
                    process = _spawn(journal, shard, path, lease)
    raise SparkError(f"the daemon of shard {shard} did not start; {_last_words(journal, shard)}")


_CHILDREN: list[tuple[str, subprocess.Popen[bytes]]] = []
"""Daemons that this process started, by their databases, so that those that ended are waited for."""


def _spawn(journal: StepJournal, shard: int, path: Path, lease: float) -> subprocess.Popen[bytes]:
    _CHILDREN[:] = [(identity, child) for identity, child in _CHILDREN if child.poll() is None]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-m", "ivme.shards.daemon", str(journal.root), str(shard), str(path), str(lease)]
    with _log_path(journal, shard).open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    _CHILDREN.append((journal.identity, process))
    return process


def _log_path(journal: StepJournal, shard: int) -> Path:
    return socket_path(journal, shard).with_suffix(".log")


def _last_words(journal: StepJournal, shard: int) -> str:
    path = _log_path(journal, shard)
    said = path.read_text(errors="replace").strip()[-1000:] if path.exists() else ""
    return f"it said: {said}" if said else f"see {path}"
