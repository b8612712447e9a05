"""Hosts as child processes of the driver, started again when they end: shards on one machine, without Spark's tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ivme.shards.host import HostStart
from ivme.shards.registry import Registry

_LOOK_SECONDS = 0.05
_STOP_SECONDS = 10.0
_LONGEST_PAUSE = 10.0
_HEALTHY_SECONDS = 30.0


class ChildProcesses:
    """A `HostStarter` whose hosts are children of this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ivme-hosts-")
        self._children: dict[int, _Child] = {}
        self._over = threading.Event()
        self._watch: threading.Thread | None = None

    def start(self, hosts: Sequence[HostStart], registry: Registry) -> None:
        for start in hosts:
            self._children[start.host] = _Child(start, Path(self._folder.name) / f"{start.host}.log")
        self._watch = threading.Thread(target=self._supervise, args=(registry,), name="ivme-hosts", daemon=True)
        self._watch.start()

    def _supervise(self, registry: Registry) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            for host, child in self._children.items():
                ended = child.ended()
                if ended is not None:
                    registry.end(host, ended)
                child.start_if_due()

    def failure(self) -> str:
        said = [child.last_words() for child in self._children.values()]
        return "; ".join(filter(None, said)) or "its process has not said why"

    def close(self) -> None:
        """Waits for the children to end, as their beats have; those that do not are killed."""
        self._over.set()
        if self._watch is not None:
            self._watch.join()
        for child in self._children.values():
            child.stop()
        self._folder.cleanup()


class _Child:
    """One child; after each end the pause before the next start is longer, until one has lived for a while."""

    def __init__(self, start: HostStart, log: Path) -> None:
        self._start, self._log = start, log
        self._process: subprocess.Popen[bytes] | None = None
        self._pause = 0.0
        self._started = self._due = time.monotonic()
        self.start_if_due()

    def ended(self) -> int | None:
        """The process that ended since this was asked last."""
        if self._process is None or self._process.poll() is None:
            return None
        pid, self._process = self._process.pid, None
        lived = time.monotonic() - self._started
        self._pause = 0.0 if lived > _HEALTHY_SECONDS else min(max(2 * self._pause, 0.1), _LONGEST_PAUSE)
        self._due = time.monotonic() + self._pause
        return pid

    def start_if_due(self) -> None:
        if self._process is not None or time.monotonic() < self._due:
            return
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-m", "ivme.shards.host"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env=environment,
            )
        self._started = time.monotonic()
        assert self._process.stdin is not None
        try:
            with self._process.stdin as given:
                given.write(json.dumps(self._start.to_json()).encode() + b"\n")
        except BrokenPipeError:
            pass  # it ended already, which `ended` finds

    def last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-1000:] if self._log.exists() else ""

    def stop(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def by_host(shards: int, hosts: int) -> list[list[int]]:
    """The shards of each host, spread evenly.

    >>> by_host(5, 2)
    [[0, 2, 4], [1, 3]]
    """
    return [list(range(host, shards, hosts)) for host in range(hosts)]
