"""Batches of which the next is encoded while one is applied: everything is as if they were made one by one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme._kernel import encode_ahead_from
from ivme.database import Database
from ivme.errors import DataError
from tests.properties.test_threads import Stream, applied, arrow, contents, kernel_of, made
from tests.sweeping import sweep, sweeping_always

pytestmark = pytest.mark.usefixtures("shared_encoding")

Rows = list[tuple[Any, ...]]


def people(numbers: range, name: str = "name") -> pa.RecordBatch:
    names = [f"{name} {number}" for number in numbers]
    return pa.record_batch({"id": list(numbers), "name": names, "note": [f"note of {each}" for each in names]})


def database(threads: int = 2) -> Database:
    db = Database(threads=threads)
    db.create_table("people", {"id": "int", "name": "string", "note": "string"}, primary_key="id")
    db.create_view("named", "SELECT name, COUNT(*) AS n FROM people GROUP BY name")
    return db


def shown(db: Database) -> dict[str, Any]:
    return {"people": Counter(db.table("people")), "named": Counter(db.view("named"))}


def expected(*batches: pa.RecordBatch) -> dict[str, Any]:
    with database(1) as db:
        for each in batches:
            db.insert("people", each)
        return shown(db)


def messages(db: Database, batches: list[Any]) -> list[str | None]:
    """What each batch is refused with, if it is; those behind it are begun anew."""
    said: list[str | None] = []
    while len(said) < len(batches):
        try:
            said += [None] * db.apply_batches(iter(batches[len(said) :]))
        except DataError as error:
            (note,) = error.__notes__
            said += [None] * int(note.removeprefix("in batch ").split()[0])
            said.append(str(error))
    return said


def check(seed: int, batches: int) -> None:
    """On one thread, and ahead on two, three or four."""
    stream = Stream(seed)
    with made(1) as alone, made(2 + seed % 3) as shared:
        said, given = [], []
        for _ in range(batches):
            batch = stream.batch()
            if stream.rng.random() < 0.2:
                stream.spoiled(batch)
            given.append([(table, arrow(alone, table, rows), sign) for table, sign, rows in batch])
            said.append(applied(alone, batch))
            if said[-1] is None:
                stream.keep(batch)
        assert messages(shared, given) == said
        assert contents(shared) == contents(alone)
        kernel_of(shared).verify()
        for name in ("parts", "cities", "pairs"):
            shared.view(name).verify()


@pytest.mark.parametrize("seed", [1])
def test_streams_are_those_of_one_thread(seed: int) -> None:
    check(seed, 8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_streams_are_those_of_one_thread_at_length(seed: int) -> None:
    check(seed, 25)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_streams_are_right_while_codes_are_taken_back_after_each_batch(seed: int) -> None:
    with sweeping_always():
        check(seed, 10)


@pytest.mark.parametrize("threads", [1, 2])
def test_codes_that_were_taken_back_meanwhile_are_found_again(threads: int) -> None:
    """The rows of the next batch are encoded, not stored, when their strings' codes are given to others."""
    with database(threads) as db:

        def batches() -> Iterator[Any]:
            yield {"people": people(range(1000))}
            yield {"people": people(range(1000, 3000), "next")}
            sweep(db)
            db.insert("people", [(5000 + i, f"other {i}", f"other note {i}") for i in range(500)])
            yield {"people": people(range(3000, 4000), "last")}

        assert db.apply_batches(batches()) == 3
        wanted = expected(people(range(1000)), people(range(1000, 3000), "next"), people(range(3000, 4000), "last"))[
            "people"
        ]
        wanted.update((5000 + i, f"other {i}", f"other note {i}") for i in range(500))
        assert Counter(db.table("people")) == wanted
        db.view("named").verify()


def test_codes_that_were_taken_back_before_the_lock_are_found_again() -> None:
    """Another thread takes codes back when rows are encoded and the batch has not got the lock."""
    with database() as db:
        db.insert("people", people(range(2000)))
        with db.batch() as batch:
            batch.insert("people", people(range(2000, 4000), "mine"))
            gate = db._runtime.catalog.row_gate
            assert gate is not None
            before = db._runtime.domains.sweeps
            sweep(db)
            db._runtime.domains.sweeps = before  # as it was when the batch looked
            assert not gate.apply_encoded([(part.rows, part.weight) for part in batch._encoded.parts])
            db._runtime.domains.sweeps = before + 1
        assert shown(db) == expected(people(range(2000)), people(range(2000, 4000), "mine"))


