"""Views that are loaded from a snapshot are those that would be built, and go on as if nothing had happened."""

from __future__ import annotations

import logging
import random
import shutil
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.cli.directory import verify_directory
from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.image import image_of
from ivme.errors import DamagedError
from tests.durability.directories import bag, crash, flip
from tests.example_counts import some_of

TABLES: dict[str, dict[str, str]] = {
    "R": {"a": "int", "b": "int"},
    "S": {"b": "int", "c": "int"},
    "T": {"c": "int", "a": "int"},
    "P": {"k": "int", "name": "string", "price": "decimal(10, 2)", "wide": "decimal(30, 3)", "f": "float"},
}
TRIANGLES = "R(A, B), S(B, C), T(C, A)"
PATH = "R(A, B), S(B, C), T(C, D)"
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "tree": (f"Q(B, C | A) = {TRIANGLES}", {"strategy": "view-tree"}),
    "tree_of_path": (f"Q(A, B, C, D) = {PATH}", {"strategy": "view-tree"}),
    "classical": (f"Q(A, B, C) = {TRIANGLES}", {"strategy": "classical"}),
    "recursive": (f"Q(. | .) = {TRIANGLES}", {"strategy": "recursive"}),
    "factorised": (f"Q(A, B, C) = {TRIANGLES}", {"strategy": "factorised"}),
    "skew_count": (f"Q(. | .) = {TRIANGLES}", {"strategy": "skew", "epsilon": 0.5}),
    "skew_gradual": (f"Q(. | .) = {TRIANGLES}", {"strategy": "skew", "epsilon": 0.5, "rebalance": "deamortised"}),
    "skew_path": (f"Q(A, D) = {PATH}", {"strategy": "skew", "epsilon": 0.5}),
    "marks": (f"Q(A, B, C, D) = {PATH}", {"strategy": "marks", "semantics": "set"}),
    "closure": ("Q(X, Y) = closure(R)", {}),
    "over_closure": ("Q(X, C) = closure(R)(X, Y), S(Y, C)", {}),
    "recompute": (f"Q(A, C) = {TRIANGLES}", {"strategy": "recompute"}),
    "self_join": ("Q(A, B, C) = R(A, B), R(B, C)", {}),
    "extremes": ("SELECT b, MIN(c) AS least, MAX(c) AS most, COUNT(DISTINCT c) AS n FROM S GROUP BY b", {}),
    "texts": ("SELECT name, COUNT(*) AS n, SUM(price) AS total, SUM(wide) AS wider FROM P GROUP BY name", {}),
    "first_text": ("SELECT k, MIN(name) AS first, MAX(wide) AS widest FROM P GROUP BY k", {}),
    "upper": ("SELECT UPPER(name) AS big, COUNT(*) AS n FROM P WHERE price > 1 GROUP BY UPPER(name)", {}),
    "averages": ("SELECT k, AVG(price) AS mean, COUNT(f) AS known FROM P GROUP BY k", {}),
    "over": ("SELECT n, COUNT(*) AS names FROM texts GROUP BY n", {}),
    "wanted": ("SELECT P.name, R.b FROM P JOIN R ON P.k = R.a WHERE P.name = :name", {}),
}


def value(choose: random.Random) -> int:
    """Every other value is the same."""
    return choose.choice([0, choose.randrange(40)])


def row_of(table: str, choose: random.Random) -> tuple[Any, ...]:
    if table != "P":
        return value(choose), value(choose)
    name = choose.choice(["x", "ä" * 5, "\0", None, f"name {choose.randrange(30)}"])
    price = Decimal(choose.randrange(1000)).scaleb(-2)
    wide = choose.choice([None, Decimal(choose.randrange(10)) + Decimal("99999999999999999999.125")])
    return value(choose), name, price, wide, choose.choice([None, 0.5, 2.0, -1.25])


def change(db: Database, choose: random.Random, rows: int) -> None:
    """A batch of inserts, and deletes of what is there."""
    with db.batch() as batch:
        for table in TABLES:
            present = sorted(bag(db, table).elements(), key=repr)
            batch.insert(table, [row_of(table, choose) for _ in range(rows)])
            gone = choose.sample(present, min(len(present), choose.randrange(rows)))
            if gone:
                batch.delete(table, gone)


def made(path: Path, views: list[str], choose: random.Random, rows: int = 40) -> Database:
    db = Database(path)
    for table, schema in TABLES.items():
        db.create_table(table, schema)
    change(db, choose, rows)
    for name in views:
        query, options = VIEWS[name]
        db.create_view(name, query, **options)
    return db


