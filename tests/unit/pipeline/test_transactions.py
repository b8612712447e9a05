"""Transactions over tables: whatever the order, cut and repeats of events, tables have whole transactions only."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.errors import PipelineError
from ivme.pipeline import Pipeline, read_pipeline
from ivme.pipeline.keyed_events import DELETE, UPSERT, KeyedEvents
from ivme.pipeline.model import LOG
from ivme.pipeline.read import declare_all
from ivme.pipeline.read_changes import LOG_TABLE
from ivme.pipeline.read_tables import create_table
from ivme.pipeline.source_batch import SourceBatch, TransactionIds
from ivme.pipeline.table_changes import TableChanges
from ivme.pipeline.transactions import HELD, transaction_tables, waiting, without_waiting
from ivme.spark.pipeline.taking import prepared

_FILE = """\
transactions: {directory: log}
tables:
  orders:
    columns: {id: int, total: int}
    primary_key: id
    changes: {directory: orders, format: json, envelope: debezium}
  items:
    columns: {id: int, price: int}
    primary_key: id
    changes:
      {directory: items, format: csv, upsert: true, transaction_by: tx, transaction_number: no, collection: shop.item}
  bag:
    columns: {v: int}
    changes: {directory: bag, format: csv, operation: op, transaction_by: tx, transaction_number: no}
views:
  both: {sql: "SELECT o.id, o.total, i.price FROM orders o JOIN items i ON o.id = i.id"}
"""

_Event = tuple[str | None, int | None, int, int, int]
"""A transaction, its number there, the kind, the key and the value."""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "p.yml").write_text(_FILE)
    return read_pipeline(tmp_path / "p.yml")


def _batch(pipeline: Pipeline, name: str, events: list[_Event], lost: Sequence[_Event] = ()) -> SourceBatch:
    table = pipeline.table(name).table
    values = [(event[3], event[4])[-len(table.columns) :] for event in events]
    rows = pa.Table.from_pylist(
        [dict(zip(table.column_names, row, strict=True)) for row in values], schema=arrow_schema(table)
    )
    kinds = np.array([event[2] for event in events], np.int64)
    content = TableChanges(rows, kinds) if name == "bag" else KeyedEvents(rows, kinds.astype(np.int8))
    ids, numbers = (pa.array([each[i] for each in events], t) for i, t in ((0, pa.string()), (1, pa.int64())))
    came = [*events, *lost]
    come = pa.table(
        {
            "id": pa.array([each[0] for each in came], pa.string()),
            "number": pa.array([each[1] for each in came], pa.int64()),
        }
    )
    return SourceBatch(content, transactions=TransactionIds(ids, numbers, come))


def _log(entries: list[tuple[str, dict[str, int]]]) -> SourceBatch:
    names = {"orders": "db.shop.orders", "items": "shop.item", "bag": "bag", "other": "shop.other"}
    rows = [
        {"id": key, "counts": json.dumps([{"data_collection": names[n], "event_count": c} for n, c in counts.items()])}
        for key, counts in entries
    ]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(LOG_TABLE))
    return SourceBatch(TableChanges(table, np.ones(len(rows), np.int64)))


class _State:
    """A database that takes batches as the driver does."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.database, self.number = pipeline, Database(), 0
        declare_all(pipeline, self.database)
        for table in transaction_tables():
            create_table(self.database, table)

    def take(self, name: str, batch: SourceBatch) -> None:
        self.number += 1
        found = prepared(self.pipeline, self.database, self.pipeline.table(name).table, batch, self.number)
        assert not found.letters
        with self.database.batch() as changes:
            for each, delta in found.changes.items():
                if delta.size:
                    changes.apply(each, delta.rows, delta.weights)

    def rows(self) -> dict[str, list[Any]]:
        return {name: sorted(self.database.table(name)) for name in ("orders", "items", "bag")}

    def waiting(self) -> int:
        return sum(len(self.database.table(HELD + name)) for name in ("orders", "items", "bag"))


