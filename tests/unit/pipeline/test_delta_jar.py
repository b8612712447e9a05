"""The sink for Delta's jar, which is not on these machines: what it asks Spark for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ivme.pipeline.document import Place
from ivme.pipeline.model import Pipeline, Sink
from ivme.spark.pipeline.sink import open_writer


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

    def __getattr__(self, name: str) -> Any:
        return lambda given: (self.called.update({name: given}), self)[1]


@pytest.mark.parametrize("what", ["changes", "rows"])
def test_a_batch_is_an_application_transaction_of_one_table(tmp_path: Path, what: str) -> None:
    place = Place("p.yml", 1, 1)
    sink = Sink("out", "v", what, "delta", str(tmp_path / "out"), place, (("mergeSchema", "true"),))
    pipeline = Pipeline("p", tmp_path / "p.yml", tmp_path, (), (), (sink,))
    spark = Recorder()

    open_writer(spark, pipeline, sink, "me").write(7, pa.table({"a": [1, 2]}))  # type: ignore[arg-type]

    called = spark.called
    assert {"mergeSchema": "true", "txnAppId": "ivme/p/out/me", "txnVersion": "7"} == called["options"]
    assert ("delta", str(tmp_path / "out")) == (called["format"], called["save"])
    assert ("append" if what == "changes" else "overwrite") == called["mode"]
    assert (["a", "ivme_batch"] if what == "changes" else ["a"]) == called["rows"].column_names
