"""What was committed is there again when the directory is opened again: rows, catalog and positions."""

from __future__ import annotations

import datetime
import io
import math
import os
import tempfile
import threading
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ivme
from ivme.database import Database
from ivme.errors import DataError, PlanError, StorageError, UnknownNameError
from ivme.rings import Covariance, Element
from ivme.store.segment import make_segment
from tests.durability.directories import SCHEMA, bag, crash, log_of
from tests.example_counts import examples

ROWS = st.tuples(
    st.sampled_from([0, -1, 2**63 - 1, -(2**63) + 1, None]),
    st.sampled_from([0.0, -0.0, 0.1, -1e-310, math.inf, -math.inf, 2.0**1000, None]),
    st.sampled_from([Decimal("0.00"), Decimal("-1234567.89"), Decimal("1E+3"), None]),
    st.sampled_from([Decimal("999999999999999999999999999.999"), Decimal("-0.001"), None]),
    st.sampled_from(["", "a", "ä\n\0\"'", "\N{GRINNING FACE}", "x" * 300, None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([datetime.date.min, datetime.date.max, datetime.date(2024, 2, 29), None]),
    st.sampled_from(
        [datetime.datetime.min, datetime.datetime.max, datetime.datetime(1969, 12, 31, 23, 59, 59, 1), None]
    ),
    st.sampled_from([b"", b"\x00\xff\n", b"ivmR" * 20, None]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(ROWS, min_size=1, max_size=3)),
        st.tuples(st.just("insert"), st.lists(ROWS, min_size=17, max_size=20)),
        st.tuples(st.just("delete"), st.integers(0, 10**6)),
        st.tuples(st.just("swap"), st.lists(ROWS, min_size=1, max_size=2)),
        st.sampled_from([("reopen", None), ("crash", None), ("checkpoint", None)]),
    ),
    max_size=12,
)


def normal(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row as it is kept: -0.0 is 0.0."""
    return tuple(0.0 if type(value) is float and value == 0 else value for value in row)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.sampled_from(["sync", "async"]))
def test_any_rows_survive_any_sequence_of_batches_snapshots_crashes_and_reopenings(steps: Any, durability: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        db = Database(directory, durability=durability)
        db.create_table("R", SCHEMA)
        db.create_view("groups", "SELECT s, COUNT(*) AS n, SUM(d) AS total, MIN(at) AS first FROM R GROUP BY s")
        expected: Counter[Any] = Counter()
        for number, (step, given_rows) in enumerate(steps):
            if step == "insert":
                db.insert("R", given_rows)
                expected.update(map(normal, given_rows))
            elif step == "delete" and expected:
                row = sorted(expected, key=repr)[given_rows % len(expected)]
                db.delete("R", [row])
                expected = +(expected - Counter([row]))
            elif step == "swap":
                with db.batch(source="swaps", position=number) as batch:
                    batch.apply("R", given_rows, [2] * len(given_rows))
                    batch.delete("R", given_rows)
                expected.update(map(normal, given_rows))
            elif step == "checkpoint":
                db.checkpoint()
            elif step in ("reopen", "crash"):
                position = db.position("swaps")
                db.close() if step == "reopen" else crash(db)
                db = Database(directory, durability=durability)
                assert position == db.position("swaps")
            assert expected == bag(db, "R")
        db.view("groups").verify()
        db.close()


def test_floats_keep_their_bits(tmp_path: Path) -> None:
    values = [0.1, -5e-324, 1.7976931348623157e308, math.inf]
    with Database(tmp_path) as db:
        db.create_table("R", {"f": "float"})
        db.insert("R", [(value,) for value in values])
        db.insert("R", [(value,) for value in values] * 10)
    with Database(tmp_path) as db:
        assert Counter(dict.fromkeys([(v,) for v in values], 11)) == bag(db, "R")


def test_rows_from_every_way_in_survive(tmp_path: Path) -> None:
    arrow = pa.table({"a": pa.array(range(40), pa.int64()), "b": pa.array(["x"] * 40)})
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int", "b": "string"})
        db.insert("R", arrow)
        db.insert("R", arrow.to_pandas())
        db.insert("R", [{"a": 1, "b": "one"}])
        db.insert("R", [(1, "two")])
        db.apply("R", arrow, np.full(40, 3))
        db.delete("R", [(39, "x"), (40, "x")], strict=False)
        expected = bag(db, "R")
    assert 40 * 5 + 2 - 1 == expected.total()
    with Database(tmp_path) as db:
        assert expected == bag(db, "R")


def test_the_catalog_survives_with_its_options(tmp_path: Path) -> None:
    with Database(tmp_path / "new" / "directory") as db:
        db.create_table("R", {"a": "int", "B": "decimal(12, 2)"}, primary_key=["a"])
        db.create_table("log", {"a": "int"}, append_only=True)
        db.create_table("fixed", {"a": "int"}, static=True)
        db.create_table("gone", {"a": "int"})
        db.create_view("per_a", "SELECT a, SUM(b) AS total FROM R GROUP BY a", strategy="classical")
        db.create_view("third", "Q(A | B) = R(A, B)", epsilon=Fraction(1, 3))
        db.create_view("each", "Q(A) = R(A, B), log(A)", epsilon={"R": 0.5, "log": Decimal("0.25")}, static=("R",))
        db.create_view("over", "SELECT COUNT(*) AS n FROM per_a")
        db.create_view("gone_view", "Q(A) = gone(A)")
        db.drop_view("gone_view")
        db.drop_table("gone")
        db.insert("fixed", [(7,)])
        declared = [state.table for state in db._runtime.catalog.tables.values()]
        explained = {name: db.view(name).explain().to_dict() for name in db.views}
    for _ in range(2):
        with Database(tmp_path / "new" / "directory") as db:
            assert declared == [state.table for state in db._runtime.catalog.tables.values()]
            assert explained == {name: db.view(name).explain().to_dict() for name in db.views}
            with pytest.raises(DataError, match="append-only"):
                db.delete("log", [(1,)])
            with pytest.raises(DataError, match="static"):
                db.insert("fixed", [(8,)])
            db.insert("R", [(1, Decimal("1.50"))])
            with pytest.raises(DataError, match="primary key"):
                db.insert("R", [(1, Decimal("2.50"))])
            assert [(1,)] == list(db.view("over"))
            db.delete("R", [(1, Decimal("1.50"))])
            db.checkpoint()


def test_a_table_that_was_made_anew_has_only_its_new_rows(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        db.insert("R", [(1,)])
        db.checkpoint()
        db.drop_table("R")
        db.create_table("R", {"a": "string"})
        db.insert("R", [("x",)])
    with Database(tmp_path) as db:
        assert Counter({("x",): 1}) == bag(db, "R")


def test_negative_multiplicities_of_ring_mode_survive(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        db.create_view("v", "Q(A) = R(A)", semantics="ring")
        db.apply("R", [(1,), (2,)], [-2, 1])
    with Database(tmp_path) as db:
        assert Counter({(1,): -2, (2,): 1}) == bag(db, "R")
        assert {((1,), -2), ((2,), 1)} == set(db.view("v").items())
        db.drop_view("v")
        with pytest.raises(PlanError, match="negative"):
            db.create_view("w", "Q(A) = R(A)")
        db.insert("R", [(1,)] * 2)
    with Database(tmp_path) as db, pytest.raises(DataError, match="not there"):
        db.delete("R", [(1,)])


def test_unchanged_tables_keep_their_files(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        for name in ("R", "S"):
            db.create_table(name, {"a": "int"})
            db.insert(name, [(1,)])
        db.checkpoint()
        before = {path.name for path in tmp_path.glob("table-*")}
    with Database(tmp_path) as db:
        db.insert("S", [(2,)])
        db.checkpoint()
        after = {path.name for path in tmp_path.glob("table-*")}
    assert (2, 2, 1) == (len(before), len(after), len(before & after))
    with Database(tmp_path) as db:
        assert (1, 2) == (bag(db, "R").total(), bag(db, "S").total())


def test_a_snapshot_is_made_when_the_log_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivme.store.store.LEAST_LOG", 2000)
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        for value in range(200):
            db.insert("R", [(value,)])
    assert list(tmp_path.glob("table-*"))
    assert 1 < int(log_of(tmp_path).stem.removeprefix("log-"))
    assert not list(tmp_path.glob("*.tmp"))
    with Database(tmp_path) as db:
        assert Counter({(value,): 1 for value in range(200)}) == bag(db, "R")


def test_a_refused_change_leaves_nothing_in_the_log(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"}, primary_key="a")
        db.insert("R", [(1,)])
        size = log_of(tmp_path).stat().st_size
        for refused in ([(2,)], [(2,), (3,)]):
            with pytest.raises(DataError):
                db.delete("R", refused)
        with pytest.raises(DataError):
            db.insert("R", [(1,)])
        with pytest.raises(PlanError):
            db.create_view("v", "Q(A) = R(A)", strategy="nonsense")
        with pytest.raises(UnknownNameError):
            db.drop_table("S")
        assert size == log_of(tmp_path).stat().st_size


def test_a_view_of_a_durable_database_needs_a_text_and_plain_options(tmp_path: Path) -> None:
    from ivme.query.parse import parse

    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        query = parse("Q(A) = R(A)", tuple(state.table for state in db._runtime.catalog.tables.values()))
        with pytest.raises(PlanError, match="as a string"):
            db.create_view("v", query)  # type: ignore[arg-type]
        assert () == db.views


def test_a_ring_view_is_made_again_after_opening(tmp_path: Path) -> None:
    for size in (1, 2):
        with Database(tmp_path) as db:
            if not db.tables:
                db.create_table("R", {"a": "float"})
            model = db.create_ring_view("model", "Q(.|.) = R(A)", Covariance("A"))
            db.insert("R", [(1.0,)])
            found = model.value()
            assert isinstance(found, Element)
            assert size == found.count


def test_a_closed_database_writes_no_more(tmp_path: Path) -> None:
    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    open_batch = db.batch(source="late", position=1)
    db.close()
    db.close()
    with pytest.raises(PlanError, match="closed"):
        db.checkpoint()
    with pytest.raises(StorageError, match="closed"):
        open_batch.__exit__(None, None, None)
    with Database(tmp_path) as db:
        assert db.position("late") is None


def test_durability_is_sync_or_async(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="'sync' or 'async'"):
        ivme.Database(tmp_path, durability="maybe")


def test_what_threads_commit_while_snapshots_are_made_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ivme.store.store.LEAST_LOG", 3000)
    db = Database(tmp_path)
    db.create_table("R", {"thread": "int", "n": "int"})
    db.create_view("v", "SELECT thread, COUNT(*) AS n FROM R GROUP BY thread")

    def write(thread: int) -> None:
        for n in range(60):
            db.insert("R", [(thread, n)] if n % 2 else [(thread, n)] * 20)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    crash(db)
    assert 1 < int(log_of(tmp_path).stem.removeprefix("log-"))
    with Database(tmp_path) as db:
        assert Counter({(t, n): 1 if n % 2 else 20 for t in range(4) for n in range(60)}) == bag(db, "R")
        assert [(t, 30 + 30 * 20) for t in range(4)] == sorted(db.view("v"))


def test_a_database_that_is_closed_while_others_write_keeps_what_they_were_told(tmp_path: Path) -> None:
    db = Database(tmp_path)
    db.create_table("R", {"n": "int"})
    committed: list[int] = []

    def write() -> None:
        try:
            for n in range(100_000):
                db.insert("R", [(n,)])
                committed.append(n)
        except ivme.IvmeError:
            return

    thread = threading.Thread(target=write)
    thread.start()
    while len(committed) < 50:
        pass
    db.close()
    thread.join()
    with Database(tmp_path) as db:
        assert set(committed) <= {n for (n,) in bag(db, "R")} <= {*committed, len(committed)}


def test_a_bar_shows_the_stages_of_opening_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        db.create_view("v", "Q(A) = R(A)")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    Database(tmp_path).close()
    shown = terminal.getvalue()
    assert all(stage in shown for stage in ("reading", "filling tables", "building views", "100%"))


def test_a_segment_that_was_made_and_never_used_is_taken_away(tmp_path: Path) -> None:
    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    store = db.definitions.store
    assert store is not None
    stale = make_segment(tmp_path, store._manifest.identity, store.log.last + 1).path
    db.insert("R", [(1,)])
    db.insert("R", [(2,)])
    crash(db)
    for _ in range(2):
        with Database(tmp_path) as db:
            assert Counter({(1,): 1, (2,): 1}) == bag(db, "R")
            assert not stale.exists()


def test_a_snapshot_that_failed_forgets_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "int"})
        db.insert("R", [(1,)])
        db.checkpoint()
        db.insert("R", [(2,)])
        for broken in ("ivme.store.store.write_table", "ivme.engine.runtime.reader.Reader.all_rows"):
            with monkeypatch.context() as patch:
                patch.setattr(broken, _without_memory)
                with pytest.raises(MemoryError):
                    db.checkpoint()
        db.checkpoint()
    with Database(tmp_path) as db:
        assert Counter({(1,): 1, (2,): 1}) == bag(db, "R")


def _without_memory(*_: object, **__: object) -> None:
    raise MemoryError


def test_what_was_written_and_not_synced_is_synced_on_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(tmp_path)
    db.create_table("R", {"a": "int"})
    crash(db)
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    Database(tmp_path).close()
    assert log_of(tmp_path).stat().st_ino in synced