def entries(db: Database) -> dict[str, set[tuple[int, ...]]]:
    """The entries of all maps by the checksum of their definition; codes are the same in a loaded database."""
    with db._runtime.lock:
        backend, found = db._runtime.backend, {}
        assert isinstance(backend, NativeBackend)
        for group in db._runtime.catalog.groups:
            for name, key in group.identities().items():
                records = (
                    backend.dump(name).reshape(backend.size(name), -1)
                    if backend.size(name)
                    else np.zeros((0, 1), np.int64)
                )
                found[key] = set(map(tuple, records.tolist()))
        return found


def balances(db: Database) -> dict[str, Any]:
    return {group.name: group.rebalancer.kept() for group in db._runtime.catalog.rebalanced() if group.rebalancer}


def rows_of(db: Database) -> dict[str, Any]:
    """The rows of all views without parameters, and of all tables."""
    plain = [name for name in db.views if not db.view(name).parameters]
    return {name: Counter(dict(db.view(name).items())) for name in plain} | {t: bag(db, t) for t in db.tables}


def check(db: Database) -> None:
    """Every index says what its map says, and every view what its query gives in another engine."""
    assert isinstance(db._runtime.backend, NativeBackend)
    db._runtime.backend.kernel.verify()
    for name in db.views:
        db.view(name).verify()


def never(*_: object) -> None:
    raise AssertionError("this was not to happen")


def loaded(path: Path, caplog: pytest.LogCaptureFixture) -> Database:
    """The database with its views loaded, none of them built."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "ivme.store"):
        db = Database(path)
    assert "" == caplog.text
    return db


@pytest.mark.parametrize(
    "names",
    some_of([*([name] for name in VIEWS if name != "over"), list(VIEWS)], list(VIEWS)),
    ids=lambda n: n[0] + "…" * (len(n) > 1),
)
def test_a_view_that_is_loaded_is_what_it_was_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    choose = random.Random("".join(names))
    db = made(tmp_path / "db", names, choose)
    for _ in range(3):
        change(db, choose, 8)
    db.checkpoint()
    expected, kept, rows = entries(db), balances(db), rows_of(db)
    db.close()
    shutil.copytree(tmp_path / "db", tmp_path / "built")
    for file in (tmp_path / "built").glob("views-*"):
        file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("ivme.engine.runtime.reader.Reader.run_once", never)
        db = loaded(tmp_path / "db", caplog)
    with db, Database(tmp_path / "built") as built:
        assert expected == entries(db)
        assert kept == balances(db)
        assert rows == rows_of(db) == rows_of(built)
        check(db)
        for seed in range(4):
            for each in (db, built):
                change(each, random.Random(seed), 12)
            assert rows_of(built) == rows_of(db)
        check(db)


def test_views_that_were_loaded_take_the_changes_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = made(tmp_path, list(VIEWS), random.Random(7), rows=80)
    db.checkpoint()
    for seed in range(3):
        change(db, random.Random(seed), 4)
    rows = rows_of(db)
    crash(db)
    with monkeypatch.context() as patch:
        patch.setattr("ivme.engine.runtime.reader.Reader.run_once", never)
        db = loaded(tmp_path, caplog)
    with db:
        assert rows == rows_of(db)
        check(db)


def test_a_log_that_is_longer_than_the_tables_is_not_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To build the views once is quicker then."""
    db = made(tmp_path, ["tree", "texts"], random.Random(7), rows=10)
    db.checkpoint()
    for seed in range(30):
        change(db, random.Random(seed), 10)
    rows = rows_of(db)
    crash(db)
    monkeypatch.setattr("ivme.engine.runtime.image.Image.fill", never)
    with Database(tmp_path) as db:
        assert rows == rows_of(db)
        check(db)


def test_heavy_keys_and_thresholds_are_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = made(tmp_path, ["skew_count"], random.Random(1))
    for seed in range(4):
        change(db, random.Random(seed), 40)
    (before,) = (group.rebalancer.stats() for group in db._runtime.catalog.rebalanced() if group.rebalancer)
    db.checkpoint()
    db.close()
    with loaded(tmp_path, caplog) as db:
        (after,) = (group.rebalancer.stats() for group in db._runtime.catalog.rebalanced() if group.rebalancer)
        assert sum(each["heavy"] for each in after["partitions"].values()) > 0
        assert {**before, "updates": 0} == after


