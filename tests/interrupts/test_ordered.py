"""The same for views with ordered maps: an exception anywhere leaves their maps, sums and clocks as before or after."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.interrupts.means import Lines
from tests.interrupts.ordered_scenes import OrderedScene
from tests.interrupts.test_interrupts import INTERRUPTS, KINDS, MEANS, SEED, go_on

SMALL: dict[str, tuple[str, list[tuple[int, int]], int]] = {
    "a row in": ("r", [(1, 3)], 1),
    "a row out": ("s", [(1, 1)], -1),
    "rows in": ("r", [(1, 2), (3, 1), (2, 0), (3, 1)], 1),
    "rows of the other side": ("s", [(1, 5), (2, 1), (3, 2)], 1),
    "a row that expires": ("e", [(5, 1)], 1),
}


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest) -> Iterator[OrderedScene]:
    made = OrderedScene(request.param, SEED)
    for table, rows in {
        "r": [(1, 1), (1, 2), (2, 1), (3, 0), (3, 3)],
        "s": [(1, 1), (2, 3), (1, 4), (3, 0)],
        "e": [(1, 2), (2, 3), (9, 9)],
    }.items():
        made.db.insert(table, rows)
        made.tables[table].update(rows)
    made.check(made.tables, made.tables | {})
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_ordered_maps_have_a_change_or_not_at_whatever_line_it_is_interrupted(scene: OrderedScene, name: str) -> None:
    table, rows, sign = SMALL[name]
    forward, back = (scene.db.insert, scene.db.delete)[::sign]
    after = {**scene.tables, table: scene.tables[table].copy()}
    after[table].update(rows) if sign > 0 else after[table].subtract(rows)
    after[table] = +after[table]
    step = 29 if scene.kind == "memory" else 211
    before, line, ended = scene.tables, SEED % step, False
    while not ended:
        line += step
        ended = Lines(line).run(partial(forward, table, rows))
        if scene.check(before, after):
            back(table, rows)
            scene.check(after, before)
    scene.check_directory()


def test_ordered_maps_that_are_interrupted_at_random_have_a_change_or_not(scene: OrderedScene) -> None:
    interrupts = 4 + INTERRUPTS[scene.kind] // 16
    assert interrupts <= go_on(scene, "lines", interrupts, 0)
    scene.check_directory()


@pytest.mark.long
@pytest.mark.parametrize("means", MEANS)
def test_thousands_of_interrupts_leave_ordered_maps_right(scene: OrderedScene, means: str) -> None:
    interrupts = 6 * INTERRUPTS[scene.kind] // MEANS[means]
    assert interrupts <= go_on(scene, means, interrupts, 0)
    if scene.kind == "durable":
        scene.reopen()
        scene.check(scene.tables, scene.tables)
