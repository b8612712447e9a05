"""A stream into shards on a standalone cluster, whose workers, executors and drivers are killed at random points of it.

`IVME_STREAM_KILLS=20 IVME_STREAM_CHANGES=2000000` is what issue and docs ask for; it takes about half an hour.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import duckdb
import pytest

from tests.spark.standalone_driver import executor_of
from tests.spark.standalone_stream import other_rows, write_changes
from tests.spark.test_standalone import master
from tests.test_docs import ROOT

__all__ = ["master"]

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("IVME_STREAM_KILLS", "1"))
"""How many workers, executors and drivers are killed, each."""

CHANGES = int(os.environ.get("IVME_STREAM_CHANGES", "100000"))
FILES = max(CHANGES // 20_000, 10)
_SECONDS = 300
"""How long nothing may happen: as long as a cluster of two cores may take to start everything anew."""


class Streaming:
    """The process of the driver, and what it has said: at which batch it is, and who its hosts are."""

    def __init__(self, master: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.spark.standalone_stream", master, str(folder)]
        with (folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT
            )
        self.batch, self.hosts, self.said = -1, list[int](), dict[str, str]()
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def until(self, batch: int | None) -> bool:
        """Waits until a batch is there, or with None until the process has ended; whether it still runs."""
        while batch is None or self.batch < batch:
            try:
                line = self._lines.get(timeout=_SECONDS)
            except Empty:
                raise AssertionError(f"nothing happened for {_SECONDS} s behind batch {self.batch}") from None
            if line is None:
                self._close()
                return False
            self._take(line)
        return True

    def _close(self) -> None:
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _take(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "at":
            self.batch, self.hosts = json.loads(rest)
        self.said[name] = rest

    def wait(self, seconds: float) -> None:
        """Lets some time pass, and takes what is said meanwhile."""
        time.sleep(seconds)
        while not self._lines.empty():
            line = self._lines.get()
            if line is None:
                self._lines.put(None)
                return
            self._take(line)

    def end(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self._close()


def killed(streaming: Streaming, what: str, chance: random.Random) -> bool:
    """Kills a worker of Python or an executor that serves shards; False if there is none now."""
    try:
        worker = chance.choice(streaming.hosts)
        target = worker if what == "worker" else executor_of(worker)
        if target is not None:
            os.kill(target, signal.SIGKILL)
        return target is not None
    except (IndexError, FileNotFoundError, ProcessLookupError):
        return False


def test_a_stream_is_applied_once_whatever_is_killed(master: str, tmp_path: Path) -> None:
    write_changes(tmp_path / "source", CHANGES, FILES)
    chance = random.Random(22)
    plan = sorted((chance.randrange(FILES * 9 // 10), chance.random(), what) for what in "wed" for _ in range(KILLS))
    names, done = {"w": "worker", "e": "executor", "d": "driver"}, Counter[str]()
    streaming = Streaming(master, tmp_path)
    start = time.monotonic()
    for batch, delay, what in plan:
        assert streaming.until(batch), (tmp_path / "log").read_text()[-3000:]
        streaming.wait(2 * delay)
        if names[what] == "driver":
            streaming.end()
            streaming = Streaming(master, tmp_path)
        else:
            while not killed(streaming, names[what], chance):
                assert streaming.until(streaming.batch + 1), "nothing is left to be killed"
        done[names[what]] += 1
        print(f"{time.monotonic() - start:.0f} s: batch {streaming.batch}, killed a {names[what]}", flush=True)
    assert not streaming.until(None)
    assert 0 == streaming.process.returncode, (tmp_path / "log").read_text()[-3000:]
    assert dict.fromkeys(names.values(), KILLS) == done
    check(tmp_path, streaming.said)
    print(f"{CHANGES:,} changes in {time.monotonic() - start:.0f} s: exact; {streaming.said}", flush=True)


def check(folder: Path, said: dict[str, str]) -> None:
    """What DuckDB computes from the files is what table and view have; nothing is served twice."""
    db = duckdb.connect()
    db.register("S", other_rows())
    source = f"(SELECT a, b, SUM(w)::BIGINT AS w FROM '{folder}/source/*.parquet' GROUP BY ALL HAVING SUM(w) <> 0)"
    view = f"""SELECT R.a, SUM(w)::BIGINT AS n, SUM(w * R.b)::BIGINT AS b, SUM(w * S.c)::BIGINT AS c
        FROM {source} R JOIN S ON R.a = S.a GROUP BY R.a"""
    assert same(db, source, f"(SELECT a, b, \"#\"::BIGINT AS w FROM '{folder}/R.parquet')")
    assert same(db, f"({view})", f"'{folder}/v.parquet'")
    assert same(db, f"({view})", f"'{folder}/read.parquet'")
    (total,) = db.execute(f"SELECT SUM(w), SUM(w * b) FROM {source}").fetchall()
    assert [list(total)] == json.loads(said["total"])
    assert [] == json.loads(said["twice"])
    entries = json.loads(said["entries"])
    assert 2 == len(entries)
    assert max(entries) < 0.7 * sum(entries)


def same(db: duckdb.DuckDBPyConnection, one: str, other: str) -> bool:
    """Whether two relations have the same rows, each as often."""
    rows = "SELECT COUNT(*) FROM ((FROM {} EXCEPT ALL FROM {}) UNION ALL (FROM {} EXCEPT ALL FROM {}))"
    found = db.execute(rows.format(one, other, other, one)).fetchone()
    sizes = db.execute(f"SELECT (SELECT COUNT(*) FROM {one}), (SELECT COUNT(*) FROM {other})").fetchone()
    return found == (0,) and sizes is not None and sizes[0] == sizes[1] > 0
