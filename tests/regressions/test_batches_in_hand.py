"""Batches that have been taken and not applied yet, while what they were made of, or are for, changes."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from tests.example_counts import some_of

pytestmark = pytest.mark.usefixtures("shared_encoding")

ROWS = 3000


def batch_of(number: int) -> pa.RecordBatch:
    return pa.record_batch({"a": list(range(1, ROWS + 1)), "b": [number] * ROWS, "s": ["x"] * ROWS})


def table(db: Database) -> None:
    db.create_table("t", {"a": "int", "b": "int", "s": "string"})
    db.create_table("other", {"z": "int"})


def add(db: Database) -> None:
    db.add_column("t", "c", "int")


def drop(db: Database) -> None:
    db.drop_column("t", "b")


def drop_and_add(db: Database) -> None:
    drop(db)
    db.add_column("t", "b", "float")


def swap(db: Database) -> None:
    for old, new in (("a", "q"), ("b", "a"), ("q", "b")):
        db.rename_column("t", old, new)


def make_again(db: Database) -> None:
    db.drop_table("t")
    db.create_table("t", {"b": "int", "s": "string", "a": "decimal(9, 2)"})


CHANGES: list[tuple[Callable[[Database], None], tuple[Any, ...] | None]] = [
    (add, None),
    (drop, None),
    (drop_and_add, (1, "x", 7.0)),
    (swap, (7, 1, "x")),
    (make_again, (7, "x", 1)),
]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(("change", "first"), CHANGES)
def test_a_table_that_gets_other_columns_gets_the_values_by_their_names(
    change: Callable[[Database], None], first: tuple[Any, ...] | None, ahead: bool
) -> None:
    with Database(threads=2) as db:
        table(db)

        def batches() -> Iterator[Any]:
            yield {"t": batch_of(7)}
            change(db)
            yield {"other": [(1,)]}

        def apply() -> None:
            if ahead:
                db.apply_batches(batches())
                return
            with db.batch() as batch:
                batch.insert("t", batch_of(7))
                change(db)

        if first is None:
            with pytest.raises(IvmeError):
                apply()
            assert not list(db.table("t"))
        else:
            apply()
            assert next(iter(db.table("t"))) == first
            assert len(list(db.table("t"))) == ROWS


@pytest.mark.parametrize("kind", ["list", "dicts", "numpy", "table of chunks", "slice"])
@pytest.mark.parametrize("threads", some_of([1, 2, 3], 2))
def test_memory_of_a_batch_may_be_used_again_for_the_next(kind: str, threads: int, tmp_path: Path) -> None:
    """Also where the next is refused, and in a directory: what is stored is what was given."""
    count, numbers = 4, np.zeros(ROWS + 3, dtype=np.int64)
    kept: list[Any] = []
    row: dict[str, Any] = {}

    def given(number: int) -> Any:
        numbers[:] = np.arange(-3, ROWS) + number * ROWS
        texts, flags = [f"{number} ä" for _ in numbers], [None if n % 5 == 0 else n % 2 == 0 for n in range(ROWS + 3)]
        columns = [pa.array(numbers), pa.array(texts), pa.array(flags)]
        whole = pa.record_batch(columns, ["a", "s", "f"])
        if kind == "numpy":
            return whole.slice(3)
        if kind == "slice":  # bits that do not begin with a byte
            return pa.record_batch([c.slice(3) for c in columns], ["a", "s", "f"]).slice(0)
        if kind == "table of chunks":
            return pa.Table.from_batches([whole.slice(3, 100), whole.slice(103)])
        if kind == "list":
            kept.extend((int(n), f"{number} ä", None) for n in numbers[3:])
            return kept
        row.update(a=number * ROWS, s=f"{number} ä", f=None)
        return [row]

    def batches() -> Iterator[Any]:
        for number in range(count):
            yield {"t": given(number)}
            kept.clear()
        numbers[5] = -(2**63)
        yield {
            "t": pa.record_batch(
                [pa.array(numbers), pa.array(["no"] * len(numbers)), pa.array([True] * len(numbers))], list("asf")
            )
        }

    rows = 1 if kind == "dicts" else ROWS
    wanted = {(number * ROWS + n, f"{number} ä") for number in range(count) for n in range(rows)}
    with Database(tmp_path / "db", durability="async", threads=threads) as db:
        db.create_table("t", {"a": "int", "s": "string", "f": "bool"}, primary_key="a")
        view = db.create_view("v", "SELECT s, f, COUNT(*) AS n FROM t GROUP BY s, f")
        with pytest.raises(IvmeError) as caught:
            db.apply_batches(batches())
        assert caught.value.__notes__[0].startswith(f"in batch {count} (from 0)")
        assert {(a, s) for a, s, _ in db.table("t")} == wanted
        view.verify()
    with Database(tmp_path / "db") as db:
        assert {(a, s) for a, s, _ in db.table("t")} == wanted
        if kind not in ("list", "dicts"):
            flags = [f for _, _, f in sorted(db.table("t"))]
            assert flags == [None if (n + 3) % 5 == 0 else (n + 3) % 2 == 0 for _ in range(count) for n in range(ROWS)]


def test_chunks_without_rows_that_came_over_a_stream_are_left_out() -> None:
    """Arrow cannot combine them with others, as they begin behind the end of their memory."""
    batch = pa.record_batch({"a": [1], "b": [2], "s": ["x"]})

    class Stream:
        def __arrow_c_stream__(self, schema: Any = None) -> Any:
            whole = pa.Table.from_batches([batch, batch.slice(1), batch])
            return whole.__arrow_c_stream__(schema)

    with Database() as db:
        table(db)
        db.insert("t", Stream())
        db.insert("t", pa.Table.from_batches([batch.slice(1)]))
        assert list(db.table("t")) == [(1, 2, "x")] * 2


def test_each_failure_says_which_batch_it_is_of() -> None:
    with Database(threads=2) as db:
        table(db)
        with pytest.raises(IvmeError) as caught:
            db.apply_batches([{"t": batch_of(1)}, 3])  # type: ignore[list-item]
        assert caught.value.__notes__[0].startswith("in batch 1 (from 0)")

        def closes() -> Iterator[Any]:
            yield {"t": batch_of(2)}
            db.close()

        with pytest.raises(IvmeError, match="closed") as caught:
            db.apply_batches(closes())
        assert caught.value.__notes__[0].startswith("in batch 0 (from 0)")
        with pytest.raises(IvmeError, match="closed"):
            db.apply_batches([])


FORKS = """
import os, threading, time
import pandas
import polars
import pyarrow as pa
from ivme._kernel import share_encoding_from
from ivme.database import Database

