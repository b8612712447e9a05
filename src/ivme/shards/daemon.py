"""`python -m ivme.shards.daemon CHECKPOINT SHARD SOCKET LEASE`: the process that holds one shard on a host.

It listens on a Unix socket that only its owner may open, and ends when nobody has asked it anything for the time of its
lease, when it is told to, or when its socket or its checkpoint is gone. It keeps nothing: a client that needs the shard
after that starts another, which rebuilds it from the checkpoint.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from pathlib import Path

from ivme.shards.journal import StepJournal
from ivme.shards.protocol import error_head, receive, send
from ivme.shards.requests import answer
from ivme.shards.shard import Shard

_CREDENTIALS = struct.Struct("3i")
_LOOK_AROUND = 0.5


class Daemon:
    """A shard behind a socket. Requests are answered one at a time."""

    def __init__(self, shard: Shard, path: Path, lease: float) -> None:
        self._shard = shard
        self._path = path
        self._lease = lease
        self._lock = threading.Lock()
        self._busy = 0
        self._last_asked = time.monotonic()
        self._stopping = False
        self._socket = self._listening(path)
        self._inode = path.stat().st_ino

    def _listening(self, path: Path) -> socket.socket:
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(before)
        listening.listen(64)
        listening.settimeout(_LOOK_AROUND)
        return listening

    def serve(self) -> None:
        """Answers until there is a reason to end."""
        try:
            while not self._is_over():
                try:
                    connection, _ = self._socket.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
        finally:
            self._socket.close()
            if self._is_ours():
                self._path.unlink(missing_ok=True)

    def _is_over(self) -> bool:
        idle = not self._busy and time.monotonic() - self._last_asked > self._lease
        return self._stopping or idle or not self._is_ours() or not self._shard.journal.root.exists()

    def _is_ours(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(None)
            if not _is_owner(connection):
                return
            try:
                while (message := receive(connection)) is not None:
                    if message.head["op"] == "stop":
                        self._stopping = True
                        send(connection, {})
                        return
                    self._busy += 1
                    try:
                        with self._lock:
                            head, tables = answer(self._shard, message)
                    except Exception as error:
                        head, tables = error_head(error), ()
                    finally:
                        self._busy -= 1
                        self._last_asked = time.monotonic()
                    send(connection, head, tables)
            except ConnectionError:
                return


def _is_owner(connection: socket.socket) -> bool:
    """Whether the other side runs as the same user; the socket's permissions say so too."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return bool(user == os.getuid())


def main(root: str, shard: str, path: str, lease: str) -> None:
    journal = StepJournal.open(Path(root), None)
    Daemon(Shard(journal, int(shard)), Path(path), float(lease)).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
