"""Checkpoint stores: of several who create an object one succeeds; in a folder, and in S3 as moto plays it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

from ivme.errors import StorageError
from ivme.store.checkpoint_store import CheckpointStore, FolderStore, open_checkpoint_store
from ivme.store.hadoop_store import HadoopStore
from tests.sharded_databases import local_database

pytestmark = pytest.mark.xdist_group("bucket")
"""The server starts once."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server in this process; the environment says where it is."""
    pytest.importorskip("obstore", reason="the extra objects is not installed")
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    _put_one_after_the_other()
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }.items():
            patch.setenv(name, value)
        urlopen(Request(f"http://{host}:{port}/checkpoints", method="PUT")).close()
        yield "s3://checkpoints"
    running.stop()


def _put_one_after_the_other() -> None:
    """moto looks whether an object is there and puts it in two steps, between which another thread may put it, too."""
    from moto.s3.responses import S3Response

    put, turn = S3Response.put_object, threading.Lock()

    def put_alone(self: Any) -> Any:
        with turn:
            return put(self)

    setattr(S3Response, "put_object", put_alone)  # noqa: B010


@pytest.fixture(params=["folder", "hadoop", pytest.param("s3", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    if request.param == "folder":
        return open_checkpoint_store(tmp_path)
    if request.param == "hadoop":  # what creates is that of a folder here; tests/spark has Hadoop's own
        made = FolderStore(tmp_path)
        return HadoopStore(f"file://{tmp_path}").created_by(
            lambda address, data: made.create(address.removeprefix(f"file://{tmp_path}/"), data)
        )
    return open_checkpoint_store(f"{request.getfixturevalue('bucket')}/{tmp_path.name}")


def test_an_object_is_created_once(store: CheckpointStore) -> None:
    assert store.create("a/b", b"first")
    assert not store.create("a/b", b"second")
    assert b"first" == content(store, "a/b")


def content(store: CheckpointStore, name: str) -> bytes | None:
    found = store.read(name)
    return None if found is None else bytes(found.to_pybytes())


def test_of_many_who_create_at_once_one_succeeds(store: CheckpointStore) -> None:
    for number in range(5):
        made: list[int] = []
        start = threading.Barrier(6)

        def create(writer: int, name: str = f"records/{number}", made: list[int] = made, start: Any = start) -> None:
            start.wait()
            if store.create(name, str(writer).encode()):
                made.append(writer)

        threads = [threading.Thread(target=create, args=(writer,)) for writer in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [str(each).encode() for each in made] == [content(store, f"records/{number}")]


def test_objects_are_written_listed_and_deleted(store: CheckpointStore) -> None:
    store.write("x/1/a", [b"one ", pa.py_buffer(b"two")])
    store.write("x/1/a", [b"one ", pa.py_buffer(b"three")])
    store.write("x/2", [b""])
    assert b"one three" == content(store, "x/1/a")
    assert b"" == content(store, "x/2")
    assert ["1", "2"] == store.list("x")
    assert [] == store.list("nothing")
    assert None is store.read("x/3")
    store.delete("x/1")
    store.delete("x/1")
    assert ["2"] == store.list("x")


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    store = FolderStore(tmp_path)
    with pytest.raises(StorageError, match="No space left"):
        store.write("a", failing())
    assert [] == list(tmp_path.iterdir())


def test_an_address_that_is_not_supported_is_named() -> None:
    with pytest.raises(StorageError, match="is on ftp, which is not supported; use a folder or s3://"):
        open_checkpoint_store("ftp://host/folder")


@pytest.mark.slow
def test_a_database_lives_in_s3(bucket: str) -> None:
    database: Any = local_database(f"{bucket}/database", 2)
    database.create_table("r", {"a": "int"})
    database.create_view("v", "SELECT COUNT(*) AS n FROM r")
    database.insert("r", [(i,) for i in range(20)])
    other = local_database(f"{bucket}/database", None)
    with pytest.raises(Exception, match="another driver has taken over"):
        database.insert("r", [(1,)])
    other.insert("r", [(1,)])
    assert 21 == other.view("v").scalar()