share_encoding_from(10)
db = Database(threads=2)
db.create_table("t", {"a": "int", "s": "string", "n": "string"})
db.create_view("v", "SELECT s, COUNT(*) AS n FROM t GROUP BY s")
N = 5000
def batch(k):
    texts = {name: [f"{name}{k} {i}" for i in range(N)] for name in "sn"}
    return pa.record_batch({"a": list(range(N)), **texts})
given = [batch(k) for k in range(6)]
over = threading.Event()
def fork():
    while not over.is_set():
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
forker = threading.Thread(target=fork)
forker.start()
try:
    applied = db.apply_batches([("t", each, sign)] for _ in range(6) for sign in (1, -1) for each in given)
finally:
    over.set()
    forker.join()
assert applied == 72 and not list(db.table("t"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a system without fork")
def test_another_thread_may_fork_while_batches_are_applied() -> None:
    """A fork holds the interpreter, which the thread with the strings may wait for, for which the next batch waits."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Stream:
    """Rows that other libraries give as a stream of Arrow."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)


def shared(numbers: np.ndarray[Any, Any]) -> pa.Table:
    return pa.table({"a": pa.array(numbers), "s": ["x"] * len(numbers)})


FORMS: dict[str, Callable[[list[Any], np.ndarray[Any, Any]], Any]] = {
    "generator": lambda rows, _: (row for row in rows),
    "iterator": lambda rows, _: iter(rows),
    "deque": lambda rows, _: deque(rows),
    "view of a dict": lambda rows, _: dict(enumerate(rows)).values(),
    "dicts in a tuple": lambda rows, _: tuple({"a": a, "s": s} for a, s in rows),
    "reader": lambda _, numbers: shared(numbers).to_reader(),
    "stream": lambda _, numbers: Stream(shared(numbers)),
    "polars": lambda _, numbers: polars.DataFrame({"a": numbers, "s": ["x"] * len(numbers)}),
    "pandas": lambda _, numbers: pandas.DataFrame({"a": numbers, "s": ["x"] * len(numbers)}, copy=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_gone_when_the_next_batch_is_made_have_been_applied(form: str) -> None:
    """They were read after the source had been asked for the next batch."""

    def batches() -> Iterator[Any]:
        for number in range(3):
            numbers = np.arange(5) + 10 * number
            rows = [(int(each), "x") for each in numbers]
            given = FORMS[form](rows, numbers)
            yield {"t": given}
            rows.clear()
            numbers[:] = -1
            if form == "deque":
                given.clear()
            if form == "dicts in a tuple":
                for each in given:
                    each["a"] = -1

    with Database(threads=2) as db:
        db.create_table("t", {"a": "int", "s": "string"})
        assert db.apply_batches(batches()) == 3
        assert sorted(db.table("t")) == [(10 * number + each, "x") for number in range(3) for each in range(5)]


def test_values_and_weights_that_change_after_a_batch_was_given_are_those_that_were_given() -> None:
    def batches() -> Iterator[Any]:
        for number in range(3):
            inner, raw, weights = [number, number], bytearray(b"%d" % number), np.full(1, number + 1)
            yield [("t", [(number, inner, raw)], pa.array(weights))]
            inner.clear()
            raw[:] = b"!"
            weights[:] = 9

    with Database(threads=2) as db:
        db.create_table("t", {"a": "int", "xs": "array<int>", "b": "binary"})
        counted = db.create_view("counted", "SELECT a, xs, b, COUNT(*) AS n FROM t GROUP BY a, xs, b")
        assert db.apply_batches(batches()) == 3
        assert sorted(counted) == [(number, (number, number), b"%d" % number, number + 1) for number in range(3)]


def test_batches_that_cannot_be_copied_come_between_those_that_can() -> None:
    def batches() -> Iterator[Any]:
        for number in range(6):
            if number % 2:
                yield {"t": ((number, number, str(each)) for each in range(3))}
            else:
                yield {"t": batch_of(number)}
            if number == 4:
                yield {"t": iter([(1, "no number", "x")])}

    with Database(threads=2) as db:
        table(db)
        counts = db.create_view("counts", "SELECT b, COUNT(*) AS n FROM t GROUP BY b")
        with pytest.raises(IvmeError) as caught:
            db.apply_batches(batches())
        assert "in batch 5 " in caught.value.__notes__[0]
        assert sorted(counts) == [(0, ROWS), (1, 3), (2, ROWS), (3, 3), (4, ROWS)]