def test_keys_that_are_on_their_way_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Option rebalance="deamortised": a key that waits to be moved still waits when the database is opened again."""
    db = made(tmp_path, ["skew_gradual"], random.Random(1), rows=200)
    db.insert("R", [(n, 50) for n in range(12)])
    for n in range(12, 400):
        db.insert("R", [(n, 50)])
        (kept,) = balances(db).values()
        if kept["waiting"]:
            break
    assert kept["waiting"]
    db.checkpoint()
    crash(db)
    with loaded(tmp_path, caplog) as db:
        (again,) = balances(db).values()
        assert kept["waiting"] == again["waiting"]
        for n in range(400, 500):
            db.insert("R", [(n, 50)])
        assert [] == next(iter(balances(db).values()))["waiting"]
        check(db)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, 9)),
        st.tuples(st.just("make"), st.sampled_from(sorted(VIEWS))),
        st.tuples(st.just("drop"), st.sampled_from(sorted(VIEWS))),
        st.sampled_from([("reopen", ""), ("crash", ""), ("checkpoint", ""), ("checkpoint", "")]),
    ),
    max_size=14,
)


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.long)])
def test_any_sequence_of_changes_views_snapshots_and_crashes_keeps_every_view_right(examples: int) -> None:
    settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))(given(STEPS)(follow))()


def follow(steps: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        db = made(path, ["tree", "texts", "skew_count"], random.Random(0), rows=12)
        for step, what in [*steps, ("reopen", "")]:
            if step == "change":
                change(db, random.Random(what), 6)
            elif step == "make" and what not in db.views and (what != "over" or "texts" in db.views):
                db.create_view(what, VIEWS[what][0], **VIEWS[what][1])
            elif step == "drop" and what in db.views and (what != "texts" or "over" not in db.views):
                db.drop_view(what)
            elif step == "checkpoint":
                db.checkpoint()
            elif step in ("reopen", "crash"):
                rows, views = rows_of(db), db.views
                db.close() if step == "reopen" else crash(db)
                db = Database(path)
                assert (rows, set(views)) == (rows_of(db), set(db.views))
                check(db)
        db.close()


def with_snapshot(path: Path) -> Path:
    """A directory with a snapshot of views; its file."""
    with made(path, ["tree", "texts"], random.Random(3)) as db:
        db.checkpoint()
    (file,) = path.glob("views-*.arrow")
    return file


def opened_with_notice(path: Path, caplog: pytest.LogCaptureFixture, notice: str) -> None:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "ivme.store"), Database(path) as db:
        assert notice in caplog.text
        check(db)
        db.checkpoint()
    loaded(path, caplog).close()


@pytest.mark.parametrize("place", [0, 100, 0.5, -1])
def test_a_damaged_snapshot_of_views_is_never_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: float
) -> None:
    file = with_snapshot(tmp_path)
    size = file.stat().st_size
    flip(file, int(place * size) if isinstance(place, float) else place % size)
    with pytest.raises(DamagedError, match=f"{file.name} is damaged"):
        list(verify_directory(tmp_path))
    opened_with_notice(tmp_path, caplog, f"{file} is damaged: its checksum does not fit")


def test_a_snapshot_of_views_that_is_gone_is_not_needed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = with_snapshot(tmp_path)
    file.unlink()
    assert "view tree is what its query gives" in list(verify_directory(tmp_path))
    opened_with_notice(tmp_path, caplog, f"{file} is missing")


def test_a_snapshot_of_views_of_another_version_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = with_snapshot(tmp_path)
    monkeypatch.setattr("ivme.store.view_file.MADE_BY", "ivme 99")
    opened_with_notice(tmp_path, caplog, f"{file} is of ivme 0.1.0, maps 3, and this is ivme 99")


def test_maps_of_another_program_are_built(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("ivme.engine.runtime.shared_views._checksum", lambda definition: f"other {definition!r}")
        opened_with_notice(tmp_path, caplog, "maps of views were not in the snapshot")


def test_a_file_of_another_snapshot_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The checksum fits, and the file does not: somebody copied it here together with its entry."""
    file = with_snapshot(tmp_path / "one")
    with made(tmp_path / "two", ["tree"], random.Random(4)) as db:
        db.checkpoint()
    from dataclasses import replace

    from ivme.store.snapshot import read_manifest, write_manifest

    one, two = read_manifest(tmp_path / "one"), read_manifest(tmp_path / "two")
    shutil.copy(file, tmp_path / "two" / file.name)
    write_manifest(tmp_path / "two", replace(two, image=one.image))
    opened_with_notice(tmp_path / "two", caplog, "it belongs to another snapshot")


