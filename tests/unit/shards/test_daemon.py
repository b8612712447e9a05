"""Daemons: owner-only sockets, found again or started anew, ended by lease; killed at any moment, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import socket
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import SparkError
from ivme.shards.client import ask, ask_running, socket_path
from ivme.shards.database import ShardedDatabase
from ivme.shards.journal import StepJournal
from ivme.shards.protocol import receive, send
from tests.sharded_databases import local_database

SUM = "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS t FROM r JOIN s ON r.b = s.b GROUP BY r.b"

pytestmark = pytest.mark.slow
"""Each test starts processes, or waits for them to end."""


@pytest.fixture(autouse=True, scope="module")
def runtime_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("IVME_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShardedDatabase]:
    """A database whose rows nobody asks about."""
    with filled(tmp_path_factory.mktemp("shared")) as made:
        yield made


@contextmanager
def filled(folder: Path) -> Iterator[ShardedDatabase]:
    made = local_database(folder / "checkpoint", 2, daemons=True)
    made.create_table("r", {"a": "int", "b": "int"})
    made.create_table("s", {"b": "int", "c": "int"})
    made.create_view("v", SUM)
    yield made
    made.close()


def processes(db: ShardedDatabase) -> list[int]:
    return [status["pid"] for status in db.status()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what: Any, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_only_the_owner_may_reach_a_daemon(db: ShardedDatabase) -> None:
    processes(db)
    path = socket_path(db._journal, 0)
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [0o700, 0o700] == [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)]


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IVME_RUNTIME_DIR", str(tmp_path))
    journal = StepJournal.open(tmp_path / "c", 2)
    (tmp_path / f"ivme-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(SparkError, match="nobody else may enter"):
        socket_path(journal, 0)


def test_each_shard_has_a_process_of_its_own_and_none_has_most_of_the_state(db: ShardedDatabase) -> None:
    db.insert("r", [(i, i % 97) for i in range(4000)])
    db.insert("s", [(i % 97, i) for i in range(1000)])
    entries = {status["pid"]: sum(status["entries"].values()) for status in db.status()}
    assert 2 == len(entries)
    assert os.getpid() not in entries
    assert max(entries.values()) < 0.7 * sum(entries.values())


def test_a_daemon_is_found_again(db: ShardedDatabase) -> None:
    assert processes(db) == processes(db)


def test_many_who_start_a_daemon_at_once_get_the_same(tmp_path: Path) -> None:
    journal = StepJournal.open(tmp_path / "c", 1)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(ask(journal, 0, {"op": "status"}).head["pid"])) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 6 == len(found)
    assert 1 == len(set(found))
    ask_running(journal, 0, {"op": "stop"})


def test_a_daemon_that_nobody_asks_ends(tmp_path: Path) -> None:
    journal = StepJournal.open(tmp_path / "c", 1)
    process = ask(journal, 0, {"op": "status"}, lease=0.2).head["pid"]
    assert wait_for(lambda: not is_alive(process))
    assert not socket_path(journal, 0).exists()


def test_daemons_end_when_the_database_is_closed_or_its_checkpoint_is_gone(tmp_path: Path) -> None:
    one = local_database(tmp_path / "one", 1, daemons=True)
    other = StepJournal.open(tmp_path / "other", 1)
    first, second = processes(one)[0], ask(other, 0, {"op": "status"}).head["pid"]
    one.close()
    (tmp_path / "other" / "database.json").unlink()
    (tmp_path / "other").rmdir()
    assert wait_for(lambda: not is_alive(first))
    assert wait_for(lambda: not is_alive(second))


def test_nonsense_on_the_socket_is_answered_or_ended_and_the_daemon_lives_on(db: ShardedDatabase) -> None:
    before = processes(db)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_path(db._journal, 0)))
        connection.sendall(b"\xff" * 64)
        connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            assert b"" == connection.recv(10)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_path(db._journal, 0)))
        send(connection, {"op": "eval"})
        answer = receive(connection)
        assert answer is not None
        assert "cannot be asked for 'eval'" in answer.head["error"][1]
    assert before == processes(db)


MOST_KILLS = 2
"""As many a batch: a daemon that dies more often over one request is given up, however slow the machine is."""


def kill_at_random(db: ShardedDatabase, stop: threading.Event, seed: int, batches: list[int]) -> None:
    chance = random.Random(seed)
    kills = Counter[int]()
    while not stop.wait(0.2 + chance.random()):
        batch = batches[-1]
        status = ask_running(db._journal, chance.randrange(2), {"op": "status"})
        if status is not None and is_alive(status.head["pid"]) and kills[batch] < MOST_KILLS:
            kills[batch] += 1
            os.kill(status.head["pid"], signal.SIGKILL)


def check_kills(db: ShardedDatabase, seed: int, batches: int) -> None:
    """Daemons die while batches are applied, and every batch counts once."""
    chance = random.Random(seed)
    stop = threading.Event()
    started = [0]
    killer = threading.Thread(target=kill_at_random, args=(db, stop, seed, started))
    killer.start()
    present: list[tuple[int, int]] = []
    partners: list[tuple[int, int]] = []
    try:
        for number in range(batches):
            started.append(number)
            new = [(number * 100 + i, chance.randrange(7)) for i in range(30)]
            gone = [present.pop(chance.randrange(len(present))) for _ in range(min(10, len(present)))]
            with db.batch() as batch:
                batch.insert("r", new)
                batch.insert("s", [(b, a % 13) for a, b in new])
                batch.delete("r", gone)
            present += new
            partners += [(b, a % 13) for a, b in new]
    finally:
        stop.set()
        killer.join()
    for status in db.status():
        os.kill(status["pid"], signal.SIGKILL)
    with Database() as expected:
        expected.create_table("r", {"a": "int", "b": "int"})
        expected.create_table("s", {"b": "int", "c": "int"})
        expected.insert("r", present)
        expected.insert("s", partners)
        assert sorted(expected.create_view("v", SUM)) == sorted(db.view("v"))


@pytest.mark.parametrize("seed", range(1))
def test_a_killed_daemon_loses_and_doubles_nothing(tmp_path: Path, seed: int) -> None:
    with filled(tmp_path) as database:
        check_kills(database, seed, 6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_killed_daemons_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    with filled(tmp_path) as database:
        check_kills(database, seed, 25)
