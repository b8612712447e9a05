"""Each pass of the compiler runs once for a view, and the way through the code stays short (benchmarks/walks.py)."""

from __future__ import annotations

import pytest

from benchmarks.walks import TREE, VIEW, Walk, create_view, one_row, tables, walk
from ivme import planning
from ivme.compile import PASSES, Request, compile_view
from ivme.plan.assemble.assemble import Assembly
from ivme.plan.strategy.skew.plans import skew
from ivme.plan.strategy.strategies import plan_with
from ivme.query.sql import read_query
from ivme.query.typed import typed
from ivme.structure.classify import classify
from ivme.structure.fracture import fracture


@pytest.mark.parametrize("query", [VIEW, TREE])
def test_each_pass_runs_once_for_a_view(query: str) -> None:
    database = tables()
    taken = walk(lambda: database.create_view("v", query))
    assert dict.fromkeys(PASSES, 1) == {each: taken.times(each) for each in PASSES}
    assert [1, 1, 1] == [taken.times(each) for each in (typed, classify, planning.plan_query)]


@pytest.mark.parametrize(("query", "plans", "induced"), [(TREE, 1, 0), (VIEW, 2, 4)])
def test_each_compared_plan_is_assembled_once_and_the_chosen_one_is_installed(
    query: str, plans: int, induced: int
) -> None:
    """Of VIEW a view tree and heavy and light parts are compared. The latter are found by the fractures of the queries
    that the two variables induce, for the keys and again for the trees, which are other queries than the view."""
    database = tables()
    taken = walk(lambda: database.create_view("v", query))
    planned = taken.times(plan_with) + taken.times(skew)
    assert (plans, plans) == (planned, taken.times(Assembly.__init__))
    assert 1 + induced == taken.times(fracture)


def test_the_way_through_the_code_does_not_get_longer() -> None:
    """A bound on the calls outside of sqlglot that create a view: a pass that runs twice, or a key that is derived
    again for each use, shows here; `python -m benchmarks.walks --calls 50` says where."""
    assert create_view(TREE).calls <= 7_000
    assert create_view(VIEW).calls <= 13_850
    assert one_row().calls <= 40


def test_a_text_of_one_block_is_read_once() -> None:
    database = tables()
    assert 1 == walk(lambda: database.create_view("v", VIEW)).times(read_query)


def test_an_explanation_takes_the_same_passes_as_a_view() -> None:
    database = tables()
    taken = walk(lambda: compile_view(Request(VIEW, database.definitions.relations(), {})))
    assert dict.fromkeys(PASSES, 1) == {each: taken.times(each) for each in PASSES}
    assert 1 == taken.times(typed)


def test_the_calls_for_another_view_hardly_depend_on_how_many_there_are() -> None:
    """Views over one table share maps and triggers; each is assembled on its own, and the triggers once (0250)."""
    database = tables()

    def create(number: int) -> Walk:
        query = f"SELECT a, COUNT(*) AS n FROM R WHERE b > {number} GROUP BY a"
        return walk(lambda: database.create_view(f"v{number}", query))

    taken = [create(number) for number in range(40)]
    assert {1} == {each.times(Assembly.__init__) for each in taken}
    assert taken[-1].calls - taken[5].calls <= 30 * 34
    assert 1 == walk(lambda: database.insert("R", [(1, 50)])).times(Assembly.__init__)
