"""Checkpoints in Hadoop's file systems, with Hadoop's own client for local files.

What is not shown by that: of two renames to one name at the same moment, the name node of HDFS lets one succeed; the
client for local files looks first, and renames then. `test_hdfs_records` shows it where there is an HDFS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import SparkError, StorageError
from ivme.spark.shards.hadoop_records import hadoop_create
from ivme.store.checkpoint_store import open_checkpoint_store
from ivme.store.hadoop_store import HadoopStore


def test_an_object_is_made_whole_by_the_jvm_and_once(spark: Any, tmp_path: Path) -> None:
    store = HadoopStore(f"file://{tmp_path}").created_by(hadoop_create(spark))
    assert store.create("records/000000000001", b"first")
    assert not store.create("records/000000000001", b"second")
    assert b"first" == (tmp_path / "records/000000000001").read_bytes()
    assert ["000000000001"] == store.list("records")
    left = {path.name for path in (tmp_path / "records").iterdir()} - {"000000000001", ".000000000001.crc"}
    assert set() == left


def test_what_cannot_be_made_is_a_storage_error(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "records").write_text("not a folder")
    store = HadoopStore(f"file://{tmp_path}").created_by(hadoop_create(spark))
    with pytest.raises(StorageError, match="records/1 cannot be made"):
        store.create("records/1", b"")
    with pytest.raises(StorageError, match="can be made by the driver alone"):
        HadoopStore(f"file://{tmp_path}").create("records/1", b"")


def test_a_store_that_is_not_there_says_what_it_needs() -> None:
    with pytest.raises(StorageError, match="libhdfs and Hadoop's jars have to be found"):
        open_checkpoint_store("hdfs://nowhere:8020/checkpoint")


@pytest.mark.long
def test_a_database_is_kept_in_it_and_another_driver_takes_it_over(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"file://{tmp_path}/checkpoint"
    monkeypatch.setattr("ivme.spark.shards.database.open_checkpoint_store", HadoopStore)
    first = ivme.SparkDatabase(spark, 2, address)
    first.create_table("R", {"a": "int", "b": "int"})
    view = first.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
    for number in range(5):
        first.insert("R", [(i % 3, number) for i in range(20)])
    expected = sorted(view)
    with ivme.SparkDatabase(spark, None, address) as second:
        assert expected == sorted(second.view("v"))
        with pytest.raises(SparkError, match="another driver has taken over"):
            first.insert("R", [(1, 1)])
        second._coordinator.compact(lambda: second.step, now=True)
        second.insert("R", [(0, 9)])
        assert [(0, 36), (1, 35), (2, 30)] == sorted(second.view("v"))
    first.close()