def test_tables_and_views_may_come_and_go_between_batches() -> None:
    with database() as db:

        def batches() -> Iterator[Any]:
            yield {"people": people(range(1000))}
            db.create_view("notes", "SELECT note, COUNT(*) AS n FROM people GROUP BY note")
            db.create_table("pets", {"owner": "int"})
            yield [("people", people(range(1000, 2000))), ("pets", pa.record_batch({"owner": [1, 2]}))]
            db.drop_view("named")
            yield [("people", people(range(500)), -1), ("pets", [(3,)]), ("pets", [(1,), (4,)], [-1, 1])]

        assert db.apply_batches(batches()) == 3
        assert sorted(row[0] for row in db.table("people")) == list(range(500, 2000))
        assert sorted(db.table("pets")) == [(2,), (3,), (4,)]
        assert db.view("notes").count() == 1500
        db.view("notes").verify()


def test_what_comes_before_an_error_is_applied() -> None:
    first, second = people(range(1000)), people(range(900, 1100))
    with database() as db:
        with pytest.raises(DataError, match="primary key") as caught:
            db.apply_batches([{"people": first}, {"people": second}, {"people": people(range(5000, 6000))}])
        assert caught.value.__notes__[0].startswith("in batch 1 (from 0)")
        assert shown(db) == expected(first)

        def fails() -> Iterator[Any]:
            yield {"people": people(range(2000, 3000))}
            raise OSError("the source is gone")

        with pytest.raises(OSError, match="the source is gone"):
            db.apply_batches(fails())
        assert shown(db) == expected(first, people(range(2000, 3000)))
        for wrong in ([("people",)], [3], 3, ["people"]):
            with pytest.raises(DataError, match=r"is not \(table, rows\)"):
                db.apply_batches([wrong])  # type: ignore[list-item]
        assert db.apply_batches([]) == 0
        assert db.apply_batches([[], {}, {"people": []}]) == 3
        assert shown(db) == expected(first, people(range(2000, 3000)))


@pytest.mark.parametrize("values", [0, 300, 10**9])
def test_memory_may_be_used_again_whichever_thread_encodes_a_batch(values: int) -> None:
    """Batches of few values are encoded before the next is asked for, others beside it; sizes are on both sides."""
    before, numbers = encode_ahead_from(values), np.zeros(40, dtype=np.int64)

    def batches() -> Iterator[Any]:
        for number in range(30):
            size = 1 + number * 7 % 40
            numbers[:size] = range(number * 100, number * 100 + size)
            names = pa.array([f"of {number}"] * size)
            yield {"people": pa.record_batch({"id": pa.array(numbers[:size]), "name": names, "note": names})}

    try:
        with database() as db:
            assert db.apply_batches(batches()) == 30
            wanted = {(number * 100 + i, f"of {number}") for number in range(30) for i in range(1 + number * 7 % 40)}
            assert {row[:2] for row in db.table("people")} == wanted
            assert dict(db.view("named")) == Counter(name for _, name in wanted)
    finally:
        encode_ahead_from(before)


def test_batches_that_are_never_applied_leave_nothing_behind() -> None:
    with database() as db:

        class Stopped(BaseException):
            pass

        def stops() -> Iterator[Any]:
            yield {"people": people(range(3000))}
            raise Stopped

        with pytest.raises(Stopped):
            db.apply_batches(stops())
        assert shown(db) == {"people": Counter(), "named": Counter()}
        sweep(db)
        assert sum(map(len, db._runtime.domains.dictionaries().values())) == 0


FORKS = """
import os, sys
import pyarrow as pa
from ivme._kernel import share_encoding_from
from ivme.database import Database

def people(numbers, name):
    names = [f"{name} {number}" for number in numbers]
    return pa.record_batch({"id": list(numbers), "name": names, "note": [f"note of {each}" for each in names]})

with Database(threads=2) as db:
    db.create_table("people", {"id": "int", "name": "string", "note": "string"}, primary_key="id")
    db.create_view("named", "SELECT name, COUNT(*) AS n FROM people GROUP BY name")
    if sys.argv[1] == "threads first":  # and then the pool of pages
        share_encoding_from(10)
        db.create_table("few", {"a": "string", "b": "string"})
        db.insert("few", pa.record_batch({"a": list("abcdefgh") * 20, "b": ["b"] * 160}))
    statuses = []

    def batches():
        for number in range(8):
            yield {"people": people(range(number * 20000, number * 20000 + 20000), f"name {number}")}
            child = os.fork()
            if not child:
                db.insert("people", people(range(10**7, 10**7 + 2000), "of the child"))
                os._exit(0 if len(list(db.table("people"))) == 20000 * number + 2000 else 3)
            statuses.append(os.waitpid(child, 0)[1])

    assert db.apply_batches(batches()) == 8
    assert statuses == [0] * 8, statuses
    assert len(list(db.table("people"))) == 160_000
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.parametrize("order", ["pages first", "threads first"])
def test_a_process_may_be_forked_between_batches(order: str) -> None:
    """No thread is in the middle of encoding then, which the child would wait for, nor does the fork wait for one."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, order], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
