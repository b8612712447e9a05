"""The sink for Delta's jar, which is not on these machines: what it asks Spark for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.pipeline.document import Place
from ivme.pipeline.model import Pipeline, Sink
from ivme.spark.pipeline.writers import open_writer


class Recorder:
    """Stands for a session with the jar, and for its frames and writers: notes what is called."""

    def __init__(self) -> None:
        self.called: dict[str, Any] = {}
        self.conf = SimpleNamespace(get=lambda *_: "io.delta.sql.DeltaSparkSessionExtension")
        self.write = self

    def createDataFrame(self, rows: pa.Table) -> Recorder:
        self.called["rows"] = rows
        return self

    def options(self, **given: str) -> Recorder:
        self.called["options"] = given
        return self

    def withColumn(self, name: str, column: Any) -> Recorder:
        self.called["added"] = (name, column)
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda given: (self.called.update({name: given}), self)[1]


@pytest.mark.parametrize("what", ["changes", "rows"])
def test_a_batch_is_an_application_transaction_of_one_table(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    literal = SimpleNamespace(cast=lambda kind: kind)
    monkeypatch.setattr("pyspark.sql.functions.lit", lambda number: literal if number == 7 else None)
    place = Place("p.yml", 1, 1)
    sink = Sink("out", "v", what, "delta", str(tmp_path / "out"), place, (("mergeSchema", "true"),))
    pipeline = Pipeline("p", tmp_path / "p.yml", tmp_path, (), (), (sink,))
    spark = Recorder()

    with Database() as database:
        open_writer(spark, pipeline, sink, "me", database).write(7, pa.table({"a": [1, 2]}))  # type: ignore[arg-type]

    called = spark.called
    assert {"mergeSchema": "true", "txnAppId": "ivme/p/out/me", "txnVersion": "7"} == called["options"]
    assert ("delta", str(tmp_path / "out")) == (called["format"], called["save"])
    assert ("append" if what == "changes" else "overwrite") == called["mode"]
    assert (("ivme_batch", "long") if what == "changes" else None) == called.get("added")
    assert ["a"] == called["rows"].column_names


def test_a_merge_is_one_statement_under_the_number_of_its_batch(tmp_path: Path) -> None:
    sink = Sink("out", "v", "merge", "delta", str(tmp_path / "out"), Place("p.yml", 1, 1), key=("a",))
    pipeline = Pipeline("p", tmp_path / "p.yml", tmp_path, (), (), (sink,))
    spark = Recorder()
    settings: dict[str, str] = {}
    extensions = "io.delta.sql.DeltaSparkSessionExtension"
    spark.conf = SimpleNamespace(get=lambda *_: extensions, set=settings.__setitem__, unset=lambda _: None)
    with Database() as database:
        database.create_table("t", {"a": "int", "b": "int"}, primary_key="a")
        database.create_view("v", "SELECT a, b FROM t")
        writer = open_writer(spark, pipeline, sink, "me", database)  # type: ignore[arg-type]
        writer.write(7, pa.table({"a": [1, 1, 2], "b": [3, 4, 5], "ivme_weight": [-1, 1, -1]}))
    assert ["ivme/p/out/me", "7"] == list(settings.values())
    assert [(1, 4, False), (2, 5, True)] == [tuple(row.values()) for row in spark.called["rows"].to_pylist()]
    statement = spark.called["sql"]
    assert statement.startswith(f"MERGE INTO delta.`{tmp_path / 'out'}` t USING ivme_merged s ON t.`a` <=> s.`a`")
    assert "WHEN MATCHED AND s.ivme_gone THEN DELETE WHEN MATCHED THEN UPDATE" in statement