class _Walk:
    """Transactions made one after the other, and what the tables are after each."""

    def __init__(self, chance: random.Random, size: int) -> None:
        keyed: dict[str, dict[int, int]] = {"orders": {}, "items": {}}
        bag: list[int] = []
        self.events: dict[str, list[_Event]] = {"orders": [], "items": [], "bag": []}
        self.log: list[tuple[str, dict[str, int]]] = []
        self.states = [self._state(keyed, bag)]
        for number in range(size):
            counts: dict[str, int] = {"other": 2} if chance.random() < 0.3 else {}
            for order in range(chance.choice([0, 1, 2, 5])):
                name = chance.choice(list(self.events))
                key, value = chance.randrange(6), chance.randrange(9)
                kind = chance.choice([UPSERT, UPSERT, DELETE])
                if name == "bag":
                    kind = 1 if value not in bag else chance.choice([1, -1])
                    bag.append(value) if kind == 1 else bag.remove(value)
                elif kind == UPSERT:
                    keyed[name][key] = value
                else:
                    keyed[name].pop(key, None)
                self.events[name].append((f"t{number}", order, kind, key, value))
                counts[name] = counts.get(name, 0) + 1
            self.log.append((f"t{number}", counts))
            self.states.append(self._state(keyed, bag))

    @staticmethod
    def _state(keyed: dict[str, dict[int, int]], bag: list[int]) -> dict[str, list[Any]]:
        return {**{name: sorted(rows.items()) for name, rows in keyed.items()}, "bag": sorted((v,) for v in bag)}


@pytest.mark.parametrize("seed", range(4))
def test_tables_have_whole_transactions_whatever_comes_when(pipeline: Pipeline, seed: int) -> None:
    chance = random.Random(seed)
    walk, state = _Walk(chance, 40), _State(pipeline)
    sources: dict[str, list[Any]] = {**{name: list(e) for name, e in walk.events.items()}, LOG: list(walk.log)}
    again: dict[str, list[Any]] = {name: [] for name in sources}
    reached = 0
    while any(sources.values()):
        name = chance.choice([name for name, left in sources.items() if left])
        part = [sources[name].pop(0) for _ in range(min(chance.choice([1, 4, 15]), len(sources[name])))]
        part += chance.sample(again[name], min(2, len(again[name]))) + part[:1]  # some come again
        again[name] += part
        state.take(name, _log(part) if name == LOG else _batch(pipeline, name, part))
        found = state.rows()
        assert found in walk.states[reached:], "not the rows after a transaction, or those of an earlier one"
        reached += walk.states[reached:].index(found)
    assert walk.states[-1] == state.rows()
    assert 0 == state.waiting()
    for name in ("orders", "items"):
        whole = without_waiting(state.database, name, _batch(pipeline, name, again[name])).content
        assert isinstance(whole, KeyedEvents)
        assert len(walk.events[name]) == whole.size
    state.database.close()


def test_events_of_no_transaction_do_not_wait_and_bad_ones_count(pipeline: Pipeline) -> None:
    state = _State(pipeline)
    state.take("orders", _batch(pipeline, "orders", [(None, None, UPSERT, 1, 1), ("t", 0, UPSERT, 2, 2)]))
    assert [(1, 1)] == state.rows()["orders"]
    assert 1 == state.waiting()
    state.take(LOG, _log([("t", {"orders": 2})]))
    assert [(1, 1)] == state.rows()["orders"]
    told = waiting(state.database, pipeline.together)
    assert {"transactions": 1, "events": 1, "first": "t"} == told
    held = _batch(pipeline, "orders", [("t", 0, UPSERT, 2, 2)])
    assert 0 == without_waiting(state.database, "orders", held).size
    state.take("orders", _batch(pipeline, "orders", [], lost=[("t", 1, UPSERT, 9, 9)]))
    assert [(1, 1), (2, 2)] == state.rows()["orders"]
    state.database.close()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("transactions: {directory: log}", "transactions: {format: json}", "a directory of JSON, or a stream"),
        ("transactions: {directory: log}", "transactions: {directory: log, format: csv}", "json"),
        (", transaction_by: tx, transaction_number: no}", ", transaction_number: no}", "needs transaction_by"),
    ],
)
def test_transactions_that_cannot_be_are_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "p.yml").write_text(_FILE.replace(old, new))
    with pytest.raises(PipelineError, match=told):
        read_pipeline(tmp_path / "p.yml")


def test_a_log_without_tables_is_refused(tmp_path: Path) -> None:
    text = "transactions: {directory: log}\ntables:\n  t: {columns: {a: int}}\nviews:\n  v: {sql: SELECT a FROM t}\n"
    (tmp_path / "p.yml").write_text(text)
    with pytest.raises(PipelineError, match="no transactions to apply together"):
        read_pipeline(tmp_path / "p.yml")
