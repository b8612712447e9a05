"""An exception between any two instructions leaves a change made, or not made; never a part of it, and no lock taken.

`IVME_INTERRUPTS_SEED` says where the random tests begin, and `IVME_INTERRUPTS_SECONDS` how long the long ones go on.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ivme.errors import IvmeError
from tests.example_counts import some_of
from tests.interrupts.means import Lines, alarms, from_another_thread, lost_interrupts
from tests.interrupts.scenes import JOIN, Scene

SEED = int(os.environ.get("IVME_INTERRUPTS_SEED", "1"))
SECONDS = float(os.environ.get("IVME_INTERRUPTS_SECONDS", "120"))
KINDS = ("memory", "durable", pytest.param("pure", marks=pytest.mark.long))

Run = Callable[[Callable[[], object]], bool]


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(request.param, SEED)
    made.db.insert("r", [(1, 1), (1, 2), (2, 1), *((i, 1) for i in range(8))])
    made.db.insert("s", [(1, 1), (2, 3), *((1, i) for i in range(8))])
    made.db.insert("e", [(1, 2), (2, 3)])
    made.db.insert("k", [(i, "name") for i in range(3)])
    for name, rows in made.tables.items():
        data, weights = made.db.contents(name)
        rows.update(dict(zip(zip(*(c.to_pylist() for c in data.columns), strict=True), weights.tolist(), strict=True)))
    made.check(made.tables, made.tables | {})
    yield made
    made.close()


SMALL: dict[str, tuple[str, list[tuple[object, ...]], int]] = {
    "a row in": ("r", [(1, 3)], 1),
    "a row out": ("s", [(1, 1)], -1),
    "an edge in": ("e", [(3, 1)], 1),
    "a keyed row in": ("k", [(7, "another")], 1),
    "rows in": ("r", [(1, i) for i in range(20)], 1),
    "a few rows in": ("s", [(1, 50), (2, 51), (3, 52)], 1),
}


@pytest.mark.parametrize(
    ("again", "step"),
    [(0, 3), pytest.param(0, 1, marks=pytest.mark.long), pytest.param(3, 7, marks=pytest.mark.long)],
    ids=["once", "once at every line", "twice"],
)
@pytest.mark.parametrize("name", some_of(SMALL, "an edge in", "a keyed row in", "a few rows in"))
def test_a_change_is_made_or_not_at_whatever_line_it_is_interrupted(
    scene: Scene, name: str, again: int, step: int
) -> None:
    """With `twice`, a second exception comes a few lines behind the first, in whatever takes care of that."""
    table, rows, sign = SMALL[name]
    forward, back = (scene.db.insert, scene.db.delete)[::sign]
    after = {**scene.tables, table: scene.tables[table].copy()}
    after[table].update(rows) if sign > 0 else after[table].subtract(rows)
    after[table] = +after[table]
    step = 41 if scene.kind != "memory" else step
    step *= 3 if name == "rows in" else 1
    before, line, ended = scene.tables, SEED % step, False
    while not ended:
        line += step
        ended = Lines(line, again).run(partial(forward, table, rows))
        if scene.check(before, after):
            back(table, rows)
            scene.check(after, before)
    scene.check_directory()


CATALOG: dict[str, tuple[str, dict[str, object]]] = {
    "view": (JOIN, {}),
    "view on a view": ("SELECT n, SUM(t) AS t FROM counts GROUP BY n", {}),
    "skew view": (JOIN, {"strategy": "skew"}),
    "closure": ("other(X) = closure(e)(X, 3)", {}),
}


@pytest.mark.parametrize("name", some_of(CATALOG, "skew view", "closure"))
def test_a_view_is_there_or_not_at_whatever_line_its_making_is_interrupted(scene: Scene, name: str) -> None:
    query, options = CATALOG[name]
    alive = _alive(scene)
    for line in lines_of(scene, query, options, 41 if scene.kind == "memory" else 97):
        Lines(line).run(partial(scene.db.create_view, "new", query, **options))
        if "new" in scene.db.views:
            scene.db.view("new").verify()
            scene.db.drop_view("new")
        scene.check(scene.tables, scene.tables)
        assert alive == _alive(scene), "maps, triggers or readers were left behind"
    scene.check_directory()


def lines_of(scene: Scene, query: str, options: dict[str, Any], step: int) -> list[int]:
    """Lines of the making of a view, few of its planning, which changes nothing, and many of what comes behind."""
    for _ in range(2):  # what is remembered of the first makes the second shorter
        lines = Lines()
        lines.run(partial(scene.db.create_view, "new", query, **options))
        scene.db.drop_view("new")
    planned = max(0, lines.count - 1500)
    return [*range(1, planned, 1 + planned // 5), *range(planned + SEED % step, lines.count, step)]


@pytest.mark.parametrize("again", some_of([0, 3], 3), ids=["once", "twice"])
@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM joined", "SELECT a, COUNT(*) AS m FROM r GROUP BY a"],
    ids=["of a view", "of a query"],
)
def test_a_transaction_that_is_interrupted_in_its_reading_has_changed_nothing(
    scene: Scene, query: str, again: int
) -> None:
    if scene.kind == "durable":
        pytest.skip("what a transaction reads is never written")
    alive = _alive(scene)
    scene.db.sql("BEGIN; INSERT INTO r VALUES (1, 2), (5, 5); INSERT INTO e VALUES (3, 4); DELETE FROM s WHERE c = 3")
    lines = Lines()
    for _ in range(2):  # what is remembered of the first makes the second shorter
        lines = Lines()
        lines.run(partial(scene.db.sql, query))
    begin = max(1, lines.count - 2500)
    for line in range(begin, lines.count, 61 if scene.kind == "memory" else 197):
        Lines(line, again).run(partial(scene.db.sql, query))
        scene.check(scene.tables, scene.tables)
    assert scene.db.sql("SELECT x FROM e").count == 3  # with it goes a map that the last cursor had kept
    assert alive == _alive(scene), "maps, triggers or readers were left behind"
    scene.db.sql("ROLLBACK")
    scene.check(scene.tables, scene.tables)


@pytest.mark.parametrize("name", some_of(["view", "skew view"], "skew view"))
def test_a_view_is_there_or_not_at_whatever_line_its_dropping_is_interrupted(scene: Scene, name: str) -> None:
    query, options = CATALOG[name]
    alive, line, ended = _alive(scene), 0, False
    scene.db.create_view("new", query, **options)
    while not ended:
        line += 17 if scene.kind == "memory" else 97
        ended = Lines(line).run(partial(scene.db.drop_view, "new"))
        scene.check(scene.tables, scene.tables)
        if "new" in scene.db.views:
            assert Counter(scene.db.view("joined")) == Counter(scene.db.view("new"))
        elif not ended:
            assert alive == _alive(scene)
            scene.db.create_view("new", query, **options)
    assert alive == _alive(scene)
    scene.check_directory()


def _alive(scene: Scene) -> object:
    backend: Any = scene.db._runtime.backend
    if scene.kind == "pure":
        return sorted(backend.kernel.maps)
    return [len(numbers) for numbers in backend.kernel.alive()]


def test_whoever_follows_a_view_hears_all_of_a_change_or_nothing(scene: Scene) -> None:
    for line in range(1, 600, 13):
        before = len(scene.db._runtime.catalog.queues.get("counts", ()))
        Lines(line).run(scene.db.view("counts").changes)
        feeds = scene.db._runtime.catalog.queues.get("counts", ())
        assert len(feeds) - before in (0, 1)
        for queue in feeds:
            scene.db._runtime.unsubscribe("counts", queue)
        assert 1 == scene.db._runtime.catalog.views["counts"].followers, "sizes follows it, and nobody else does"
        scene.check(scene.tables, scene.tables)


def _read(scene: Scene, name: str) -> object:
    return list(scene.db.view(name))


def test_a_read_that_is_interrupted_changes_nothing(scene: Scene) -> None:
    for name in ("grouped", "skewed", "reach", "counts"):
        for line in range(1, 200, 13):
            scene.db._runtime.catalog.views[name].stale = True
            Lines(line).run(partial(_read, scene, name))
            scene.check(scene.tables, scene.tables)


def go_on(scene: Scene, means: str, interrupts: int, seconds: float) -> int:
    """Changes that are interrupted at random; how many were."""
    end = time.monotonic() + seconds
    chance = random.Random(scene.random.random())
    usual: dict[str, float] = {}
    done = 0
    with lost_interrupts(), alarms() as ring:
        while done < interrupts or time.monotonic() < end:
            name, work, after = scene.change()
            source = f"source {scene.sources}" if name == "position" else None
            if chance.random() < 0.2:
                work()
            elif means == "lines":
                most = usual.get(name, 1000)
                first = max(0, most - 60) if chance.random() < 0.3 else 0  # where it is committed
                lines = Lines(1 + int(first + chance.random() * (1.1 * most - first)), chance.choice([0, 0, 1, 9]))
                if lines.run(work):
                    usual[name] = lines.count
                done += lines.raised > 0
            else:
                began = time.perf_counter()
                after_seconds = chance.random() * usual.get(name, 0.001) + 2e-6
                ended = (ring if means == "signal" else from_another_thread)(work, after_seconds)
                done += not ended
                if ended:
                    usual[name] = 0.9 * usual.get(name, 0.001) + 0.1 * (time.perf_counter() - began)
            scene.check(scene.tables, after, source)
            if chance.random() < 0.004:
                scene.check_directory()
            if chance.random() < 0.002:
                for view in scene.views:
                    scene.db.view(view).verify()
    return done


MEANS = {"lines": 1, "signal": 4, "thread": 24}
"""How exceptions come, and by how much fewer than those at lines."""


INTERRUPTS = {"memory": 480, "durable": 64, "pure": 32}


def _interrupt(scene: Scene, means: str, times: int) -> None:
    """So many interrupts in all kinds of databases and by all means together, each of which leaves no trace."""
    interrupts = times * INTERRUPTS[scene.kind] // MEANS[means]
    assert interrupts <= go_on(scene, means, interrupts, 0)
    _check_all(scene)


@pytest.mark.parametrize("means", some_of(MEANS, "lines", "signal"))
def test_changes_that_are_interrupted_at_random_are_made_or_not(scene: Scene, means: str) -> None:
    _interrupt(scene, means, 1)


@pytest.mark.long
@pytest.mark.parametrize("means", MEANS)
def test_ten_thousand_interrupts_leave_no_trace(scene: Scene, means: str) -> None:
    _interrupt(scene, means, 15)


@pytest.mark.long
@pytest.mark.parametrize("means", MEANS)
def test_changes_are_interrupted_for_as_long_as_asked(scene: Scene, means: str) -> None:
    go_on(scene, means, 1, SECONDS / len(KINDS) / len(MEANS))
    _check_all(scene)


def _check_all(scene: Scene) -> None:
    scene.check_directory()
    if scene.kind == "durable":
        scene.reopen()
        scene.check(scene.tables, scene.tables)


def test_an_error_of_a_batch_is_still_the_users(scene: Scene) -> None:
    with pytest.raises(IvmeError, match="not there"):
        scene.db.delete("r", [(99, 99)])
    scene.check(scene.tables, scene.tables)
