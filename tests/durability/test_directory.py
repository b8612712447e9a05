"""Who may open a directory, and which directories are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ivme.database import Database
from ivme.errors import DamagedError, StorageError
from ivme.store.files import digest
from tests.durability.directories import crash, log_of


def test_a_second_opening_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Database(tmp_path), pytest.raises(StorageError, match=rf"{tmp_path} is already open in process {os.getpid()}"):
        Database(tmp_path)
    Database(tmp_path).close()


def test_a_second_process_is_refused_and_told_the_first(tmp_path: Path) -> None:
    program = "import sys, ivme; ivme.Database(sys.argv[1])"
    with Database(tmp_path):
        second = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
        )
    assert second.returncode != 0
    assert f"process {os.getpid()}" in second.stderr.splitlines()[-1]


def test_a_database_that_nobody_has_any_more_lets_go_of_its_directory(tmp_path: Path) -> None:
    import gc

    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    del db
    gc.collect()
    with Database(tmp_path) as db:
        assert ("R",) == db.tables


def test_a_failed_opening_lets_go_of_the_directory(tmp_path: Path) -> None:
    Database(tmp_path).close()
    manifest = (tmp_path / "database.json").read_bytes()
    (tmp_path / "database.json").write_bytes(b"ivme 1 00\n{}")
    for _ in range(2):
        with pytest.raises(DamagedError, match="checksum"):
            Database(tmp_path)
    (tmp_path / "database.json").write_bytes(manifest)
    Database(tmp_path).close()


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    Database(tmp_path).close()
    path = tmp_path / "database.json"
    text = path.read_bytes().partition(b"\n")[2]
    path.write_bytes(f"ivme 2 {digest(text).hex()}\n".encode() + text)
    with pytest.raises(StorageError, match=r"database\.json has the format version 2, and this ivme reads version 1"):
        Database(tmp_path)


def test_a_log_of_another_format_version_is_refused(tmp_path: Path) -> None:
    Database(tmp_path).close()
    log = log_of(tmp_path)
    log.write_bytes(log.read_bytes().replace(b"ivme-log 2 ", b"ivme-log 9 ", 1))
    with pytest.raises(StorageError, match=r"log-000000000001\.ivme has the format version 9"):
        Database(tmp_path)


def test_a_directory_with_other_files_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(StorageError, match=r"letters\.txt"):
        Database(tmp_path)
    assert ["letters.txt"] == [path.name for path in tmp_path.iterdir()]
    assert "dear" == (tmp_path / "letters.txt").read_text()


def test_files_of_others_beside_the_database_are_left_alone(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        (tmp_path / "notes.txt").write_text("mine")
        db.checkpoint()
    Database(tmp_path).close()
    assert "mine" == (tmp_path / "notes.txt").read_text()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be a database's directory: there is a file of that name"):
        Database(tmp_path / "file")


def test_a_log_of_another_database_is_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        Database(tmp_path / name).close()
    log_of(tmp_path / "one").write_bytes(log_of(tmp_path / "other").read_bytes())
    with pytest.raises(DamagedError, match="log of another database"):
        Database(tmp_path / "one")


def test_a_forked_copy_of_the_process_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        owner = os.getpid()
        with monkeypatch.context() as patch:
            patch.setattr("ivme.store.log.os.getpid", lambda: owner + 1)
            with pytest.raises(StorageError, match="another process"):
                db.insert("R", [(1,)])
        db.insert("R", [(2,)])


def test_a_crash_while_the_directory_was_made_leaves_it_usable(tmp_path: Path) -> None:
    db = Database(tmp_path)
    crash(db)
    (tmp_path / "database.json").unlink()
    (tmp_path / "database.json.tmp").write_bytes(b"ivme")
    with Database(tmp_path) as db:
        assert () == db.tables
