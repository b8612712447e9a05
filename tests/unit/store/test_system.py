"""The store's calls where a system lacks one of them: pwrite and directories on Windows, fdatasync on macOS."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import ivme
from ivme.errors import SparkError, StorageError
from ivme.extras import refuse_windows
from ivme.store import system


@pytest.fixture
def like_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pwrite", "fdatasync", "O_DIRECTORY"):
        monkeypatch.delattr(os, name, raising=False)


@pytest.mark.usefixtures("like_windows")
def test_bytes_are_written_at_their_places_without_pwrite(tmp_path: Path) -> None:
    rng = random.Random(3)
    expected = bytearray(4_000)
    descriptor = system.create(tmp_path / "file")
    for _ in range(100):
        data = rng.randbytes(rng.randrange(1, 80))
        place = rng.randrange(len(expected) - len(data))
        expected[place : place + len(data)] = data
        assert len(data) == system.write(descriptor, data, place)
    system.sync_data(descriptor)
    system.truncate(descriptor, 2_000)
    system.close(descriptor)
    assert bytes(expected[:2_000]).rstrip(b"\0") == system.read(tmp_path / "file").rstrip(b"\0")


@pytest.mark.usefixtures("like_windows")
def test_a_directory_is_written_and_opened_again(tmp_path: Path) -> None:
    with ivme.Database(tmp_path / "shop") as db:
        db.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT SUM(a) AS n FROM t")
        for number in range(20):
            db.insert("t", [(number,)] * (1 + number % 3))
        expected = list(db.view("v"))
    with ivme.Database(tmp_path / "shop") as db:
        assert expected == list(db.view("v"))
        db.view("v").verify()


def test_a_file_is_replaced_by_a_rename(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_text(name, "utf-8")
    system.rename(tmp_path / "old", tmp_path / "new")
    assert ["new"] == os.listdir(tmp_path)
    assert b"old" == system.read(tmp_path / "new")


def test_a_lock_is_held_by_one_descriptor_until_that_is_closed(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    system.lock(first)
    with pytest.raises(BlockingIOError):
        system.lock(second)
    os.close(first)
    system.lock(second)
    os.close(second)


def test_a_directory_that_is_open_elsewhere_names_its_process(tmp_path: Path) -> None:
    with ivme.Database(tmp_path / "shop"), pytest.raises(StorageError, match=f"process {os.getpid()}"):
        ivme.Database(tmp_path / "shop")


def test_spark_is_refused_on_windows_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_windows("ivme on Spark")
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(SparkError, match="needs Linux or macOS; on Windows, run it in WSL"):
        refuse_windows("ivme on Spark")
