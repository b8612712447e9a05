"""Iceberg tables as sources and as sinks, through pyiceberg and a catalog in SQLite."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ivme
from ivme.errors import PipelineError, SparkError
from ivme.pipeline import read_pipeline
from ivme.pipeline.journal import RunJournal
from ivme.spark.pipeline.driver import Driver
from ivme.spark.pipeline.iceberg_sink import IcebergWriter
from ivme.spark.pipeline.runner import run
from ivme.spark.pipeline.verify import verify_pipeline

pytest.importorskip("pyiceberg", reason="Iceberg needs the extra ivme[iceberg]")

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
]

_FILE = """\
tables:
  orders:
    columns: {{id: int, city: string, amount: int}}
    load: {{format: iceberg, table: shop.orders, options: {catalog}}}
    changes: {{iceberg: shop.orders, options: {catalog}}}
views:
  per_city:
    sql: SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY city
  pairs:
    sql: SELECT city, amount, COUNT(*) AS n FROM orders GROUP BY city, amount
sinks:
  changes: {{view: per_city, mode: changes, format: iceberg, table: out.changes, options: {catalog}}}
  rows: {{view: per_city, mode: rows, format: iceberg, table: out.rows, options: {catalog}}}
  merged: {{view: per_city, mode: merge, format: iceberg, table: out.merged, options: {catalog}}}
  merged_pairs: {{view: pairs, mode: merge, format: iceberg, table: out.pairs, options: {catalog}}}
"""

_SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("amount", pa.int64())])


class Lake:
    """A catalog with a table of orders, and the pipeline that follows it."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog import load_catalog

        (folder / "warehouse").mkdir()
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }
        self.catalog = load_catalog("ivme", **properties)
        self.catalog.create_namespace("shop")
        self.orders = self.catalog.create_table("shop.orders", _SCHEMA)
        self.file = folder / "lake.yml"
        told = ", ".join(f'{name}: "{value}"' for name, value in properties.items())
        self.file.write_text(_FILE.format(catalog="{" + told + "}"))

    def append(self, *rows: tuple[int, str | None, int]) -> None:
        self.orders.append(pa.table(dict(zip(_SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)), _SCHEMA))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(
            (tuple(row.values()) for row in self.catalog.load_table(name).scan().to_arrow().to_pylist()), key=str
        )

    def check(self) -> None:
        """All sinks against the rows of the table, added up here."""
        found: dict[Any, list[int]] = {}
        pairs: dict[Any, int] = {}
        for _, city, amount in self.rows("shop.orders"):
            found.setdefault(city, []).append(amount)
            pairs[city, amount] = pairs.get((city, amount), 0) + 1
        expected = sorted(((city, len(each), sum(each)) for city, each in found.items()), key=str)
        assert expected == self.rows("out.rows")
        assert expected == self.rows("out.merged")
        assert sorted(((*pair, n) for pair, n in pairs.items()), key=str) == self.rows("out.pairs")
        net: dict[tuple[Any, ...], int] = {}
        for *row, weight, _ in self.rows("out.changes"):
            net[tuple(row)] = net.get(tuple(row), 0) + weight
        assert dict.fromkeys(expected, 1) == {row: weight for row, weight in net.items() if weight}


def test_snapshots_of_a_table_reach_iceberg_sinks_once(spark: Any, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append((1, "Oslo", 10), (2, "Bern", 20), (3, None, 5))
    with ivme.Pipeline(lake.file, spark=spark) as pipeline:
        lake.check()
        lake.append((4, "Oslo", 40))
        lake.append((5, "Rome", 50), (5, "Rome", 50))
        pipeline.run()
        assert 1 == pipeline.batch
        lake.check()
        lake.orders.delete("city == 'Oslo'")
        lake.orders.delete("city is null")
        pipeline.run()
        lake.check()
        assert [] == [compared.name for compared in pipeline.verify() if compared.differences]
    lake.append((6, None, 7))
    with ivme.Pipeline(lake.file, spark=spark) as pipeline:
        pipeline.run()
        pipeline.run()
        assert 3 == pipeline.batch
    lake.check()


class _CrashError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("steps", [6, pytest.param(60, marks=pytest.mark.long)])
def test_crashes_around_commits_lose_and_double_nothing(
    spark: Any, tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, chance = Lake(tmp_path), random.Random(steps)
    lake.append((0, "Oslo", 1))
    for step in range(steps):
        if step % 3 == 2:
            lake.orders.delete(f"amount == {chance.randrange(4)}")
        else:
            cities = ["Oslo", "Bern", None]
            lake.append(*((step, chance.choice(cities), chance.randrange(4)) for _ in range(chance.randrange(1, 5))))
        with monkeypatch.context() as patched:
            _crash(patched, chance)
            with suppress(_CrashError):
                _take_all(spark, lake.file)
    _take_all(spark, lake.file)
    lake.check()


def _crash(patched: pytest.MonkeyPatch, chance: random.Random) -> None:
    kind: type = chance.choice([IcebergWriter, RunJournal])
    name = "_commit" if kind is IcebergWriter else "wrote"
    original, left, after = getattr(kind, name), [chance.randrange(3)], chance.random() < 0.5

    def crash(*given: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            return original(*given)
        if after:
            original(*given)
        raise _CrashError

    patched.setattr(kind, name, crash)


def _take_all(spark: Any, file: Path) -> None:
    driver = Driver(spark, read_pipeline(file))
    try:
        run(driver, once=True)
        assert not any(compared.differences for compared in verify_pipeline(driver))
    finally:
        driver.close()


def test_a_driver_that_was_replaced_cannot_write(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(tmp_path)
    lake.append((1, "Oslo", 10))
    driver = Driver(spark, read_pipeline(lake.file))
    writer = driver.outlets._writers["changes"]
    assert isinstance(writer, IcebergWriter)
    rows = pa.table({"city": ["Oslo"], "n": [9], "total": [9], "ivme_weight": [1]})
    original = IcebergWriter._commit

    def late(self: IcebergWriter, *given: Any) -> None:
        monkeypatch.undo()
        writer.write(7, rows)  # another driver, in the time between the look and the commit
        original(self, *given)

    monkeypatch.setattr(IcebergWriter, "_commit", late)
    with pytest.raises(SparkError, match=r"out.changes was written by another one at the same time, and batch 7 was"):
        writer.write(7, rows)
    writer.write(7, rows)
    assert 1 == sum(row[-1] == 7 for row in lake.rows("out.changes"))
    driver.close()


def test_iceberg_that_cannot_be_is_refused(spark: Any, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    text = lake.file.read_text()
    lake.file.write_text(text.replace("iceberg: shop.orders", "iceberg: shop.nothing"))
    with pytest.raises(SparkError, match=r"the catalog has no Iceberg table shop.nothing"):
        _take_all(spark, lake.file)
    lake.file.write_text(text.replace("pairs, mode: merge,", "pairs, mode: merge, key: [city],").replace("lake", "x"))
    with pytest.raises(PipelineError, match="nothing says that city is a key of view pairs, which such a merge needs"):
        read_pipeline(lake.file)
    lake.catalog.create_namespace("other")
    lake.catalog.create_table("other.rows", _SCHEMA)
    lake.file.write_text(text.replace("table: out.", "table: other.").replace("tables:", "state: new\ntables:", 1))
    with pytest.raises(SparkError, match=r"Iceberg table other.rows has rows that this pipeline's state did not write"):
        _take_all(spark, lake.file)