@pytest.mark.parametrize("what", ["map", "dictionary"])
def test_a_file_that_is_whole_and_holds_nonsense_is_refused_by_name(tmp_path: Path, what: str) -> None:
    """No crash and no flipped bit makes such a file: its checksum fits."""
    from dataclasses import replace

    from ivme.store.snapshot import read_manifest, write_manifest
    from ivme.store.view_file import write_image

    with_snapshot(tmp_path)
    with Database(tmp_path) as db, db._runtime.lock:
        image = image_of(db._runtime.catalog)
    assert image is not None
    if what == "map":
        image.maps = {key: np.concatenate([records, records]) for key, records in image.maps.items()}
    else:
        image.values = {type_: pa.concat_arrays([values, values]) for type_, values in image.values.items()}
    manifest = read_manifest(tmp_path)
    stored = write_image(tmp_path, manifest.identity, manifest.last, image)
    write_manifest(tmp_path, replace(manifest, image=stored))
    with pytest.raises(DamagedError, match=rf"{stored.file} is damaged: .* twice.*; remove it"):
        Database(tmp_path)
    (tmp_path / stored.file).unlink()
    with Database(tmp_path) as db:
        check(db)


def test_without_the_compiled_kernel_views_are_built(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ivme.engine.codes.domains import Domains
    from ivme.engine.reference.backend import PureBackend
    from ivme.engine.runtime.runtime import Runtime

    with_snapshot(tmp_path)
    monkeypatch.setattr("ivme.definitions.definitions.new_runtime", lambda: Runtime(PureBackend(), Domains()))
    with caplog.at_level(logging.WARNING, "ivme.store"), Database(tmp_path) as db:
        assert "is for the compiled kernel" in caplog.text
        db.view("tree").verify()
        db.checkpoint()
    assert not list(tmp_path.glob("views-*"))


def test_a_table_that_was_made_anew_has_nothing_of_the_snapshot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with made(tmp_path, ["texts", "extremes"], random.Random(3)) as db:
        db.checkpoint()
        db.drop_view("extremes")
        db.drop_table("S")
        db.create_table("S", TABLES["S"])
        db.insert("S", [(1, 2), (1, 3)])
        db.create_view("extremes", VIEWS["extremes"][0])
    with loaded(tmp_path, caplog) as db:
        assert [(1, 2, 3, 2)] == list(db.view("extremes"))
        check(db)


def test_a_ring_view_made_after_the_snapshot_may_have_negative_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with made(tmp_path, ["texts"], random.Random(3)) as db:
        db.checkpoint()
        db.create_view("ring", "Q(A) = R(A, B)", semantics="ring")
        db.apply("R", [(100, 1)], [-2])
    with loaded(tmp_path, caplog) as db:
        assert -2 == db.view("ring").multiplicity((100,))
        check(db)


def test_views_that_were_followed_when_the_snapshot_was_made_are_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = made(tmp_path, ["classical", "texts", "marks", "skew_path"], random.Random(5))
    feeds = [db.view(name).changes() for name in db.views]
    change(db, random.Random(6), 9)
    db.checkpoint()
    for feed in feeds:
        feed.close()
    db.close()
    with loaded(tmp_path, caplog) as db:
        check(db)


def test_an_image_has_no_values_of_rows_that_are_gone(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("R", {"a": "string"})
        db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
        db.insert("R", [(f"text {n}",) for n in range(3000)])
        db.delete("R", [(f"text {n}",) for n in range(2900)])
        db.checkpoint()
    with Database(tmp_path) as db:
        (strings,) = db._runtime.domains.dictionaries().values()
        assert len(strings) == 100
        assert set(db.view("v")) == {(f"text {n}", 1) for n in range(2900, 3000)}
        db.insert("R", [(f"new {n}",) for n in range(200)])
        assert set(db.view("v")) == {(f"text {n}", 1) for n in range(2900, 3000)} | {
            (f"new {n}", 1) for n in range(200)
        }


def test_a_snapshot_that_nobody_asked_for_leaves_out_maps_that_are_much_larger_than_the_tables(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        for table in ("R", "S"):
            db.create_table(table, {"a": "int"})
            db.insert(table, [(n,) for n in range(100)])
        db.create_view("v", "SELECT R.a, S.a AS b FROM R, S", strategy="classical")
        with db._runtime.lock:
            assert image_of(db._runtime.catalog, 64) is None
            assert image_of(db._runtime.catalog, 300) is not None
        db.checkpoint()
    assert list(tmp_path.glob("views-*"))


def test_without_room_for_the_views_the_snapshot_has_the_tables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.durability.test_disk_full import files_of_at_most

    db = made(tmp_path, ["tree_of_path", "texts"], random.Random(3), rows=300)
    with files_of_at_most(10_000), caplog.at_level(logging.WARNING, "ivme.store"):
        db.checkpoint()
    assert "are not in its snapshot" in caplog.text
    rows = rows_of(db)
    db.close()
    assert not list(tmp_path.glob("views-*"))
    assert list(tmp_path.glob("table-*"))
    with Database(tmp_path) as db:
        assert rows == rows_of(db)
