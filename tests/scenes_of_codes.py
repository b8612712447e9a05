"""Scenes in which something holds codes that nothing else does, while others are taken back and given again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from ivme.database import Database
from ivme.engine.runtime.gradual import GradualRebalancer
from ivme.engine.runtime.open_read import OpenRead
from ivme.store.store import Store
from tests.sweeping import sweep

MANY = 40
"""More rows than are written one by one."""


def names(kind: str, count: int = MANY) -> list[str]:
    return [f"{kind} {number}" for number in range(count)]


def people(db: Database) -> None:
    db.create_table("people", {"name": "string", "age": "int"})


def replace_all(db: Database, old: list[str], new: list[str]) -> None:
    """All of the old go, and the new get their codes."""
    db.delete("people", [(name, 1) for name in old])
    sweep(db)
    db.insert("people", [(name, 1) for name in new])


def results_by_code(db: Database, _: Path) -> None:
    people(db)
    view = db.create_view("v", "SELECT age FROM people WHERE name LIKE 'old%' OR name = 'red'")
    db.insert("people", [(name, 1) for name in names("old")])
    replace_all(db, names("old"), names("new", 2 * MANY))
    assert list(view) == []
    db.insert("people", [(name, 2) for name in [*names("newer", 2 * MANY), "red"]])
    assert list(view) == [(2,)]


def a_batch_that_is_not_committed(db: Database, _: Path) -> None:
    people(db)
    view = db.create_view("v", "SELECT name FROM people")
    wanted, other = names("wanted"), names("other", 2 * MANY)
    with db.batch() as batch:
        batch.insert("people", pa.table({"name": wanted, "age": [1] * MANY}))
        sweep(db)
        db.insert("people", [(name, 1) for name in other])
    assert sorted(view) == sorted((name,) for name in wanted + other)


def an_iterator(db: Database, _: Path) -> None:
    people(db)
    view = db.create_view("v", "SELECT name FROM people")
    old = names("old", 300)
    db.insert("people", [(name, 1) for name in old])
    rows = iter(view)
    first = next(rows)
    replace_all(db, old, names("new", 300))
    assert sorted([first, *rows]) == sorted((name,) for name in old)
    assert sorted(view) == sorted((name,) for name in names("new", 300))


def a_block_that_is_being_decoded(db: Database, _: Path) -> None:
    people(db)
    view = db.create_view("v", "SELECT name FROM people")
    db.insert("people", [(name, 1) for name in names("old")])
    reader, state = db._runtime.reader, view.state
    read = OpenRead(reader, state, ())
    read.read_all()  # a cursor that has not ended holds its maps as they were
    block = next(read)
    replace_all(db, names("old"), names("new"))
    assert sorted(state.finisher.rows(block, {})) == sorted(((name,), 1) for name in names("old"))


def the_nodes_of_a_closure(db: Database, _: Path) -> None:
    """Both ends of its edges have a type in common, whose codes the table does not have."""
    db.create_table("edge", {"a": "decimal(30,2)", "b": "decimal(32,2)"})
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    path = [Decimal(10**25 + number) for number in range(MANY)]
    edges = list(pairwise(path))
    db.insert("edge", edges)
    new = [(Decimal(10**26 + number), Decimal(10**27 + number)) for number in range(MANY // 2)]
    for old, edge in zip(edges[1::2], new, strict=False):
        db.delete("edge", [old])
        sweep(db)
        db.insert("edge", [edge])
    left = [*edges[::2], *new[: len(edges[1::2])]]
    assert sorted(view) == sorted(left)
    assert [list(view._group.path(*edge)) for edge in left] == [list(edge) for edge in left]  # type: ignore[attr-defined]


def keys_on_their_way_to_the_other_side(db: Database, _: Path) -> None:
    db.create_table("E", {"x": "string", "y": "string"})
    view = db.create_view(
        "q", "Q(. | .) = E(A, B), E(B, C), E(C, A)", strategy="skew", rebalance="deamortised", epsilon=0.5
    )
    group = db._runtime.catalog.views["q"].group
    assert isinstance(group.rebalancer, GradualRebalancer)
    domain = db._runtime.catalog.tables["E"].domains[0]
    code = domain.encode_value("moving")
    group.rebalancer._waiting = {(0, (code,)): True}
    sweep(db)
    assert domain.encode_value("other") != code
    assert domain.find_value("moving") == code
    group.rebalancer._waiting = {}
    rows = [(f"{i}", f"{j}") for i in range(8) for j in range(8) if (i + j) % 3]
    db.insert("E", rows)
    star = [(f"leaf {i}", "0") for i in range(40)]
    for row in star:
        db.insert("E", [row])
    for row in star:
        db.delete("E", [row])
        sweep(db)
    view.verify()


def a_change_that_waits(db: Database, _: Path) -> None:
    """It is decoded when it is looked at, and nothing else has its values by then."""
    people(db)
    view = db.create_view("v", "SELECT name, COUNT(*) AS n FROM people GROUP BY name")
    with view.changes() as feed:
        db.insert("people", [(name, 1) for name in names("old")])
        replace_all(db, names("old"), names("new"))
        came, gone, new = feed
    replace_all(db, names("new"), names("newer"))
    assert came == {(name, 1): 1 for name in names("old")}
    assert gone == {(name, 1): -1 for name in names("old")}
    assert sorted(new.to_arrow().column("name").to_pylist()) == sorted(names("new"))


def rows_that_are_kept(db: Database, _: Path) -> None:
    """A sum that is no code of its own is in no map, and is what a group was before the next batch."""
    db.create_table("R", {"g": "int", "x": "decimal(30, 2)"})
    view = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g")
    large = [Decimal(10**25 + number) for number in range(MANY)]
    with view.changes() as feed:
        db.insert("R", [(number, value) for number, value in enumerate(large)])
        list(feed)
        sweep(db)
        db.insert("R", [(MANY + number, 2 * value) for number, value in enumerate(large)])
        list(feed)
        db.insert("R", [(number, Decimal(1)) for number in range(MANY)])
        (change,) = feed
    assert {row for row, weight in change.items() if weight < 0} == set(enumerate(large))


def rows_on_their_way_to_a_snapshot(db: Database, path: Path) -> None:
    """What a durable database does; the one that is given stays as it is."""
    if db.definitions.store is None:
        return
    write = Store._write_tables

    def late(store: Store, *arguments: Any) -> Any:
        replace_all(kept, names("old", 300), names("new", 300))
        return write(store, *arguments)

    with Database(path / "snapshot", durability="async") as kept:
        people(kept)
        kept.insert("people", [(name, 1) for name in names("old", 300)])
        with patch.object(Store, "_write_tables", late):
            kept.checkpoint()
    with Database(path / "snapshot") as kept:
        assert sorted(kept.contents("people")[0].column(0).to_pylist()) == sorted(names("new", 300))


def the_maps_of_tables_and_views(db: Database, _: Path) -> None:
    people(db)
    loud = db.create_view("loud", "SELECT upper(name) AS shout, COUNT(*) AS n FROM people GROUP BY upper(name)")
    least = db.create_view("least", "SELECT age, MIN(name) AS first, MAX(name) AS last FROM people GROUP BY age")
    asked = db.create_view("asked", "SELECT age FROM people WHERE name = :name")
    late = db.create_view("late", "SELECT lower(name) AS whisper FROM people", strategy="recompute")
    with loud.changes() as followed:
        seen: dict[Any, int] = {}
        for turn in range(6):
            replace_all(db, names(f"{turn}") if turn else [], names(f"{turn + 1}"))
            now = names(f"{turn + 1}")
            assert sorted(loud) == sorted((name.upper(), 1) for name in now)
            assert list(least) == [(1, min(now), max(now))]
            assert [list(asked(name=name)) for name in (now[3], "nobody", f"{turn} 3")] == [[(1,)], [], []]
            assert asked.request_many(name=[now[0], "nobody"]).num_rows == 1
            assert sorted(late) == sorted((name.lower(),) for name in now)
            for change in followed:
                for row, weight in change.items():
                    seen[row] = seen.get(row, 0) + weight
            assert {row: n for row, n in seen.items() if n} == {(name.upper(), 1): 1 for name in now}
    for view in (loud, least, asked, late):
        view.verify()


SCENES: dict[str, Callable[[Database, Path], None]] = {
    scene.__name__: scene
    for scene in (
        results_by_code,
        a_batch_that_is_not_committed,
        an_iterator,
        a_block_that_is_being_decoded,
        the_nodes_of_a_closure,
        a_change_that_waits,
        rows_that_are_kept,
        keys_on_their_way_to_the_other_side,
        rows_on_their_way_to_a_snapshot,
        the_maps_of_tables_and_views,
    )
}
