"""Hosts: processes that serve shards under a lease; killed at any moment, nothing is lost, and no second answers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from ivme.database import Database
from ivme.errors import ExpressionError, SparkError
from ivme.shards.coordinator import Coordinator
from ivme.shards.database import ShardedDatabase
from ivme.shards.flight_client import ShardClients
from ivme.shards.flight_cluster import FlightCluster
from ivme.shards.host import HostStart
from ivme.shards.message import LostError, Question, raise_error, unpack
from ivme.shards.present import Present
from ivme.shards.wire import Access
from tests.sharded_databases import hosted_database

SUM = "SELECT r.b, COUNT(*) AS n, SUM(s.c) AS t FROM r JOIN s ON r.b = s.b GROUP BY r.b"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hosts")]
"""Each test starts processes, or waits for them to end; several share those of one database."""


@contextmanager
def filled(folder: Path, **options: Any) -> Iterator[ShardedDatabase]:
    with hosted_database(folder, 2, **options) as made:
        made.create_table("r", {"a": "int", "b": "int"})
        made.create_table("s", {"b": "int", "c": "int"})
        made.create_view("v", SUM)
        yield made


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShardedDatabase]:
    """A database whose rows nobody asks about."""
    with filled(tmp_path_factory.mktemp("shared")) as made:
        yield made


def cluster_of(db: ShardedDatabase) -> FlightCluster:
    cluster: Any = db._cluster
    assert isinstance(cluster, FlightCluster)
    return cluster


def processes(db: ShardedDatabase) -> list[int]:
    return [status["pid"] for status in db.status()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what: Any, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_each_shard_has_a_process_of_its_own_and_none_has_most_of_the_state(db: ShardedDatabase) -> None:
    db.insert("r", [(i, i % 97) for i in range(4000)])
    db.insert("s", [(i % 97, i) for i in range(1000)])
    entries = {status["pid"]: sum(status["entries"].values()) for status in db.status()}
    assert 2 == len(entries)
    assert os.getpid() not in entries
    assert max(entries.values()) < 0.7 * sum(entries.values())


def test_a_call_without_the_token_is_refused(db: ShardedDatabase) -> None:
    entry = cluster_of(db)._registry.entry_of(0, 1)
    question = Question(0, {"op": "status"})
    assert 0 == ShardClients(cluster_of(db).access).ask(entry.address, entry.epoch, question).head["shard"]
    with pytest.raises(LostError, match="token is missing or wrong"):
        ShardClients(Access("guess")).ask(entry.address, entry.epoch, question)
    for server in (entry.address, cluster_of(db).address):
        with flight.FlightClient(f"grpc://{server}") as client, pytest.raises(flight.FlightUnauthenticatedError):
            list(client.do_action(flight.Action("present", b"{}")))
    driver = Path(db.checkpoint.store.address) / "driver"
    assert 0 == driver.stat().st_mode & 0o077, "only the owner may read the token"


def test_nonsense_is_answered_by_an_error_and_the_host_lives_on(db: ShardedDatabase) -> None:
    entry, before = cluster_of(db)._registry.entry_of(0, 1), processes(db)
    clients = ShardClients(cluster_of(db).access)
    found = clients.ask(entry.address, entry.epoch, Question(0, {"op": "eval"}))
    assert "does not know the request 'eval'" in found.head["error"][1]
    with pytest.raises(SparkError, match="not one of ours"):
        unpack(b"\xff" * 64)
    with cluster_of(db).access.connect(entry.address) as client:
        answer = client.do_get(flight.Ticket(b"\xff" * 64), cluster_of(db).access.options()).read_all()
        assert b"not one of ours" in answer.schema.metadata[b"ivme"]
    assert before == processes(db)


def test_a_question_of_another_epoch_is_not_answered(db: ShardedDatabase) -> None:
    entry = cluster_of(db)._registry.entry_of(0, 1)
    for epoch in (entry.epoch - 1, entry.epoch + 1):
        found = ShardClients(cluster_of(db).access).ask(entry.address, epoch, Question(0, {"op": "status"}))
        with pytest.raises(LostError, match="is not served here in epoch"):
            raise_error(found.head)


def test_hosts_find_the_rows_that_change_and_build_views_again_for_a_new_column(db: ShardedDatabase) -> None:
    db.create_table("item", {"k": "int", "s": "string"}, primary_key="k")
    view = db.create_view("of_s", "SELECT s, COUNT(*) AS n FROM item GROUP BY s")
    db.insert("item", [(number, "old") for number in range(20)])
    with db.batch() as batch:
        batch.upsert("item", [(1, "new"), (30, "new")])
        batch.update("item", set={"k": "k + 100", "s": ":s"}, where="k > 15", s="moved")
        batch.delete_where("item", "k < 3")
    db.add_column("item", "x", "decimal(5, 2)", Decimal("1.50"))
    db.delete_keys("item", [3, 130])
    assert {("old", 12), ("moved", 4)} == set(view)
    with pytest.raises(ExpressionError, match="division by zero"):
        db.update("item", set={"k": "1 / (k - 4)"})
    view.verify()
    db.drop_view("of_s")
    db.drop_table("item")


@pytest.mark.long
def test_an_orphan_answers_nothing_and_ends_when_another_host_has_its_shards(tmp_path: Path) -> None:
    """A host that lives on beside its successor, as the worker of a killed pyspark.daemon does."""
    with filled(tmp_path) as db:
        db.insert("r", [(1, 1)])
        cluster = cluster_of(db)
        old = cluster._registry.entry_of(0, 1)
        start = HostStart(cluster.address, cluster._identity, old.host)
        command = [sys.executable, "-m", "ivme.shards.host"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as successor:
            assert successor.stdin is not None
            successor.stdin.write(json.dumps(start.to_json()) + "\n")
            successor.stdin.close()
            assert wait_for(lambda: not is_alive(old.pid)), "the orphan ends"
            with pytest.raises(LostError):
                ShardClients(cluster.access).ask(old.address, old.epoch, Question(0, {"op": "status"}))
            for _ in range(3):
                assert [(1, 1)] == [(row["a"], row["b"]) for row in rows_of(db, "r")]
            newest = cluster._registry.entry_of(0, 60)
            assert newest.epoch > old.epoch
            db.insert("r", [(2, 2)])
            assert 2 == len(rows_of(db, "r"))
            assert 2 == len(db.status())
            db.close()
            successor.wait(60)


def rows_of(db: ShardedDatabase, table: str) -> list[Any]:
    return [row for answer in db._ask_all({"op": "table", "table": table}) for row in answer.tables[0].to_pylist()]


def test_a_host_that_is_stopped_loses_its_lease_and_never_answers_again(tmp_path: Path) -> None:
    with filled(tmp_path, lease=1.0) as db:
        db.insert("r", [(1, 1)])
        old = cluster_of(db)._registry.entry_of(0, 1)
        os.kill(old.pid, signal.SIGSTOP)
        time.sleep(2.0)
        os.kill(old.pid, signal.SIGCONT)
        assert wait_for(lambda: not is_alive(old.pid))
        db.insert("r", [(2, 2)])
        assert 2 == len(rows_of(db, "r"))
        assert cluster_of(db)._registry.entry_of(0, 60).epoch > old.epoch


def test_hosts_end_with_their_database_and_with_its_driver(tmp_path: Path) -> None:
    with filled(tmp_path / "one") as one:
        first = processes(one)
    assert not any(map(is_alive, first))
    script = (
        "import sys, time; from pathlib import Path; from tests.sharded_databases import hosted_database\n"
        "db = hosted_database(Path(sys.argv[1]), 2); print([s['pid'] for s in db.status()], flush=True)\n"
        "time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "two")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        hosts = json.loads(driver.stdout.readline())
        assert all(map(is_alive, hosts))
        driver.kill()
    assert wait_for(lambda: not any(map(is_alive, hosts)))


def test_connections_are_encrypted_if_asked_for(tmp_path: Path) -> None:
    with filled(tmp_path, tls=True) as db:
        db.insert("r", [(i, i % 3) for i in range(30)])
        db.insert("s", [(i % 3, i) for i in range(9)])
        db.view("v").verify()
        present = Present.of(str(tmp_path))
        assert "BEGIN CERTIFICATE" in present.access.certificate
        (answer,) = present.ask([Question(0, {"op": "status"})])
        assert db.step == answer.head["step"]
        entry = cluster_of(db)._registry.entry_of(0, 1)
        with pytest.raises(LostError):
            ShardClients(Access(present.access.token)).ask(entry.address, entry.epoch, Question(0, {"op": "status"}), 5)


@pytest.mark.long
def test_several_shards_of_one_host_recover_together_and_move_to_another_number_of_hosts(tmp_path: Path) -> None:
    with hosted_database(tmp_path, 4, hosts=2) as db:
        db.create_table("r", {"a": "int"})
        view = db.create_view("v", "SELECT COUNT(*) AS n FROM r")
        db.insert("r", [(i,) for i in range(100)])
        assert 2 == len(set(processes(db)))
        os.kill(processes(db)[0], signal.SIGKILL)
        assert 100 == view.scalar()
        db.insert("r", [(1,)])
        assert 101 == view.scalar()
    with hosted_database(tmp_path, None, hosts=1) as again:
        assert 1 == len(set(processes(again)))
        assert 101 == again.view("v").scalar()


def test_a_step_changes_several_followed_views_whose_rows_have_parts_in_both_shards(tmp_path: Path) -> None:
    with filled(tmp_path) as db:
        feeds = [db.create_view(f"{what}_all", f"SELECT {what}(b) AS x FROM r").changes() for what in ("SUM", "COUNT")]
        db.insert("r", [(i, i) for i in range(50)])
        found = [[dict(each) for each in feed] for feed in feeds]
        assert [[{(None,): -1, (1225,): 1}], [{(0,): -1, (50,): 1}]] == found


@pytest.mark.long
def test_a_host_that_does_not_answer_in_time_is_asked_again_and_applies_the_batch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, prepare, ask = threading.Event(), Coordinator._prepare, ShardClients.ask
    with filled(tmp_path, lease=300) as db:
        stopped = processes(db)[0]

        def stop_and_prepare(*given: Any) -> Any:
            os.kill(stopped, signal.SIGSTOP)
            return prepare(*given)

        def noted(*given: Any) -> Any:
            try:
                return ask(*given)
            except TimeoutError:
                late.set()
                raise

        def go_on() -> None:
            late.wait(120)
            os.kill(stopped, signal.SIGCONT)

        monkeypatch.setattr("ivme.shards.flight_cluster.CALL_SECONDS", 0.5)
        monkeypatch.setattr(Coordinator, "_prepare", stop_and_prepare)
        monkeypatch.setattr(ShardClients, "ask", noted)
        waiting = threading.Thread(target=go_on)
        waiting.start()
        db.insert("r", [(i, i % 7) for i in range(100)])
        waiting.join()
        monkeypatch.undo()
        assert late.is_set()
        assert 100 == db.table_rows("r").num_rows
        assert stopped == processes(db)[0]
        db.insert("s", [(b, 1) for b in range(7)])
        assert 100 == sum(n for _, n, _ in db.view("v"))


def check_kills(db: ShardedDatabase, seed: int, batches: int, most: int) -> None:
    """Hosts die while batches are applied, so many, and every batch counts once.

    At least `batches` are applied, and more until every host that is to die has: a fast machine is
    done with them before the first kill.
    """
    chance, stop, kills = random.Random(seed), threading.Event(), [0]

    def kill() -> None:
        mine = random.Random(seed)
        while not stop.wait(0.05 + mine.random() / 4) and kills[0] < most:
            entry = cluster_of(db)._registry.current().get(mine.randrange(2))
            if entry is not None and is_alive(entry.pid):
                kills[0] += 1
                os.kill(entry.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    present: list[tuple[int, int]] = []
    partners: list[tuple[int, int]] = []
    try:
        number = 0
        while number < batches or (kills[0] < most and killer.is_alive()):
            new = [(number * 100 + i, chance.randrange(7)) for i in range(30)]
            gone = [present.pop(chance.randrange(len(present))) for _ in range(min(10, len(present)))]
            with db.batch() as batch:
                batch.insert("r", new)
                batch.insert("s", [(b, a % 13) for a, b in new])
                batch.delete("r", gone)
            present += new
            partners += [(b, a % 13) for a, b in new]
            number += 1
    finally:
        stop.set()
        killer.join()
    assert most == kills[0]
    with Database() as expected:
        expected.create_table("r", {"a": "int", "b": "int"})
        expected.create_table("s", {"b": "int", "c": "int"})
        expected.insert("r", present)
        expected.insert("s", partners)
        assert sorted(expected.create_view("v", SUM)) == sorted(db.view("v"))


def test_a_killed_host_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with filled(tmp_path) as database:
        check_kills(database, 0, 20, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_killed_hosts_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    with filled(tmp_path) as database:
        check_kills(database, seed, 200, 5)
