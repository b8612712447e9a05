"""Upserts and deletes by key against a walk over the events, one after the other, in any cut into batches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.codes.arrow_types import arrow_schema
from ivme.pipeline.keyed_events import (
    DELETE,
    SEQUENCES,
    TRUNCATE,
    UPSERT,
    KeyedEvents,
    latest_rows,
    objections,
    resolved,
    sequence_table,
)
from ivme.pipeline.read_tables import create_table
from ivme.query.model import Table
from ivme.query.model import table as declare
from ivme.query.types import Type

_T = declare("t", {"a": "int", "b": "string", "v": "int"}, primary_key=["a", "b"])
_Event = tuple[int, str, int | None, int, tuple[int, ...]]


def _events(given: list[_Event], width: int) -> KeyedEvents:
    rows = pa.Table.from_pylist([{"a": a, "b": b, "v": v} for a, b, v, *_ in given], schema=arrow_schema(_T))
    kinds = np.array([kind for *_, kind, _ in given], np.int8)
    return KeyedEvents(rows, kinds, tuple(pa.array([each[4][i] for each in given], pa.int64()) for i in range(width)))


def _apply(database: Database, events: KeyedEvents) -> None:
    beside = SEQUENCES + "t"
    table = database.table("t")
    sequences = database.table(beside).of_keys if events.sequences else None

    def find(rows: pa.Table) -> pa.Table:
        return table.of_keys(rows)

    def of_keys(rows: pa.Table) -> pa.Table:
        assert sequences is not None
        return sequences(rows)

    with database.batch() as batch:
        for name, changes in resolved(_T, events, find, table.to_arrow, of_keys).items():
            batch.apply(name, changes.rows, changes.weights)


def _opened(width: int) -> Database:
    database = Database()
    create_table(database, _T)
    create_table(database, sequence_table(_T, (Type("int"),) * width))
    return database


def _walk(given: list[_Event], start: dict[tuple[int, str], int | None]) -> dict[tuple[int, str], int | None]:
    """The rules as they are told: the newest event of a key counts; at one sequence an upsert, and the later one."""
    rows = dict(start)
    best: dict[tuple[int, str], tuple[Any, ...]] = {}
    for place, (a, b, v, kind, sequence) in enumerate(given):
        if kind == TRUNCATE:
            rows.clear()
            continue
        rank = (sequence, kind, place) if sequence else (place,)
        if (a, b) not in best or rank > best[a, b]:
            best[a, b] = rank
            rows.pop((a, b), None)
            if kind == UPSERT:
                rows[a, b] = v
    return rows


def _random_event(chance: random.Random, width: int) -> _Event:
    kind = chance.choice([UPSERT, UPSERT, UPSERT, DELETE])
    if not width and chance.random() < 0.02:
        kind = TRUNCATE
    value = None if chance.random() < 0.1 else chance.randrange(50)
    return (chance.randrange(3), chance.choice("xy"), value, kind, tuple(chance.randrange(8) for _ in range(width)))


@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_events_in_any_cut_leave_the_rows_of_a_walk(seed: int, width: int) -> None:
    chance = random.Random(1000 * width + seed)
    database = _opened(width)
    start: dict[tuple[int, str], int | None] = {(k, "x"): k for k in range(3)}
    database.insert("t", [(a, b, v) for (a, b), v in start.items()])
    given = [_random_event(chance, width) for _ in range(200)]
    at = 0
    while at < len(given):
        size = chance.choice([1, 2, 7, 40])
        _apply(database, _events(given[at : at + size], width))
        at += size
        expected = _walk(given[:at], start)
        assert sorted((a, b, v) for (a, b), v in expected.items()) == sorted(
            database.table("t"), key=lambda row: row[:2]
        )
    loaded = pa.Table.from_pylist([{"a": a, "b": b, "v": v} for (a, b), v in start.items()], arrow_schema(_T))
    again = latest_rows(_T, loaded, _events(given, width)).to_pylist()
    assert {(row["a"], row["b"]): row["v"] for row in again} == expected
    database.close()


def test_what_comes_again_changes_nothing() -> None:
    database = _opened(1)
    given: list[_Event] = [(1, "x", 5, UPSERT, (3,)), (2, "x", 6, UPSERT, (4,)), (2, "x", None, DELETE, (5,))]
    _apply(database, _events(given, 1))
    found = resolved(
        _T,
        _events(given, 1),
        database.table("t").of_keys,
        database.table("t").to_arrow,
        database.table(SEQUENCES + "t").of_keys,
    )
    with database.batch() as batch:
        for name, changes in found.items():
            batch.apply(name, changes.rows, changes.weights)
    assert [(1, "x", 5)] == list(database.table("t"))
    database.close()


def test_events_without_a_key_or_a_sequence_are_named() -> None:
    rows = pa.table({"a": [None, 1, 2, 3], "b": ["x"] * 4, "v": [1] * 4}, schema=arrow_schema(_T))
    kinds = np.array([UPSERT, UPSERT, DELETE, TRUNCATE], np.int8)
    events = KeyedEvents(rows, kinds, (pa.array([1, None, 3, 4], pa.int64()),))
    found = objections(_T, events)
    assert {0, 1, 3} == set(found)
    assert "primary key column a is NULL" in found[0]
    assert "the sequence is NULL" in found[1]
    assert "truncate" in found[3]


def test_the_table_of_sequences_has_the_key_in_its_own_types() -> None:
    found: Table = sequence_table(_T, (Type("int"), Type("timestamp")))
    assert ("a", "b", "ivme_sequence_0", "ivme_sequence_1", "ivme_deleted") == found.column_names
    assert ("a", "b") == found.primary_key
