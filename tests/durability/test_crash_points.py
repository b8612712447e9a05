"""A crash at any call to the operating system, and a loss of power after any of them."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.store.log import Log
from tests.durability.directories import bag, crash, log_of

CALLS = ("pwrite", "fsync", "fdatasync", "rename", "ftruncate", "unlink")


class Crash(BaseException):
    """The end of the process."""


class Countdown:
    """Lets some calls to the operating system through, then none: each raises `Crash`, as if it never returned."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Crash
            return call(*arguments, **options)

        return counted


def load(db: Database, done: list[int]) -> None:
    """Some commits of every kind; `done` has those whose caller was told that they were made."""
    steps: list[Callable[[], Any]] = [
        lambda: db.create_table("R", {"a": "int"}),
        lambda: db.insert("R", [(1,)]),
        lambda: db.insert("R", [(n,) for n in range(2, 40)]),
        lambda: db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a"),
        db.checkpoint,
        lambda: db.delete("R", [(1,)]),
        lambda: db.create_table("S", {"a": "int"}),
        lambda: db.rename_table("S", "T"),
        db.checkpoint,
        lambda: db.drop_view("v"),
        lambda: db.rename_table("R", "S"),
        lambda: db.rename_table("S", "R"),
        lambda: db.drop_table("T"),
        lambda: db.insert("R", [(40,)]),
    ]
    for number, step in enumerate(steps):
        step()
        done.append(number)


def described(db: Database) -> Any:
    return db.tables, db.views, {name: bag(db, name) for name in db.tables}


def states(path: Path) -> list[Any]:
    """What a database is before the first step, and after each."""
    after: list[Any] = []

    class Noting(list[int]):
        def append(self, _: int) -> None:
            after.append(described(db))

    with Database(path) as db:
        before = described(db)
        load(db, Noting())
    return [before, *after]


def test_a_crash_at_any_call_loses_nothing_that_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = states(tmp_path / "whole")
    for calls in range(1000):
        path = tmp_path / str(calls)
        db = Database(path)
        done: list[int] = []
        with monkeypatch.context() as patch:
            countdown = Countdown(calls)
            for name in CALLS:
                patch.setattr(os, name, countdown.around(getattr(os, name)))
            with contextlib.suppress(Crash):
                load(db, done)
        crash(db)
        with Database(path) as db:
            assert described(db) in expected[len(done) : len(done) + 2], calls
            for name in db.views:
                db.view(name).verify()
        assert not list(path.glob("*.tmp"))
        if countdown.left >= 0:
            break
    assert 20 < calls < 999


def test_without_power_everything_that_was_synced_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not synced reaches the disk sector by sector in any order, or not at all and reads as zeros."""
    choose = random.Random(1)
    path = tmp_path / "db"
    synced: dict[Path, int] = {}
    sync = Log._sync

    def noted(log: Log) -> None:
        size = log._path.stat().st_size
        sync(log)
        synced[log._path] = size

    monkeypatch.setattr(Log, "_sync", noted)
    db = Database(path, durability="async")
    db.create_table("R", {"a": "int", "b": "string"})
    db.checkpoint()
    synced[log_of(path)] = log_of(path).stat().st_size
    expected: Counter[Any] = Counter()
    for number in range(60):
        rows = [(number, "x" * choose.randrange(900))] * choose.choice([1, 3, 20])
        with db.batch(source="s", position=number) as batch:
            batch.insert("R", rows)
        expected.update(rows)
        durable_before = db.definitions.store.log.commits.durable if db.definitions.store else 0
        image = tmp_path / f"image{number}"
        shutil.copytree(path, image)
        log = log_of(image)
        log.write_bytes(torn(log.read_bytes(), synced[log_of(path)], choose))
        with Database(image) as after:
            reached = after.position("s")
            assert (-1 if reached is None else reached) + 2 >= durable_before  # the table was record 1
            kept = {row: n for row, n in expected.items() if reached is not None and row[0] <= reached}
            assert Counter(kept) == bag(after, "R")
        shutil.rmtree(image)
        if choose.random() < 0.2:
            assert db.definitions.store is not None
            db.definitions.store.log.commits.wait(db.definitions.store.log.last)
    db.close()


def torn(data: bytes, durable: int, choose: random.Random) -> bytes:
    """The file with each sector behind the durable part written or not, and cut somewhere."""
    sectors = [data[place : place + 512] for place in range(durable, len(data), 512)]
    rest = b"".join(sector if choose.random() < 0.6 else b"\0" * len(sector) for sector in sectors)
    return data[:durable] + rest[: choose.randint(0, len(rest))]
