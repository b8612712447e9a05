"""Asking shards through a Spark job, where the driver cannot reach their daemons itself."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.errors import IvmeError
from ivme.shards.client import ask
from ivme.shards.cluster import Question
from ivme.shards.journal import StepJournal
from ivme.shards.protocol import Message, error_head, raise_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "number int, head string, tables binary"


def ask_by_job(spark: SparkSession, journal: StepJournal, questions: Sequence[Question], lease: float) -> list[Message]:
    """The answers of shards, each asked by a task of its own."""
    asked = [(q.shard, json.dumps(dict(q.head)), _packed(q.tables)) for q in questions]
    root = str(journal.root)

    def asking(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = StepJournal.open(Path(root), None)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                shard, head, tables = asked[number]
                try:
                    found = ask(opened, shard, json.loads(head), _unpacked(tables), lease)
                except IvmeError as error:
                    found = Message(error_head(error))
                row: dict[str, Any] = {"number": number, "head": json.dumps(dict(found.head))}
                schema = pa.schema([("number", pa.int32()), ("head", pa.string()), ("tables", pa.binary())])
                yield pa.RecordBatch.from_pylist([{**row, "tables": _packed(found.tables)}], schema)

    frame = spark.range(0, len(asked), 1, len(asked)).mapInArrow(asking, _SCHEMA)
    answers = {}
    for row in frame.toArrow().to_pylist():
        answers[row["number"]] = Message(json.loads(row["head"]), _unpacked(row["tables"]))
    for found in answers.values():
        raise_error(found.head)
    return [answers[number] for number in range(len(asked))]


def _packed(tables: Sequence[pa.Table]) -> bytes:
    sink = io.BytesIO()
    for table in tables:
        body = io.BytesIO()
        with pa.ipc.new_stream(body, table.schema) as stream:
            stream.write_table(table)
        sink.write(len(body.getbuffer()).to_bytes(8, "big"))
        sink.write(body.getbuffer())
    return sink.getvalue()


def _unpacked(data: bytes) -> tuple[pa.Table, ...]:
    tables, position = [], 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 8], "big")
        position += 8
        tables.append(pa.ipc.open_stream(pa.py_buffer(data[position : position + size])).read_all())
        position += size
    return tuple(tables)
