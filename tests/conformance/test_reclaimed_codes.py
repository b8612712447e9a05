"""Codes that nothing holds are given to other values; whatever holds one keeps its meaning (issue 15, 9).

Each scene has one holder of codes, lets go of everything else that has them, takes codes back, and writes rows whose
new values get them. `test_planted_holders.py` takes each holder away in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime import reclaim
from ivme.errors import DataError, StaleCursor
from tests.databases import in_one_batch
from tests.scenes_of_codes import SCENES, names, people
from tests.sweeping import sweep, sweeping_always, values


def people_of(names: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"name": names, "age": [1] * len(names)})


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_a_holder_keeps_its_codes(db: Database, scene: Any, tmp_path: Path) -> None:
    scene(db, tmp_path)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_a_holder_keeps_its_codes_if_they_are_taken_back_after_each_change(
    db: Database, scene: Any, tmp_path: Path
) -> None:
    with sweeping_always():
        scene(db, tmp_path)


def test_strings_that_come_and_go_leave_nothing_behind(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 500)
    people(db)
    db.create_view("loud", "SELECT upper(name) AS shout, COUNT(*) AS n FROM people GROUP BY upper(name)")
    db.create_view("louder", "SELECT concat(shout, '!') AS shout, n FROM loud")
    with db.view("louder").changes() as followed:
        for turn in range(20):
            rows = [(name, turn) for name in names(f"turn {turn}", 400)]
            db.insert("people", rows)
            db.delete("people", rows)
            assert values(db) <= 3 * 400 + 500
            assert [len(change) for change in followed] == [400, 400]
    sweep(db)
    assert values(db) == 0
    assert db._runtime.domains.memory_bytes() < 1000


def test_single_rows_that_come_and_go_leave_nothing_behind(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 100)
    people(db)
    db.create_view("loud", "SELECT upper(name) AS shout, COUNT(*) AS n FROM people GROUP BY upper(name)")
    for number in range(1000):
        db.insert("people", [(f"name {number}", number)])
        db.delete("people", [(f"name {number}", number)])
        assert values(db) <= 2 * (2 * 256 + 100)


def test_strings_that_stay_are_not_looked_for_again_and_again(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 100)
    people(db)
    for number in range(100):
        db.insert("people", [(name, number) for name in names(f"part {number}", 20)])
    assert db._runtime.domains.sweeps <= 10
    before = db._runtime.domains.sweeps
    for number in range(100):
        rows = [(name, 7) for name in names(f"part {number}", 20)]
        db.insert("people", rows)
        db.delete("people", rows)
    assert db._runtime.domains.sweeps <= before + 2


def test_strings_of_record_batches_are_not_looked_for_while_their_rows_stay(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 500)
    people(db)
    batches = [people_of(names(f"part {number}", 400)) for number in range(20)]
    for batch in batches:
        db.insert("people", batch)
    if not isinstance(db._runtime.backend, PureBackend):
        assert db._runtime.domains.sweeps <= 1  # the first batch opens the way for the others
    for batch in batches:
        db.delete("people", batch)
    assert values(db) <= 20 * 400 / 4
    assert db._runtime.domains.sweeps >= 1


def test_strings_of_record_batches_that_come_and_go_leave_nothing_behind(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 500)
    people(db)
    db.insert("people", people_of(names("stays", 100)))
    for number in range(20):
        batch = people_of(names(f"goes {number}", 400))
        db.insert("people", batch)
        db.delete("people", batch)
        assert values(db) <= 3 * 400 + 500
    assert sorted(db.table("people")) == sorted((name, 1) for name in names("stays", 100))


def test_strings_of_record_batches_that_are_refused_are_taken_back(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 500)
    db.create_table("people", {"name": "string", "age": "int"}, primary_key=["name"])
    db.insert("people", people_of(names("stays", 100)))
    for number in range(20):
        with pytest.raises(DataError, match="stays 7"):
            db.insert("people", people_of([*names(f"refused {number}", 400), "stays 7"]))
        db.insert("people", people_of(names(f"stays as well {number}", 5)))
        assert values(db) <= 4 * 400 + 500


def test_long_strings_count_for_more(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(db._runtime.backend, PureBackend):
        pytest.skip("plain Python counts strings, whatever their lengths")
    monkeypatch.setattr(reclaim, "LEAST_CODES", 1000)
    people(db)
    for number in range(40):
        rows = [(f"{name:x<10000}", number) for name in names(f"turn {number}", 20)]
        db.insert("people", rows)
        db.delete("people", rows)
    assert db._runtime.domains.memory_bytes() < 2_000_000


def test_a_batch_that_is_refused_leaves_nothing_behind(db: Database) -> None:
    people(db)
    db.create_view("loud", "SELECT upper(name) AS shout, COUNT(*) AS n FROM people GROUP BY upper(name)")
    for many in (1, 30):
        rows = [(name, 1) for name in names("refused", many)]
        with pytest.raises(DataError, match="nobody"):
            in_one_batch(db, ("insert", "people", rows), ("delete", "people", [("nobody", 1)]))
        sweep(db)
        assert values(db) == 0
    db.insert("people", [("later", 1)])
    assert list(db.view("loud")) == [("LATER", 1)]


def test_a_table_that_is_dropped_takes_its_strings_with_it(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_CODES", 100)
    people(db)
    db.insert("people", [(name, 1) for name in names("all", 300)])
    sweep(db)
    assert values(db) == 300
    db.drop_table("people")
    assert values(db) == 0


def test_large_decimals_that_come_and_go_leave_nothing_behind(db: Database) -> None:
    db.create_table("paid", {"who": "int", "amount": "decimal(30,2)"})
    db.create_view("sums", "SELECT who, SUM(amount) AS total FROM paid GROUP BY who")
    db.create_view("by_sum", "SELECT total, COUNT(*) AS n FROM sums GROUP BY total")
    for number in range(30):
        row = (1, Decimal(10**25 + number))
        db.insert("paid", [row])
        assert list(db.view("by_sum")) == [(row[1], 1)]
        db.delete("paid", [row])
    sweep(db)
    assert values(db) == 0


def test_equal_sizes_of_types_do_not_share_codes(db: Database) -> None:
    db.create_table("R", {"s": "string", "b": "binary", "d": "decimal(30,2)", "e": "decimal(31,2)"})
    rows = [(f"{n}", f"{n}".encode(), Decimal(10**24 + n), Decimal(10**25 + n)) for n in range(20)]
    db.insert("R", rows)
    view = db.create_view("everything", "SELECT s, b, d, e FROM R")
    db.delete("R", rows[::2])
    sweep(db)
    assert values(db) == 4 * 10
    db.insert("R", rows[::2])
    assert sorted(view) == sorted(rows)


def test_readers_beside_a_writer_see_the_values_that_were_there(db: Database) -> None:
    """A name always goes with its number, so that a code with another meaning would show."""
    people(db)
    view = db.create_view("v", "SELECT name, age FROM people")
    asked = db.create_view("asked", "SELECT name, age FROM people WHERE name = :name")
    wrong: list[Any] = []
    over = threading.Event()

    def check(rows: Iterable[Any]) -> None:
        wrong.extend(row for row in rows if row[0] != f"name {row[1]}")

    def read(number: int) -> None:
        while not over.is_set():
            with suppress(StaleCursor):
                check(view)
            check(view.to_arrow().select(["name", "age"]).to_pandas().itertuples(index=False))
            for age in range(latest[0] - 60, latest[0], 7 + number):
                check(asked(name=f"name {age}"))
                check(row for row in asked(name=f"name {age}") if row[1] != age)
                found = asked.request_many(name=[f"name {age}", "nobody"]).to_pydict()
                wrong.extend(other for other in found["age"] if other != age)
                view.multiplicity((f"name {age}", age))

    latest = [0]
    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    with sweeping_always():
        for reader in readers:
            reader.start()
        for turn in range(1, 31):
            latest[0] = 40 * turn
            db.insert("people", [(f"name {age}", age) for age in range(40 * turn, 40 * turn + 40)])
            db.delete("people", [(f"name {age}", age) for age in range(40 * turn - 40, 40 * turn)], strict=False)
        over.set()
        for reader in readers:
            reader.join()
    assert not wrong
